//! Two files of one kind compared: what is other in the later one.

use std::collections::HashSet;

use gpumem_model::units::{ByteDelta, Bytes};
use gpumem_report::columns::{cut, to_text, wrapped};
use serde::Serialize;

use super::Content;

/// At most this many owners of a device are listed, those that changed most.
const N_OWNERS: usize = 15;

/// A figure of a file that another file of its kind has, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFigure {
    /// `GPU 0`, or what else it is of.
    pub device: String,
    /// What is measured: `peak`; or who owns it: `train.py:7 in step`.
    pub name: String,
    /// How much.
    pub bytes: Bytes,
    /// Whether it is one of many owners; else it is a level of the device.
    pub is_owner: bool,
}

impl FileFigure {
    pub(super) fn level(device: &str, name: &str, bytes: Bytes) -> Self {
        Self {
            device: device.to_owned(),
            name: name.to_owned(),
            bytes,
            is_owner: false,
        }
    }

    pub(super) fn owner(device: &str, name: String, bytes: Bytes) -> Self {
        Self {
            name,
            is_owner: true,
            ..Self::level(device, "", bytes)
        }
    }
}

/// Two files of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileComparison {
    #[serde(skip)]
    kind: &'static str,
    devices: Vec<ComparedFiles>,
}

/// A device of either file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ComparedFiles {
    label: String,
    levels: Vec<Pair>,
    /// Those that changed, most first.
    owners: Vec<Pair>,
}

/// A figure before and after; `None` if the file does not have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Pair {
    name: String,
    bytes: (Option<Bytes>, Option<Bytes>),
}

impl Pair {
    fn change(&self) -> ByteDelta {
        let [before, after] = [self.bytes.0, self.bytes.1].map(Option::unwrap_or_default);
        after - before
    }
}

impl FileComparison {
    /// `None` if they are not of one kind, or have nothing to compare.
    pub fn between(before: &dyn Content, after: &dyn Content) -> Option<Self> {
        let is_same = before.kind() == after.kind();
        let (old, new) = before
            .measures()
            .zip(after.measures())
            .filter(|_| is_same)?;
        let mut known = HashSet::new();
        let labels = new.iter().chain(&old).map(|it| it.device.as_str());
        let labels = labels.filter(|label| known.insert(*label));
        let devices = labels.map(|label| {
            let (owners, levels) = pairs(&old, &new, label);
            ComparedFiles {
                label: label.to_owned(),
                levels,
                owners,
            }
        });
        Some(Self {
            kind: after.kind(),
            devices: devices.collect(),
        })
    }
}

/// The owners and the levels of a device.
fn pairs(old: &[FileFigure], new: &[FileFigure], device: &str) -> (Vec<Pair>, Vec<Pair>) {
    let (mut owners, mut levels): (Vec<Pair>, Vec<Pair>) = (Vec::new(), Vec::new());
    for (measures, is_after) in [(new, true), (old, false)] {
        for measure in measures.iter().filter(|it| it.device == device) {
            let list = if measure.is_owner {
                &mut owners
            } else {
                &mut levels
            };
            let at = list.iter().position(|it| it.name == measure.name);
            let at = at.unwrap_or_else(|| {
                list.push(Pair {
                    name: measure.name.clone(),
                    bytes: (None, None),
                });
                list.len() - 1
            });
            let (before, after) = &mut list[at].bytes;
            let side = if is_after { after } else { before };
            // Two devices of one label, or two owners of one name.
            *side = Some(side.unwrap_or_default() + measure.bytes);
        }
    }
    owners.retain(|pair| pair.change() != ByteDelta::ZERO);
    owners.sort_by(|a, b| {
        let size = |pair: &Pair| pair.change().magnitude();
        size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
    });
    (owners, levels)
}

impl Content for FileComparison {
    fn kind(&self) -> &'static str {
        "a comparison of two files"
    }

    /// The levels of each device before and after, and which owners changed.
    fn text(&self, width: usize) -> String {
        let title = format!("{}, before and after", self.kind);
        let mut lines = vec![cut(&title, width)];
        for device in &self.devices {
            lines.push(String::new());
            lines.push(cut(&device.label, width));
            lines.extend(
                device
                    .levels
                    .iter()
                    .map(|pair| wrapped(&level(pair), width)),
            );
            if device.owners.is_empty() && device.levels.is_empty() {
                lines.push("  nothing changed".to_owned());
            }
            for pair in device.owners.iter().take(N_OWNERS) {
                let change = pair.change().to_string();
                lines.push(cut(&format!("    {change:>10}  {}", pair.name), width));
            }
            let rest = device.owners.get(N_OWNERS..).unwrap_or_default();
            if !rest.is_empty() {
                let change: ByteDelta = rest
                    .iter()
                    .fold(ByteDelta::ZERO, |sum, it| sum + it.change());
                let change = change.to_string();
                lines.push(format!("    {change:>10}  {} more", rest.len()));
            }
        }
        to_text(&lines)
    }

    /// Fields named `bytes` are pairs: in the earlier file, and in the later one; unknown is `null`.
    fn json(&self) -> String {
        serde_json::to_string(self).expect("a comparison holds strings and numbers only")
    }

    fn repr(&self) -> String {
        self.text(100)
    }
}

fn level(pair: &Pair) -> String {
    let name = &pair.name;
    match pair.bytes {
        (Some(before), Some(after)) if before == after => format!("  {name} {after} in both"),
        (Some(before), Some(after)) => {
            format!("  {name} {before} → {after} ({})", after - before)
        }
        (None, Some(after)) => format!("  {name} {after}, not there before"),
        (before, None) => format!("  {name} {}, no longer there", before.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use gpumem_readers::nvidia_smi;

    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &str) {
        let [before, after] =
            [before, after].map(|text| nvidia_smi::read(text.as_bytes()).expect("a log"));
        let compared = FileComparison::between(&before, &after).expect("logs have levels");
        assert_eq!(compared.text(100), expected);
    }

    #[test]
    fn levels_of_logs_are_compared_by_device() {
        check(
            "index, memory.used [MiB]\n0, 10 MiB\n0, 700 MiB\n0, 20 MiB\n1, 5 MiB\n",
            "index, memory.used [MiB]\n0, 10 MiB\n0, 900 MiB\n0, 300 MiB\n2, 7 MiB\n",
            "a log of memory levels, before and after\n\n\
             GPU 0\n  used at first 10 MiB in both\n  used at last 20 MiB → 300 MiB (+280 MiB)\n  \
             used at its peak 700 MiB → 900 MiB (+200 MiB)\n\n\
             GPU 2\n  used at first 7 MiB, not there before\n  used at last 7 MiB, not there before\n  \
             used at its peak 7 MiB, not there before\n\n\
             GPU 1\n  used at first 5 MiB, no longer there\n  used at last 5 MiB, no longer there\n  \
             used at its peak 5 MiB, no longer there",
        );
    }
}
