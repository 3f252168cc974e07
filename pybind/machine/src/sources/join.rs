//! One device, several sources: which devices are the same, and what their
//! sources say together.

use gpumem_model::recording::{DeviceKey, DeviceKind, DriverLevels, Level, Source, Unknown};

use super::drivers::{DriverAnswer, Planned, joined};
use super::{Answer, SourceDevice};

/// A device that is read now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) found: SourceDevice,
    /// The sources that answer for it, each with the key that it gives it.
    sources: Vec<(Source, DeviceKey)>,
}

impl Joined {
    /// The key that a source gives it; `None` where the source does not know it.
    pub(super) fn key_for(&self, source: Source) -> Option<&DeviceKey> {
        let mut sources = self.sources.iter();
        let of_source = sources.find(|(of, _)| *of == source);
        of_source.map(|(_, key)| key)
    }

    /// What its drivers say together.
    pub(super) fn levels(&self, said: &[DriverAnswer]) -> DriverLevels {
        said.iter()
            .filter_map(|said| {
                let key = self.key_for(said.source)?;
                said.response.levels_of(key).cloned()
            })
            .reduce(joined)
            .unwrap_or_default()
    }

    /// How it is sampled: NVML reads without a context what CUDA reads with one.
    pub(super) fn plan(&self) -> Planned {
        let has_nvml = self.key_for(Source::Nvml).is_some();
        let sources = self.sources.iter();
        Planned {
            key: self.found.key.clone(),
            sources: sources
                .filter(|(source, _)| !(has_nvml && *source == Source::Cuda))
                .cloned()
                .collect(),
        }
    }
}

/// The devices of all answers, each once: real ones, the simulated one, the host.
pub(super) fn join(answers: &[(Source, Answer)]) -> Vec<Joined> {
    let mut devices: Vec<Joined> = Vec::new();
    for (source, answer) in answers {
        for found in answer.iter().flatten() {
            let source = (*source, found.key.clone());
            match devices.iter_mut().find(|it| are_same(&it.found, found)) {
                Some(joined) => {
                    joined.sources.push(source);
                    if is_provisional(&joined.found) {
                        joined.found.label.clone_from(&found.label);
                    }
                }
                None => devices.push(Joined {
                    found: found.clone(),
                    sources: vec![source],
                }),
            }
        }
    }
    // CUDA has listed its visible devices.
    if devices.iter().any(|it| it.key_for(Source::Cuda).is_some()) {
        devices.retain(|it| it.sources.iter().any(|(source, _)| *source != Source::Nvml));
    }
    devices.sort_by_key(|joined| match joined.found.kind {
        DeviceKind::Gpu => 0,
        DeviceKind::Simulated => 1,
        DeviceKind::Managed => 2,
        DeviceKind::Pinned => 3,
        DeviceKind::Host => 4,
    });
    devices
}

/// By UUID; by CUDA's number where a framework gives no UUID.
fn are_same(one: &SourceDevice, other: &SourceDevice) -> bool {
    match (uuid(&one.key), uuid(&other.key)) {
        (Some(one), Some(other)) => one == other,
        _ => one.label == other.label,
    }
}

/// Not every source reports that a device is a part of a GPU.
fn uuid(key: &DeviceKey) -> Option<&str> {
    let key = key.as_str();
    key.strip_prefix("GPU-").or(key.strip_prefix("MIG-"))
}

/// NVML's own number, while CUDA's is unknown.
fn is_provisional(found: &SourceDevice) -> bool {
    found.label.starts_with("nvml:")
}

/// A level of a device: the device's label, the level's name, and what is known of it.
pub(super) type NamedLevel<'a> = (&'a str, &'static str, &'a Level);

pub(super) fn levels_said(said: &DriverAnswer) -> impl Iterator<Item = NamedLevel<'_>> {
    said.response.levels.iter().flat_map(|(key, levels)| {
        let mut found = said.response.devices.iter().flatten();
        let found = found.find(|it| it.key == *key);
        let label = found.map_or(key.as_str(), |it| it.label.as_str());
        levels.named().map(|(name, level)| (label, name, level))
    })
}

/// What of these levels is not known, and why: each reason once.
pub(super) fn notes<'a>(levels: impl Iterator<Item = NamedLevel<'a>>) -> Vec<String> {
    let mut notes: Vec<Note<'_>> = Vec::new();
    for (label, name, level) in levels {
        let Some(why) = why_unknown(level) else {
            continue;
        };
        if !notes.iter().any(|note| note.why == why) {
            notes.push(Note {
                why,
                labels: Vec::new(),
                names: Vec::new(),
            });
        }
        for note in notes.iter_mut().filter(|note| note.why == why) {
            note.labels.push(label);
            note.names.push(name);
        }
    }
    notes.into_iter().map(Note::into_text).collect()
}

/// One reason, and all that is unknown for it.
struct Note<'a> {
    why: &'a str,
    labels: Vec<&'a str>,
    names: Vec<&'a str>,
}

impl Note<'_> {
    fn into_text(mut self) -> String {
        self.labels.dedup();
        self.names.sort_unstable();
        self.names.dedup();
        let names = self.names.join(", ").replace('_', " ");
        let (labels, why) = (self.labels.join(", "), self.why);
        format!("{names} of {labels} unknown: {why}")
    }
}

fn why_unknown(level: &Level) -> Option<&str> {
    match level {
        Level::Known(_) | Level::Unknown(Unknown::NotRead | Unknown::NotReported) => None,
        Level::Unknown(why) => Some(why.message()),
    }
}
