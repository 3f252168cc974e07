//! Captures and graphs.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use super::current::ready;
use crate::driver::{
    HostFunction, cuGraphDebugDotPrint, cuGraphDestroy, cuGraphExecDestroy, cuGraphGetNodes,
    cuGraphInstantiateWithFlags, cuGraphLaunch, cuGraphRetainUserObject, cuStreamBeginCapture_v2,
    cuStreamBeginCaptureToGraph, cuStreamEndCapture, cuStreamGetCaptureInfo_v3,
    cuStreamIsCapturing, cuThreadExchangeStreamCaptureMode, cuUserObjectCreate,
    cuUserObjectRelease,
};

calls! {
    cudaStreamBeginCapture(stream: usize, mode: c_int) {
        ready()?;
        cuStreamBeginCapture_v2(stream, mode)
    }

    cudaStreamBeginCaptureToGraph(
        stream: usize, graph: usize, dependencies: *mut c_void, edges: *mut c_void, n: usize, mode: c_int,
    ) {
        ready()?;
        cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, n, mode)
    }

    cudaStreamEndCapture(stream: usize, graph: *mut usize) {
        ready()?;
        cuStreamEndCapture(stream, graph)
    }

    cudaStreamIsCapturing(stream: usize, status: *mut c_int) {
        ready()?;
        cuStreamIsCapturing(stream, status)
    }

    /// CUDA 13's.
    cudaStreamGetCaptureInfo(
        stream: usize, status: *mut c_int, id: *mut u64, graph: *mut usize, last: *mut c_void,
        edges: *mut c_void, n: *mut usize,
    ) {
        ready()?;
        cuStreamGetCaptureInfo_v3(stream, status, id, graph, last, edges, n)
    }

    /// CUDA 12's.
    cudaStreamGetCaptureInfo_v2(
        stream: usize, status: *mut c_int, id: *mut u64, graph: *mut usize, last: *mut c_void,
        n: *mut usize,
    ) {
        ready()?;
        cuStreamGetCaptureInfo_v3(stream, status, id, graph, last, ptr::null_mut(), n)
    }

    cudaStreamUpdateCaptureDependencies(_stream: usize) {
        ready()
    }

    cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        ready()?;
        cuThreadExchangeStreamCaptureMode(mode)
    }

    cudaGraphGetNodes(graph: usize, nodes: *mut usize, count: *mut usize) {
        cuGraphGetNodes(graph, nodes, count)
    }

    cudaGraphInstantiate(exec: *mut usize, graph: usize, flags: u64) {
        cuGraphInstantiateWithFlags(exec, graph, flags)
    }

    cudaGraphInstantiateWithFlags(exec: *mut usize, graph: usize, flags: u64) {
        cuGraphInstantiateWithFlags(exec, graph, flags)
    }

    cudaGraphLaunch(exec: usize, stream: usize) {
        ready()?;
        cuGraphLaunch(exec, stream)
    }

    cudaGraphDestroy(graph: usize) {
        cuGraphDestroy(graph)
    }

    cudaGraphExecDestroy(exec: usize) {
        cuGraphExecDestroy(exec)
    }

    cudaGraphDebugDotPrint(graph: usize, path: *const c_char, flags: c_uint) {
        cuGraphDebugDotPrint(graph, path, flags)
    }

    cudaUserObjectCreate(
        object: *mut usize, pointer: *mut c_void, destroy: HostFunction, n: c_uint, flags: c_uint,
    ) {
        ready()?;
        cuUserObjectCreate(object, pointer, destroy, n, flags)
    }

    cudaUserObjectRelease(object: usize, n: c_uint) {
        cuUserObjectRelease(object, n)
    }

    cudaGraphRetainUserObject(graph: usize, object: usize, n: c_uint, flags: c_uint) {
        cuGraphRetainUserObject(graph, object, n, flags)
    }
}
