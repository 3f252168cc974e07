//! Captures and graphs: which kinds of work they took, and nothing of what it does.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_void};

use played_machine::{put, read};

use crate::calls::{Answer, EntryPoint};
use crate::code::Code;
use crate::handles::{Handle, fresh};
use crate::process::{Process, process};

/// `CUgraphNodeType`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeKind(c_int);

impl NodeKind {
    pub(crate) const KERNEL: Self = Self(0);
    pub(crate) const COPY: Self = Self(1);
    pub(crate) const FILL: Self = Self(2);
    pub(crate) const HOST: Self = Self(3);
    const EMPTY: Self = Self(5);
    pub(crate) const ALLOCATION: Self = Self(10);
    pub(crate) const RELEASE: Self = Self(11);
    pub(crate) const BATCH: Self = Self(12);
}

/// A graph: its nodes in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Handle>,
}

/// A graph that can be launched.
#[derive(Debug, Default)]
pub(crate) struct GraphExec {
    flags: u64,
}

/// A capture under way.
#[derive(Debug)]
pub(crate) struct Capture {
    graph: Handle,
    /// The last node at an address that the caller may keep until its next call.
    last: Box<Handle>,
}

const CAPTURES: c_int = 1;

impl Process {
    fn add_node(&mut self, graph: Handle, kind: NodeKind) -> Result<Handle, Code> {
        let node = self.nodes.add(kind);
        self.graphs.get_mut(graph)?.nodes.push(node);
        Ok(node)
    }

    /// Adds work that a capture has taken.
    pub(crate) fn add_captured(&mut self, capture: Handle, kind: NodeKind) -> Answer {
        let graph = self.captures.get(capture)?.graph;
        let node = self.add_node(graph, kind)?;
        *self.captures.get_mut(capture)?.last = node;
        Ok(())
    }
}

/// Where a caller wants to know of a capture; places that it does not give are null.
struct Places {
    status: *mut c_int,
    id: *mut u64,
    graph: *mut Handle,
    last: *mut *const Handle,
    n_last: *mut usize,
}

/// Since CUDA 12 the shorter name finds this one, too.
pub(crate) const INSTANTIATE: EntryPoint = EntryPoint {
    symbol: "cuGraphInstantiate",
    since: 12000,
    address: || cuGraphInstantiateWithFlags as *const c_void,
};

calls! {
    [10010]
    cuStreamBeginCapture_v2(_call, stream: Handle, _mode: c_int) {
        let graph = process()?.graphs.add(Graph::default());
        begin(stream, graph)
    }

    cuStreamBeginCaptureToGraph(
        _call, stream: Handle, graph: Handle, _dependencies: usize, _edges: usize, _n: usize, _mode: c_int,
    ) {
        begin(stream, graph)
    }

    cuStreamEndCapture(_call, stream: Handle, graph: *mut Handle) {
        let mut process = process()?;
        let capture = process.stream(stream)?.capture.ok_or(Code::ILLEGAL_STATE)?;
        for stream in process.streams.values_mut().filter(|it| it.capture == Some(capture)) {
            stream.capture = None;
        }
        for event in process.events.values_mut().filter(|it| it.capture == Some(capture)) {
            event.capture = None;
        }
        Ok(put(graph, process.captures.remove(capture)?.graph)?)
    }

    cuStreamIsCapturing(_call, stream: Handle, status: *mut c_int) {
        let capture = process()?.stream(stream)?.capture;
        Ok(put(status, capture.map_or(0, |_| CAPTURES))?)
    }

    [11030]
    cuStreamGetCaptureInfo_v2(
        _call, stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle,
        last: *mut *const Handle, n_last: *mut usize,
    ) {
        of_capture(stream, &Places { status, id, graph, last, n_last })
    }

    [12030]
    cuStreamGetCaptureInfo_v3(
        _call, stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle,
        last: *mut *const Handle, edges: *mut usize, n_last: *mut usize,
    ) {
        write_unless_null(edges, 0)?;
        of_capture(stream, &Places { status, id, graph, last, n_last })
    }

    cuStreamUpdateCaptureDependencies(_call, stream: Handle) {
        process()?.stream(stream).map(|_| ())
    }

    cuThreadExchangeStreamCaptureMode(_call, mode: *mut c_int) {
        thread_local! {
            static MODE: Cell<c_int> = const { Cell::new(0) };
        }
        Ok(put(mode, MODE.replace(read(mode)?))?)
    }

    cuGraphCreate(_call, graph: *mut Handle, _flags: c_uint) {
        Ok(put(graph, process()?.graphs.add(Graph::default()))?)
    }

    cuGraphDestroy(_call, graph: Handle) {
        let mut process = process()?;
        for node in process.graphs.remove(graph)?.nodes {
            process.nodes.remove(node)?;
        }
        Ok(())
    }

    cuGraphGetNodes(_call, graph: Handle, nodes: *mut Handle, count: *mut usize) {
        let process = process()?;
        let known = &process.graphs.get(graph)?.nodes;
        if !nodes.is_null() {
            for (idx, node) in known.iter().take(read(count)?).enumerate() {
                put(nodes.wrapping_add(idx), *node)?;
            }
        }
        Ok(put(count, known.len())?)
    }

    cuGraphNodeGetType(_call, node: Handle, kind: *mut c_int) {
        Ok(put(kind, process()?.nodes.get(node)?.0)?)
    }

    cuGraphAddEmptyNode(_call, node: *mut Handle, graph: Handle, _dependencies: usize, _n: usize) {
        Ok(put(node, process()?.add_node(graph, NodeKind::EMPTY)?)?)
    }

    cuGraphAddKernelNode_v2(
        _call, node: *mut Handle, graph: Handle, _dependencies: usize, _n: usize, _kernel: usize,
    ) {
        Ok(put(node, process()?.add_node(graph, NodeKind::KERNEL)?)?)
    }

    [10000]
    cuGraphInstantiate_v2(_call, exec: *mut Handle, graph: Handle, _node: usize, _log: usize, _n: usize) {
        instantiate(exec, graph, 0)
    }

    cuGraphInstantiateWithFlags(_call, exec: *mut Handle, graph: Handle, flags: u64) {
        instantiate(exec, graph, flags)
    }

    cuGraphExecGetFlags(_call, exec: Handle, flags: *mut u64) {
        Ok(put(flags, process()?.graph_execs.get(exec)?.flags)?)
    }

    cuGraphUpload(_call, exec: Handle, _stream: Handle) {
        process()?.graph_execs.get(exec).map(|_| ())
    }

    cuGraphLaunch(_call, exec: Handle, _stream: Handle) {
        process()?.graph_execs.get(exec).map(|_| ())
    }

    cuGraphExecDestroy(_call, exec: Handle) {
        process()?.graph_execs.remove(exec).map(|_| ())
    }

    cuGraphExecUpdate_v2(_call, exec: Handle, _graph: Handle, _result: usize) {
        process()?.graph_execs.get(exec).map(|_| ())
    }

    cuGraphDebugDotPrint(_call, graph: Handle, _path: *const c_char, _flags: c_uint) {
        process()?.graphs.get(graph).map(|_| ())
    }

    cuUserObjectCreate(
        _call, object: *mut Handle, _pointer: usize, _destroy: usize, _n: c_uint, _flags: c_uint,
    ) {
        Ok(put(object, fresh())?)
    }

    cuUserObjectRelease(_call, _object: Handle, _n: c_uint) {
        Ok(())
    }

    cuGraphRetainUserObject(_call, graph: Handle, _object: Handle, _n: c_uint, _flags: c_uint) {
        process()?.graphs.get(graph).map(|_| ())
    }
}

fn begin(stream: Handle, graph: Handle) -> Answer {
    let mut process = process()?;
    process.graphs.get(graph)?;
    if process.stream(stream)?.capture.is_some() {
        return Err(Code::ILLEGAL_STATE);
    }
    let last = Box::default();
    let capture = process.captures.add(Capture { graph, last });
    process.stream(stream)?.capture = Some(capture);
    Ok(())
}

fn of_capture(stream: Handle, places: &Places) -> Answer {
    let mut process = process()?;
    let Some(id) = process.stream(stream)?.capture else {
        return write_unless_null(places.status, 0);
    };
    let capture = process.captures.get(id)?;
    write_unless_null(places.status, CAPTURES)?;
    write_unless_null(places.id, id as u64)?;
    write_unless_null(places.graph, capture.graph)?;
    write_unless_null(places.last, std::ptr::from_ref(&*capture.last))?;
    write_unless_null(places.n_last, usize::from(*capture.last != 0))
}

fn write_unless_null<T>(place: *mut T, figure: T) -> Answer {
    if place.is_null() {
        return Ok(());
    }
    Ok(put(place, figure)?)
}

fn instantiate(exec: *mut Handle, graph: Handle, flags: u64) -> Answer {
    let mut process = process()?;
    process.graphs.get(graph)?;
    Ok(put(exec, process.graph_execs.add(GraphExec { flags }))?)
}
