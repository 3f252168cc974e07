//! What an event with a duration is, by its category.

use super::function;

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum SpanKind {
    /// An operator on the CPU.
    Operator,
    /// A call of the device's runtime or driver.
    Runtime,
    /// A kernel, copy or fill on a device.
    Kernel,
    /// A labelled range: `record_function`, a step.
    Range,
    /// A call of a module.
    Module,
    /// A call of a Python function outside of torch and of Python's own library.
    Function,
}

/// Names of steps begin with this; a number follows.
pub(super) const STEP: &str = "ProfilerStep#";

/// Names of calls of modules begin with this.
pub(super) const MODULE: &str = "nn.Module: ";

impl SpanKind {
    /// The kind of an event, if it counts: Python's and torch's own functions, spans of the profiler and copies
    /// of ranges on a device do not.
    pub(super) fn classify(category: &str, name: &str, process: &str) -> Option<Self> {
        let is_any = |names: &[&str]| names.iter().any(|name| category.eq_ignore_ascii_case(name));
        if is_any(&["cpu_op", "operator"]) {
            Some(if name.starts_with(STEP) {
                Self::Range
            } else {
                Self::Operator
            })
        } else if is_any(&["user_annotation"]) {
            Some(Self::Range)
        } else if is_any(&["python_function"]) {
            if name.starts_with(MODULE) {
                Some(Self::Module)
            } else {
                function::is_outside(name).then_some(Self::Function)
            }
        } else if is_any(&["kernel", "memcpy", "memset", "gpu_memcpy", "gpu_memset"]) {
            Some(Self::Kernel)
        } else if is_any(&["runtime"])
            || category.ends_with("_runtime")
            || category.ends_with("_driver")
        {
            Some(Self::Runtime)
        } else if category.is_empty() {
            // Profilers before Kineto: no categories, one process for each side.
            if process.starts_with("CUDA") {
                Some(Self::Kernel)
            } else {
                process.starts_with("CPU").then_some(Self::Operator)
            }
        } else {
            None
        }
    }
}
