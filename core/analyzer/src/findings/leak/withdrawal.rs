//! When growth is no concern any more.

use super::super::Withdrawn;
use super::{Judged, STILL_THERE};
use crate::context::Context;
use crate::row::of_sample;
use gpumem_model::recording::{RunIdx, RunKind, Sample};
use gpumem_model::units::Bytes;

impl Judged {
    pub(super) fn reason_to_withdraw(&self, context: Context<'_>) -> Option<Withdrawn> {
        let Context {
            recording, rows, ..
        } = context;
        let last = recording.run(*self.runs.last()?);
        let is_edited = self.is_edited_since_it_grew(context)
            || recording.runs()[last.idx.get() + 1..].iter().any(|run| {
                run.kind == RunKind::Cell && run.cell == last.cell && run.revision != last.revision
            });
        let mut of_device = rows.for_device(self.key.device);
        let outside = recording.outside_reading(self.key.device).map(|reading| {
            let sample = Sample::from_reading(reading);
            of_sample(&sample, self.metric)
        });
        let level_now = outside.unwrap_or_else(|| {
            of_device
                .rfind(|row| row.metric == self.metric)
                .filter(|row| row.run > last.idx)
                .and_then(|row| row.after)
        });
        let kept = self.kept().magnitude();
        let freed = rows.freed_outside(recording, self.key.device);
        let is_freed = freed.as_f64() >= STILL_THERE * kept.as_f64();
        let nearly_all = Bytes::new(kept.get() - kept.get() / 10);
        let left_after_it = rows
            .row(last.idx, self.key.device)
            .and_then(|row| row.after)
            .map_or(self.start, |after| after.saturating_sub(nearly_all));
        let nearly_start = self.start + Bytes::new(kept.get() / 10);
        let has_let_go = self.has_let_go(context).filter(|_| !is_freed);
        match level_now {
            _ if has_let_go == Some(true) && !self.steps => Some(Withdrawn::GivenBack),
            // If the name still has it, the level fell by what others freed.
            Some(level)
                if level <= nearly_start.max(left_after_it) && has_let_go != Some(false) =>
            {
                Some(Withdrawn::GivenBack)
            }
            _ if is_edited => Some(Withdrawn::Edited),
            _ => None,
        }
    }

    /// A name may grow through edits; after one of them it has not.
    fn is_edited_since_it_grew(&self, context: Context<'_>) -> bool {
        if self.levels.len() != self.runs.len() {
            return false;
        }
        let grew = (1..self.levels.len()).rfind(|idx| self.levels[*idx] > self.levels[*idx - 1]);
        let revision = |run: &RunIdx| context.recording.run(*run).revision;
        let of_growth = self.runs.get(grew.unwrap_or_default()).map(revision);
        of_growth != self.runs.last().map(revision)
    }

    /// Whether the latest look, if it is after its last run, found less than half of what the name had gained.
    fn has_let_go(&self, context: Context<'_>) -> Option<bool> {
        let (device, recording) = (self.key.device, context.recording);
        let latest = recording.latest_holders(device).map(|(run, _)| run);
        let run = latest.filter(|run| self.runs.last().is_some_and(|last| run > last))?;
        let holder = self.growers.holders.first()?;
        let name = context.names.key(device, holder);
        let left = context.names.level(device, &name, run)?;
        let gained = holder.grown.unwrap_or_default();
        Some(left.as_f64() < STILL_THERE * gained.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{run, session};
    use crate::{Rules, analyze};

    #[test]
    fn where_names_are_not_followed_none_has_let_go() {
        let grows = vec![run(64).held_by("kept", "list"); 12];
        let later = [run(1).held_by("y", "Tensor")];
        let (recording, _) = session(&[("kept.append(t)", &grows), ("y = f()", &later)]);
        let findings = analyze(&recording, &Rules::default()).findings;
        assert_eq!(findings[0].withdrawn, None);
        assert_eq!(findings[0].holders[0].name, "kept");
    }
}
