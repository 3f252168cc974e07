//! What kind of name keeps memory alive.

use std::borrow::Cow;

use crate::named;

named! {
    /// What kind of name keeps an object alive. The order is that in which paths prefer them: first what
    /// the user can see and change.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum RootKind {
        /// A variable of the notebook.
        Variable = "variable",
        /// A variable of a module of the user's own.
        ModuleGlobal = "module_global",
        /// A local variable of a function that runs, or all that a thread or a suspended task has in its own:
        /// `outs in encode()`, `load() in Thread-7`.
        ThreadFrame = "thread_frame",
        /// What a `%run` script left.
        RunModule = "run_module",
        /// Displayed results: `Out`, `_`, and IPython's hidden copies of them.
        OutputHistory = "output_history",
        /// The frames of the last exception.
        Traceback = "traceback",
        /// What `%debug` looked at.
        Debugger = "debugger",
        /// Workspaces and similar objects that libraries keep for themselves.
        System = "system",
        /// Objects that only refer to each other; the next collection frees them.
        CyclicGarbage = "cyclic_garbage",
        /// The same while the garbage collector is off: nothing frees them.
        UncollectedGarbage = "uncollected_garbage",
        /// A tensor that keeps itself: no name reaches it, the graph of autograd that it refers to has saved it,
        /// and Python's collector does not see that.
        GraphCycle = "graph_cycle",
        /// The same through its gradient, which has a graph: `backward(create_graph=True)`.
        GradientCycle = "gradient_cycle",
        /// The same where a hook of `saved_tensors_hooks` packed the tensor as it is.
        HookCycle = "hook_cycle",
        /// No name reaches it.
        #[default]
        Unnamed = "unnamed",
    }
}

impl RootKind {
    /// The name under which names of this kind are compared from one search to the next: what comes
    /// anew each time, as a displayed result or a thread, is one.
    pub fn series_name(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::OutputHistory => "Out".into(),
            Self::ThreadFrame => name.split(" in ").next().unwrap_or_default().into(),
            _ => name.into(),
        }
    }

    /// A description to follow the name; `None` for variables, which need none.
    pub const fn description(self) -> Option<&'static str> {
        match self {
            Self::Variable => None,
            Self::ModuleGlobal => Some("of a module"),
            Self::ThreadFrame => Some("still running"),
            Self::RunModule => Some("left by %run"),
            Self::OutputHistory => Some("displayed result"),
            Self::Traceback => Some("last exception"),
            Self::Debugger => Some("debugger"),
            Self::System => Some("library"),
            Self::CyclicGarbage => Some("freed by the next gc.collect()"),
            Self::UncollectedGarbage => Some("the garbage collector is off"),
            Self::GraphCycle | Self::GradientCycle | Self::HookCycle => {
                Some("its own graph keeps it")
            }
            Self::Unnamed => Some("no name reaches it"),
        }
    }

    /// The command that makes it let go, if there is one.
    pub const fn release(self) -> Option<&'static str> {
        match self {
            Self::OutputHistory => Some("%gpumem release outputs"),
            Self::Traceback | Self::Debugger => Some("%gpumem release traceback"),
            Self::RunModule => Some("get_ipython().clear_main_mod_cache()"),
            Self::CyclicGarbage => Some("%gpumem release cycles"),
            Self::UncollectedGarbage => Some("import gc; gc.enable(); gc.collect()"),
            _ => None,
        }
    }

    /// The user has a name for it.
    pub const fn is_named(self) -> bool {
        matches!(
            self,
            Self::Variable | Self::ModuleGlobal | Self::ThreadFrame
        )
    }

    /// Objects that only refer to each other.
    pub const fn is_garbage(self) -> bool {
        matches!(self, Self::CyclicGarbage | Self::UncollectedGarbage)
    }

    /// A tensor that keeps itself through the graph of autograd.
    pub const fn is_graph_cycle(self) -> bool {
        matches!(
            self,
            Self::GraphCycle | Self::GradientCycle | Self::HookCycle
        )
    }

    /// IPython keeps it in addition to what the user named.
    pub const fn is_ipython(self) -> bool {
        matches!(
            self,
            Self::RunModule | Self::OutputHistory | Self::Traceback | Self::Debugger
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_come_anew_each_time_are_one() {
        let check = |kind: RootKind, name, series| assert_eq!(kind.series_name(name), series);
        check(RootKind::OutputHistory, "Out[3]", "Out");
        check(RootKind::ThreadFrame, "load() in Thread-7 (load)", "load()");
        check(RootKind::Variable, "model_7", "model_7");
    }
}
