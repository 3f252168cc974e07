//! The relation of a process to this one, by parents and children.

use super::command::{base_name, is_python};
use super::jupyter::kernel_id;
use super::{ProcessFacts, ProcessKind, ProcessLookup, ProcessTable};

/// Limit on generations, because parents may change while they are read.
const N_GENERATIONS: usize = 64;
/// The process that adopts orphans.
const REAPERS: [&str; 8] = [
    "systemd",
    "init",
    "tini",
    "dumb-init",
    "docker-init",
    "catatonit",
    "s6-svscan",
    "runit",
];
/// Marks of workers of Python's `multiprocessing` and of `PyTorch`'s loaders.
const WORKERS: [&str; 3] = [
    "multiprocessing.spawn",
    "multiprocessing.forkserver",
    "--multiprocessing-fork",
];
const LOADER: &str = "pt_data_worker";

/// How processes belong together.
pub(super) struct Family<'a> {
    pub(super) table: &'a ProcessTable,
}

impl<'a> Family<'a> {
    pub(super) fn new(table: &'a ProcessTable) -> Self {
        Self { table }
    }

    pub(super) fn facts(&self, pid: u32) -> Option<&'a ProcessFacts> {
        match self.table.processes.get(&pid)? {
            ProcessLookup::Found(facts) => Some(facts),
            ProcessLookup::Hidden | ProcessLookup::Gone => None,
        }
    }

    fn is_gone(&self, pid: u32) -> bool {
        matches!(self.table.processes.get(&pid), Some(ProcessLookup::Gone))
    }

    /// The nearest first; and whether that is all of them.
    fn ancestors(&self, pid: u32) -> (Vec<u32>, bool) {
        let mut ancestors = Vec::new();
        let mut next = self.facts(pid).and_then(|it| it.parent);
        while let Some(parent) = next {
            if parent == 0 {
                return (ancestors, true);
            }
            if ancestors.len() == N_GENERATIONS {
                break;
            }
            ancestors.push(parent);
            next = self.facts(parent).and_then(|it| it.parent);
        }
        (ancestors, false)
    }

    pub(super) fn kind(&self, pid: u32) -> ProcessKind {
        if pid == self.table.own_pid {
            return ProcessKind::Own;
        }
        let facts = self.facts(pid);
        let is_surely_here = self.table.are_ids_ours || facts.is_some_and(|it| it.has_gpu_open);
        // Newer drivers give those that a container cannot name the id 0.
        if pid == 0 || !is_surely_here {
            return ProcessKind::Outside;
        }
        let Some(facts) = facts else {
            return if self.is_gone(pid) {
                ProcessKind::Gone
            } else {
                ProcessKind::Hidden
            };
        };
        let (ancestors, is_complete) = self.ancestors(pid);
        if facts.is_zombie {
            ProcessKind::Zombie
        } else if ancestors.contains(&self.table.own_pid) {
            ProcessKind::Child
        } else if let Some(id) = kernel_id(&facts.command) {
            self.kind_of_kernel(id, pid, facts, &ancestors, is_complete)
        } else if self.outlived_its_parent(facts) {
            ProcessKind::LeftOver
        } else if ancestors.iter().any(|it| self.kernel_id(*it).is_some()) {
            ProcessKind::KernelsChild
        } else {
            ProcessKind::Process
        }
    }

    /// Kind of a process with a kernel's command line (forked children have the same one).
    fn kind_of_kernel(
        &self,
        id: &str,
        pid: u32,
        facts: &ProcessFacts,
        ancestors: &[u32],
        is_complete: bool,
    ) -> ProcessKind {
        // A process that starts a kernel may name its file as well, but the kernel leads its own session.
        let is_its_kernel = |ancestor: &u32| {
            let ancestor = self.facts(*ancestor);
            ancestor
                .is_some_and(|it| it.session == facts.session && kernel_id(&it.command) == Some(id))
        };
        if ancestors.iter().any(is_its_kernel) {
            return ProcessKind::KernelsChild;
        }
        if !is_complete {
            return ProcessKind::Kernel;
        }
        // A kernel leads its session; its forks stay in it.
        let leader = facts
            .session
            .filter(|leader| *leader != pid && *leader != 0);
        if leader.is_some_and(|it| !ancestors.contains(&it)) {
            return ProcessKind::LeftOver;
        }
        let lost_its_server = match facts.server_pid {
            Some(server) => !ancestors.contains(&server),
            None => self.has_reaper(facts),
        };
        if lost_its_server {
            ProcessKind::OrphanedKernel
        } else {
            ProcessKind::Kernel
        }
    }

    pub(super) fn kernel_id(&self, pid: u32) -> Option<&'a str> {
        kernel_id(&self.facts(pid)?.command)
    }

    /// Its parent ended before it, and it was not meant to be on its own: it is a worker, or the
    /// first of its group is gone, too.
    fn outlived_its_parent(&self, facts: &ProcessFacts) -> bool {
        let mut words = facts.command.iter();
        let is_worker =
            facts.name == LOADER || words.any(|word| WORKERS.iter().any(|it| word.contains(it)));
        let lost_its_leader = facts.group.is_some_and(|it| self.is_gone(it));
        self.has_reaper(facts) && (is_worker || lost_its_leader)
    }

    /// It was handed on to the process that takes in orphans. In a container that may be any
    /// program, a Python one among them, which then has children of its own.
    fn has_reaper(&self, facts: &ProcessFacts) -> bool {
        let Some(parent) = facts.parent else {
            return false;
        };
        let Some(of_parent) = self.facts(parent) else {
            return parent == 1;
        };
        let program = of_parent.command.first().map_or("", |it| base_name(it));
        REAPERS.contains(&of_parent.name.as_str()) || (parent == 1 && !is_python(program))
    }
}
