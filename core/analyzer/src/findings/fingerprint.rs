//! What a leak is recognised by in another session.

use std::fmt;

use super::{Finding, FindingKind};
use crate::cell;
use gpumem_model::holders::{Holder, path_steps};
use gpumem_model::recording::{Recording, RunIdx};
use gpumem_model::source_text;
use serde::{Serialize, Serializer};

/// The same for one leak in all sessions of a notebook, and when cells are added above: `3f9a01c2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u32);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Finding {
    /// Of growth, and of what should be gone: from its kind, the holder's name without indices, and the line of the
    /// cell. Neither the device nor the verdict counts, which more runs may change, nor the way from the holder to its
    /// largest object, which the next version of a library may.
    pub fn fingerprint(&self, recording: &Recording) -> Option<Fingerprint> {
        let kind = match self.kind {
            FindingKind::Leak | FindingKind::Growing => "growth",
            FindingKind::Outlived => "outlived",
            _ => return None,
        };
        // The number in `In [5]` is another one tomorrow.
        let of_run = |run: &RunIdx| cell::line(recording, recording.run(*run));
        let line = self.runs.last().and_then(of_run);
        let line = line.or_else(|| Some(self.cell.as_ref()?.id.clone()));
        let name = self.holders.first().map(name_without_indices);
        let path = self.path.join("/");
        let parts = [
            kind,
            &name.unwrap_or_default(),
            &line.unwrap_or_default(),
            &path,
        ]
        .join("\0");
        let hash = source_text::hash(&parts).0;
        Some(Fingerprint((hash >> 32) as u32))
    }
}

/// `trainer.logs['loss']` → `trainer.logs[]`. All displayed results are one, and so are threads that run one function.
fn name_without_indices(holder: &Holder) -> String {
    let name = holder.kind.series_name(&holder.name);
    let steps = path_steps(&name).into_iter();
    let steps = steps.map(|step| if step.starts_with('[') { "[]" } else { step });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{leak, run, session};
    use gpumem_model::recording::DeviceIdx;

    /// Of a finding on the last of these cells, held by that name.
    fn fingerprint(cells: &[&str], name: &str, change: impl Fn(&mut Finding)) -> String {
        let plays = [run(2), run(2)];
        let cells: Vec<_> = cells.iter().map(|text| (*text, &plays[..])).collect();
        let (recording, _) = session(&cells);
        let last = u32::try_from(cells.len() - 1).expect("few cells");
        let mut finding = leak(&recording, last, 2);
        finding.holders = vec![Holder {
            name: name.to_owned(),
            ..Holder::default()
        }];
        change(&mut finding);
        let found = finding.fingerprint(&recording);
        found.map_or_else(String::new, |it| it.to_string())
    }

    #[test]
    fn it_is_the_leak_that_counts() {
        let usual = fingerprint(&["losses.append(f())"], "losses", |_| {});
        assert_eq!(usual, "126ff0b3");
        let same = |cells: &[&str], name: &str, change: &dyn Fn(&mut Finding)| {
            fingerprint(cells, name, change) == usual
        };
        let line = "losses.append(f())";
        assert!(same(&["import gpumem", line], "losses", &|_| {}));
        assert!(same(&["x = 1\nlosses.append(f())"], "losses", &|_| {}));
        assert!(same(&[line], "losses", &|it| {
            it.device = DeviceIdx(1);
            it.kind = FindingKind::Growing;
        }));
        assert!(!same(&[line], "logs", &|_| {}));
        assert!(!same(&["losses.extend(f())"], "losses", &|_| {}));
        assert!(!same(&[line], "losses", &|it| it.kind = FindingKind::Outlived));
        let spiked = fingerprint(&[line], "losses", |it| it.kind = FindingKind::Spike);
        assert_eq!(spiked, "");
    }

    #[test]
    fn an_index_does_not_count() {
        let of_key = |name: &str| fingerprint(&["f()"], name, |_| {});
        assert_eq!(of_key("logs['a'][3]"), of_key("logs['b'][4]"));
        assert_ne!(of_key("logs['a'][3]"), of_key("logs['b'].x"));
    }
}
