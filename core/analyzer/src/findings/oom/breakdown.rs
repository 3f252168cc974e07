//! The parts of a device when memory ran out.

use super::super::oom_breakdown::{OomBreakdown, OomPart, OomShare};
use super::{Case, causes};
use gpumem_model::units::Bytes;

impl Case<'_> {
    pub(super) fn breakdown(&self) -> OomBreakdown {
        let (others_used, others) = self.others();
        let parts = [
            (OomPart::Tensors, self.allocated()),
            (OomPart::Cache, self.unallocated()),
            (OomPart::Context, self.beside()),
            (OomPart::Others, others_used),
            (OomPart::Free, self.free()),
        ];
        let known = parts
            .into_iter()
            .filter_map(|(part, size)| Some(OomShare { part, size: size? }));
        let run = self.outermost.idx;
        OomBreakdown {
            wanted: self.figures().wanted,
            free: self.available(),
            total: self.figures().total.or(self.now.capacity),
            room: self.room(),
            parts: known.filter(|it| it.size > Bytes::ZERO).collect(),
            largest_free: self.figures().largest_free,
            missing: self.missing(),
            mapped: self.recording.mapped(run, self.device).map(|_| run),
            elsewhere: self.elsewhere,
            survived: self.survived(),
            n_times: self.n_times(),
            others: others.iter().map(|other| other.pid).collect(),
            holders: self.oom.holders.clone(),
            cures: Vec::new(),
            causes: if self.is_over() {
                Vec::new()
            } else {
                causes::of_case(self)
            },
        }
    }
}
