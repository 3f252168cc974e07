//! A profile's sums by device, kind and line.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::profile::{Profile, ProfileSample};
use super::{DeviceProfile, DeviceProfileError, DeviceProfileFault, ProfileOwner, ProfilePart};
use crate::code_line::{CodeLine, is_users};
use gpumem_model::units::Bytes;

/// Bytes and allocations.
#[derive(Clone, Copy, Default)]
struct Sums {
    bytes: Bytes,
    n_allocations: u64,
    n_unknown: u64,
}

impl Sums {
    /// Adds allocations; JAX writes `-1` for each whose size it does not know.
    fn add(&mut self, bytes: i64, n_allocations: u64) {
        match u64::try_from(bytes) {
            Ok(bytes) => self.bytes += Bytes::new(bytes),
            Err(_) => self.n_unknown = self.n_unknown.saturating_add(n_allocations.max(1)),
        }
        self.n_allocations = self.n_allocations.saturating_add(n_allocations);
    }
}

pub(super) fn summed_up(profile: &Profile<'_>) -> Result<DeviceProfile, DeviceProfileError> {
    let types = || profile.value_types.iter().enumerate();
    let is_of = |wanted: &str, what: (u64, u64)| profile.text(what.0).contains(wanted);
    let of_bytes = || types().filter(|(_, what)| profile.text(what.1) == "bytes");
    // Go's profiles have `alloc_space` beside `inuse_space`.
    let in_use = of_bytes().find(|(_, what)| !is_of("alloc", **what));
    let Some((bytes_at, &space)) = in_use.or_else(|| of_bytes().next()) else {
        let names: Vec<&str> = types()
            .map(|(_, what)| profile.text(what.0))
            .take(5)
            .collect();
        let what = DeviceProfileFault::NoBytes(names.join(", "));
        return Err(DeviceProfileError { offset: 0, what });
    };
    let is_in_use = is_of("inuse", space);
    let counts = types().filter(|(_, what)| profile.text(what.1) == "count");
    let count_at = counts
        .filter(|(_, what)| is_of("inuse", **what) == is_in_use)
        .map(|(at, _)| at)
        .next();
    let mut all = Sums::default();
    let mut parts: HashMap<(u64, u64), Sums> = HashMap::new();
    let mut lines: HashMap<Option<(u64, u64)>, Sums> = HashMap::new();
    profile.each_sample(|sample| {
        let value = |at: usize| sample.values.get(at).copied();
        let bytes = value(bytes_at).unwrap_or(0);
        let n = count_at
            .and_then(value)
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(0);
        let label = |wanted: &str| {
            let found = sample
                .labels
                .iter()
                .find(|(key, _)| profile.text(*key) == wanted);
            found.map_or(0, |(_, text)| *text)
        };
        all.add(bytes, n);
        parts
            .entry((label("device"), label("kind")))
            .or_default()
            .add(bytes, n);
        lines
            .entry(line_of(profile, sample))
            .or_default()
            .add(bytes, n);
    })?;
    let counted = |n: u64| count_at.map(|_| n);
    let known = |at: u64| Some(profile.text(at)).filter(|text| !text.is_empty());
    let part = |((device, kind), sums): ((u64, u64), Sums)| ProfilePart {
        device: known(device).map(str::to_owned),
        kind: known(kind).map(str::to_owned),
        bytes: sums.bytes,
        n_allocations: counted(sums.n_allocations),
        n_unknown: sums.n_unknown,
    };
    let owner = |(line, sums): (Option<(u64, u64)>, Sums)| ProfileOwner {
        line: line.map(|(function, line)| code_line(profile, function, line)),
        bytes: sums.bytes,
        n_allocations: counted(sums.n_allocations),
        n_unknown: sums.n_unknown,
    };
    let mut parts: Vec<ProfilePart> = parts.into_iter().map(part).collect();
    parts.sort_by(|a, b| {
        let key = |it: &ProfilePart| (it.device.clone(), it.kind.clone());
        Reverse(a.bytes)
            .cmp(&Reverse(b.bytes))
            .then_with(|| key(a).cmp(&key(b)))
    });
    let mut owners: Vec<ProfileOwner> = lines.into_iter().map(owner).collect();
    owners.sort_by(|a, b| {
        Reverse(a.bytes)
            .cmp(&Reverse(b.bytes))
            .then_with(|| a.line.cmp(&b.line))
    });
    Ok(DeviceProfile {
        taken_nanos: profile.taken_nanos.filter(|nanos| *nanos > 0),
        bytes: all.bytes,
        n_allocations: counted(all.n_allocations),
        n_unknown: all.n_unknown,
        parts,
        owners,
    })
}

/// The function and line to show for a stack: the innermost user code, else the innermost.
fn line_of(profile: &Profile<'_>, sample: &ProfileSample) -> Option<(u64, u64)> {
    let lines = || {
        sample
            .locations
            .iter()
            .filter_map(|id| profile.locations.get(id))
    };
    let is_of_user = |(function, _): &&(u64, u64)| {
        let functions = profile.functions.get(function);
        functions.is_some_and(|(_, file)| is_users(profile.text(*file)))
    };
    lines().find(is_of_user).or_else(|| lines().next()).copied()
}

fn code_line(profile: &Profile<'_>, function: u64, line: u64) -> CodeLine {
    let (name, file) = profile
        .functions
        .get(&function)
        .copied()
        .unwrap_or_default();
    CodeLine {
        file: profile.text(file).to_owned(),
        line: u32::try_from(line).ok().filter(|line| *line > 0),
        function: profile.text(name).to_owned(),
    }
}
