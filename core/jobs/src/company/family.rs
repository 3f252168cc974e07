//! What a process is to this one, by who started whom.

use super::command::{base_name, is_python};
use super::jupyter::kernel_id;
use super::{Facts, Kind, ProcessTable, Sight};

/// More generations than any family has, should the parents change while they are read.
const N_GENERATIONS: usize = 64;
/// Who takes over the children of a process that ends.
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
/// How the workers of Python's `multiprocessing` and of `PyTorch`'s loaders are known.
const WORKERS: [&str; 3] = [
    "multiprocessing.spawn",
    "multiprocessing.forkserver",
    "--multiprocessing-fork",
];
const LOADER: &str = "pt_data_worker";

/// How processes belong together.
pub(super) struct Family<'a> {
    pub(super) sightings: &'a ProcessTable,
}

impl<'a> Family<'a> {
    pub(super) fn of(sightings: &'a ProcessTable) -> Self {
        Self { sightings }
    }

    pub(super) fn facts(&self, pid: u32) -> Option<&'a Facts> {
        match self.sightings.processes.get(&pid)? {
            Sight::There(facts) => Some(facts),
            Sight::Hidden | Sight::Gone => None,
        }
    }

    fn is_gone(&self, pid: u32) -> bool {
        matches!(self.sightings.processes.get(&pid), Some(Sight::Gone))
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

    pub(super) fn kind(&self, pid: u32) -> Kind {
        if pid == self.sightings.own_pid {
            return Kind::Own;
        }
        let facts = self.facts(pid);
        let is_surely_here = self.sightings.are_ids_ours || facts.is_some_and(|it| it.has_gpu_open);
        // Newer drivers give those that a container cannot name the id 0.
        if pid == 0 || !is_surely_here {
            return Kind::Outside;
        }
        let Some(facts) = facts else {
            return if self.is_gone(pid) {
                Kind::Gone
            } else {
                Kind::Hidden
            };
        };
        let (ancestors, is_complete) = self.ancestors(pid);
        if facts.is_zombie {
            Kind::Zombie
        } else if ancestors.contains(&self.sightings.own_pid) {
            Kind::Child
        } else if let Some(id) = kernel_id(&facts.command) {
            self.kind_of_kernel(id, pid, facts, &ancestors, is_complete)
        } else if self.outlived_its_parent(facts) {
            Kind::LeftOver
        } else if ancestors.iter().any(|it| self.kernel_id(*it).is_some()) {
            Kind::KernelsChild
        } else {
            Kind::Process
        }
    }

    /// Of a process whose command line is a kernel's: so is that of every child that it forks.
    fn kind_of_kernel(
        &self,
        id: &str,
        pid: u32,
        facts: &Facts,
        ancestors: &[u32],
        is_complete: bool,
    ) -> Kind {
        // What starts a kernel may name its file as well, but leaves it a session of its own.
        let is_its_kernel = |ancestor: &u32| {
            let ancestor = self.facts(*ancestor);
            ancestor
                .is_some_and(|it| it.session == facts.session && kernel_id(&it.command) == Some(id))
        };
        if ancestors.iter().any(is_its_kernel) {
            return Kind::KernelsChild;
        }
        if !is_complete {
            return Kind::Kernel;
        }
        // A kernel leads its session; what it forks stays in it.
        let leader = facts
            .session
            .filter(|leader| *leader != pid && *leader != 0);
        if leader.is_some_and(|it| !ancestors.contains(&it)) {
            return Kind::LeftOver;
        }
        let lost_its_server = match facts.server_pid {
            Some(server) => !ancestors.contains(&server),
            None => self.has_reaper(facts),
        };
        if lost_its_server {
            Kind::OrphanedKernel
        } else {
            Kind::Kernel
        }
    }

    pub(super) fn kernel_id(&self, pid: u32) -> Option<&'a str> {
        kernel_id(&self.facts(pid)?.command)
    }

    /// Its parent ended before it, and it was not meant to be on its own: it is a worker, or the
    /// first of its group is gone, too.
    fn outlived_its_parent(&self, facts: &Facts) -> bool {
        let mut words = facts.command.iter();
        let is_worker =
            facts.name == LOADER || words.any(|word| WORKERS.iter().any(|it| word.contains(it)));
        let lost_its_leader = facts.group.is_some_and(|it| self.is_gone(it));
        self.has_reaper(facts) && (is_worker || lost_its_leader)
    }

    /// It was handed on to the process that takes in orphans. In a container that may be any
    /// program, a Python one among them, which then has children of its own.
    fn has_reaper(&self, facts: &Facts) -> bool {
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
