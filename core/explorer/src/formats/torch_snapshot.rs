//! Memory snapshots of `PyTorch`.

use gpumem_model::units::{Bytes, Nanos, count};
use gpumem_readers::code_line::CodeLine;
use gpumem_readers::container::Container;
use gpumem_readers::torch_snapshot::{
    EqualSets, FailedRequest, LineLifetimes, LineOwner, SnapshotDeviceSummary, SnapshotHolder,
    SnapshotTimeline, TorchSnapshotSummary, summary,
};
use gpumem_report::columns::{cut, in_parts, to_text, wrapped};
use gpumem_wording::{EXPANDABLE, Prose, code, prose};

use super::{Content, PageKind, ReadMethod, RegistryEntry, into_content};

/// The title of its text and of its page.
pub const SNAPSHOT_TITLE: &str = "PyTorch memory snapshot";

/// At most this many owners are listed, the largest.
const N_OWNERS: usize = 10;

/// An owner of at least this share is named.
const LARGE: f64 = 0.1;

/// Number of lines whose blocks' lifetimes are shown.
const N_LIFETIMES: usize = 5;

/// At most this many failed requests are listed, the latest.
const N_FAILED: usize = 5;

/// In the registry.
pub(super) struct TorchSnapshotFormat;

impl RegistryEntry for TorchSnapshotFormat {
    const LISTED: Option<&'static str> = Some("memory snapshots");
    const PAGE: Option<PageKind> = Some(PageKind::Snapshot);
    const NAMES_CELLS: bool = true;
    const READING: ReadMethod =
        ReadMethod::Bytes(|file| into_content(summary(file.bytes, file.cells)));

    fn recognises(container: Container, _head: &[u8]) -> bool {
        container == Container::Pickle
    }
}

impl Content for TorchSnapshotSummary {
    fn kind(&self) -> &'static str {
        "a memory snapshot of PyTorch"
    }

    /// Each device's totals, its failed requests, and who owns what: now and at the trace's peak.
    fn text(&self, width: usize) -> String {
        text(self, width)
    }

    /// Fields named `*_bytes` are bytes, `*_micros` microseconds; unknown is `null`.
    fn json(&self) -> String {
        serde_json::to_string(self).expect("a snapshot holds strings and numbers only")
    }

    fn repr(&self) -> String {
        let devices = self.devices.iter();
        let devices = devices.map(|it| format!("{}: {} allocated", it.device, it.allocated));
        let devices: Vec<_> = devices.collect();
        format!("<TorchSnapshot {}>", devices.join(", "))
    }

    fn page_title(&self) -> Option<&'static str> {
        Some(SNAPSHOT_TITLE)
    }
}

fn text(summary: &TorchSnapshotSummary, width: usize) -> String {
    let title = match summary.devices.len() {
        0 => "no memory reserved".to_owned(),
        n => count(n, "device"),
    };
    let mut lines = vec![format!("{SNAPSHOT_TITLE} · {title}")];
    let mut devices: Vec<&SnapshotDeviceSummary> = summary.devices.iter().collect();
    devices.sort_by_key(|device| device.failed.is_empty());
    for device in devices {
        lines.push(String::new());
        lines.extend(device_lines(device, summary, width));
    }
    to_text(&lines)
}

fn device_lines(
    device: &SnapshotDeviceSummary,
    summary: &TorchSnapshotSummary,
    width: usize,
) -> Vec<String> {
    let mut lines = vec![device.device.to_string()];
    lines.extend(
        torch_snapshot_totals(device)
            .iter()
            .map(|parts| parts.iter().map(Prose::ticked).collect::<Vec<_>>())
            .map(|parts| in_parts(&indented(&parts), width, "    ")),
    );
    if device.is_inconsistent {
        let words = "  ! sums of segments and blocks differ: these are the sums of the blocks";
        lines.push(wrapped(words, width));
    }
    lines.extend(failed_lines(device, summary, width));
    if !device.holders.is_empty() {
        lines.push("  allocated at the snapshot, held by".to_owned());
        lines.extend(holder_lines(&device.holders, width));
    }
    let has_lines = device.owners.iter().any(|owner| owner.line.is_some());
    if device.allocated > Bytes::ZERO && (has_lines || device.holders.is_empty()) {
        lines.push("  allocated at the snapshot, by line".to_owned());
        lines.extend(owner_lines(&device.owners, Bytes::ZERO, width));
    }
    let sets = device.equal_sets.as_ref().map(torch_snapshot_sets);
    lines.extend(sets.map(|sets| wrapped(&format!("  {sets}"), width)));
    if let Some(timeline) = &device.timeline {
        lines.extend(timeline_lines(timeline, width));
    }
    if !device.lifetimes.is_empty() {
        lines.push("  allocated in the trace, what took most memory for longest first".to_owned());
        lines.extend(lifetime_lines(&device.lifetimes, width));
    }
    lines
}

/// A device in one sentence: the request that failed last, else its peak.
pub fn torch_snapshot_headline(device: &SnapshotDeviceSummary) -> String {
    let largest = |owners: &[LineOwner], bytes: Bytes| {
        let named = owners.iter().find_map(|it| Some((it, it.line.as_ref()?)));
        named
            .filter(|(owner, _)| owner.bytes.as_f64() > bytes.as_f64() * LARGE)
            .map(|(owner, line)| format!("; {} of it by {}", owner.bytes, line.short()))
            .unwrap_or_default()
    };
    if let Some(failed) = device.failed.last() {
        let place = failed.line.as_ref().map(CodeLine::short);
        let place = place
            .map(|place| format!(" at {place}"))
            .unwrap_or_default();
        // Later the holes were others.
        let hole = if failed.n_later == 0 {
            format!(", the largest hole has {}", failed.largest_hole)
        } else {
            String::new()
        };
        return format!("Out of memory: {} wanted{place}{hole}", failed.wanted);
    }
    if let Some(timeline) = &device.timeline {
        let at_least = if timeline.is_lower_bound {
            "at least "
        } else {
            ""
        };
        let owners = largest(&timeline.owners, timeline.peak);
        return format!("The peak is {at_least}{}{owners}", timeline.peak);
    }
    let owners = largest(&device.owners, device.allocated);
    format!(
        "{} of {} reserved is allocated{owners}",
        device.allocated, device.reserved
    )
}

/// What a device has, and what of it is unused, in parts of a sentence each.
/// `reserved 2 MiB in 1 segment`, `allocated 0 B in 0 blocks`.
pub fn torch_snapshot_totals(device: &SnapshotDeviceSummary) -> [Vec<Prose>; 2] {
    let segments = count(device.n_segments, "segment");
    let expandable = match device.n_expandable {
        0 => String::new(),
        n if n == device.n_segments => ", expandable".to_owned(),
        n => format!(", {n} expandable"),
    };
    let blocks = count(device.n_allocated_blocks, "block");
    let mut levels = vec![
        format!("reserved {} in {segments}{expandable}", device.reserved).into(),
        format!("allocated {} in {blocks}", device.allocated).into(),
    ];
    let awaits = device.active.saturating_sub(device.allocated);
    if awaits > Bytes::ZERO {
        levels.push(format!("{awaits} awaits a stream").into());
    }
    let rounding = device.allocated.saturating_sub(device.requested);
    if rounding > Bytes::ZERO {
        levels.push(format!("{rounding} of it is rounding").into());
    }
    let mut unused = vec![format!("unused {}", device.inactive).into()];
    if device.inactive > Bytes::ZERO {
        unused.push(format!("largest hole {}", device.largest_hole).into());
        let returned = match device.releasable {
            Bytes::ZERO => "nothing".to_owned(),
            bytes => bytes.to_string(),
        };
        unused.push(prose![
            code("torch.cuda.empty_cache()"),
            " returns ",
            returned
        ]);
    }
    [levels, unused]
}

fn failed_lines(
    device: &SnapshotDeviceSummary,
    summary: &TorchSnapshotSummary,
    width: usize,
) -> Vec<String> {
    let n_earlier = device.failed.len().saturating_sub(N_FAILED);
    let mut lines = Vec::new();
    if n_earlier > 0 {
        lines.push(format!(
            "  ▲ {} before these",
            count(n_earlier, "failed request")
        ));
    }
    for failed in device.failed.iter().skip(n_earlier) {
        let parts = torch_snapshot_failure(failed);
        let marked = [&[format!("▲ {}", parts[0])], &parts[1..]].concat();
        lines.push(in_parts(&indented(&marked), width, "    "));
        let hint = torch_snapshot_hint(failed, device, summary);
        lines.extend(hint.map(|hint| wrapped(&format!("    {}", hint.ticked()), width)));
    }
    lines
}

/// The first part stands two columns in.
fn indented(parts: &[String]) -> Vec<String> {
    [&[format!("  {}", parts[0])], &parts[1..]].concat()
}

/// A request that failed, in parts of a sentence: what was wanted, by whom, and what there was.
pub fn torch_snapshot_failure(failed: &FailedRequest) -> Vec<String> {
    let mut parts = vec![format!("out of memory: {} wanted", failed.wanted)];
    parts.extend(failed.line.as_ref().map(CodeLine::short));
    let free = failed.driver_free;
    parts.extend(free.map(|free| format!("the driver had {free} free")));
    let hole = failed.largest_hole;
    parts.push(match failed.n_later {
        0 => format!("largest hole {hole}"),
        n => format!(
            "largest hole {hole} at the snapshot, {} later",
            count(n, "event")
        ),
    });
    parts
}

/// If the bytes were there, but in pieces: what helps.
pub fn torch_snapshot_hint(
    failed: &FailedRequest,
    device: &SnapshotDeviceSummary,
    summary: &TorchSnapshotSummary,
) -> Option<Prose> {
    let is_scattered = failed.n_later == 0
        && failed.largest_hole < failed.wanted
        && failed.wanted <= device.inactive;
    let expandable = summary.settings.get("expandable_segments");
    let is_expandable = device.n_expandable > 0 || expandable.is_some_and(|it| it == "true");
    is_scattered.then(|| {
        let unused = device.inactive;
        let mut hint = prose![
            "fragmentation: ",
            unused.to_string(),
            " is unused, in pieces that are too small"
        ];
        if !is_expandable {
            hint += prose!["; ", code(EXPANDABLE), " avoids most of it"];
        }
        hint
    })
}

fn timeline_lines(timeline: &SnapshotTimeline, width: usize) -> Vec<String> {
    let time = |micros: u64| Nanos::new(micros.saturating_mul(1000)).to_string();
    let duration = timeline.duration_micros;
    let over = duration.map_or_else(String::new, |micros| format!(" over {}", time(micros)));
    let series = [
        format!("  trace of {}{over}", count(timeline.n_events, "event")),
        format!("requested at its start {}", timeline.at_start),
        format!("at its end {}", timeline.at_end),
    ];
    let at_least = if timeline.is_lower_bound {
        "at least "
    } else {
        ""
    };
    let mut peak = vec![format!("  peak {at_least}{}", timeline.peak)];
    peak.push(match timeline.peak_event {
        None => "at the trace's start".to_owned(),
        Some(at) => format!("after event {}", at + 1),
    });
    let after = timeline
        .peak_after_micros
        .filter(|_| timeline.peak_event.is_some());
    peak.extend(after.map(|micros| format!("{} after the trace's start", time(micros))));
    let mut lines = vec![
        in_parts(&series, width, "    "),
        in_parts(&peak, width, "    "),
    ];
    lines.extend(owner_lines(
        &timeline.owners,
        timeline.n_bytes_from_before,
        width,
    ));
    lines
}

/// How long the blocks of a line lived: `median 3 events`, `longest 2.5 s`, `1 MiB not freed`.
fn lifetime_parts(lived: &LineLifetimes) -> Vec<String> {
    let mut parts = vec![
        format!("median {}", lived.median),
        format!("longest {}", lived.longest),
    ];
    if lived.n_blocks == 1 {
        parts = vec![format!("for {}", lived.longest)];
    }
    if lived.n_left > 0 {
        parts.push(format!("{} not freed", lived.left));
    }
    let waited = lived.longest_wait;
    parts.extend(waited.map(|it| format!("a stream kept one {it} after its free")));
    parts
}

fn lifetime_lines(lifetimes: &[LineLifetimes], width: usize) -> Vec<String> {
    let of = |lived: &LineLifetimes| {
        let line = lived.line.as_ref().map(CodeLine::short);
        let line = line.unwrap_or_else(|| "no stack was recorded".to_owned());
        (lived.bytes, lived.n_blocks, line)
    };
    let below = |lived: &LineLifetimes| {
        let parts = lifetime_parts(lived).join(", ");
        Some(cut(&format!("{:30}{parts}", ""), width))
    };
    listed((lifetimes, N_LIFETIMES), "more line", of, below, width)
}

/// Bytes, blocks and words in columns.
pub(super) fn row(bytes: Bytes, blocks: &str, words: &str, width: usize) -> String {
    let bytes = bytes.to_string();
    cut(&format!("    {bytes:>9} {blocks:>13}  {words}"), width)
}

/// The first of them by bytes, blocks and words, with what stands below each; the rest in one line.
pub(super) fn listed<T>(
    (all, n_shown): (&[T], usize),
    more: &str,
    of: impl Fn(&T) -> (Bytes, usize, String),
    below: impl Fn(&T) -> Option<String>,
    width: usize,
) -> Vec<String> {
    let row = |bytes, n_blocks, words: &str| row(bytes, &count(n_blocks, "block"), words, width);
    let (shown, rest) = all.split_at(all.len().min(n_shown));
    let mut lines = Vec::new();
    for it in shown {
        let (bytes, n_blocks, words) = of(it);
        lines.push(row(bytes, n_blocks, &words));
        lines.extend(below(it));
    }
    if !rest.is_empty() {
        let bytes = rest.iter().map(|it| of(it).0).sum();
        let n_blocks = rest.iter().map(|it| of(it).1).sum();
        lines.push(row(bytes, n_blocks, &count(rest.len(), more)));
    }
    lines
}

fn holder_lines(holders: &[SnapshotHolder], width: usize) -> Vec<String> {
    let of = |it: &SnapshotHolder| (it.bytes, it.n_blocks, it.name.clone());
    listed((holders, N_OWNERS), "more holder", of, |_| None, width)
}

/// The line of an owner. If stacks were recorded at all, what has none was allocated before that.
pub fn torch_snapshot_line(owner: &LineOwner, owners: &[LineOwner]) -> String {
    let has_stacks = owners.iter().any(|owner| owner.line.is_some());
    match &owner.line {
        Some(line) => line.short(),
        None if has_stacks => "before recording began".to_owned(),
        None => "no stack was recorded".to_owned(),
    }
}

/// Sets of blocks of the same sizes: `2 sets as large as the parameters, 1 GiB each: an optimizer's state`. Without
/// stacks, what they often are.
pub fn torch_snapshot_sets(sets: &EqualSets) -> String {
    let EqualSets {
        n_sets,
        n_blocks,
        bytes,
        ..
    } = sets;
    let blocks = count(*n_blocks, "block");
    let Some(module) = &sets.optimizer else {
        let (number, gradients) = match n_sets {
            3 => ("three", ""),
            _ => ("four", ", gradients"),
        };
        return format!(
            "{number} equal sets of {blocks} ({bytes} each): often weights{gradients}, and Adam's two averages"
        );
    };
    let two = match (module.as_str(), n_sets) {
        ("adam" | "adamw", 2) => " (Adam keeps two)",
        _ => "",
    };
    let sets = match (n_sets, sets.are_as_parameters) {
        (1, _) => format!("a set as large as the parameters, {bytes} in {blocks}"),
        (n, true) => format!("{n} sets as large as the parameters, {bytes} each"),
        (n, false) => format!("{n} equal sets of {blocks}, {bytes} each"),
    };
    format!("{sets}: an optimizer's state{two}")
}

fn owner_lines(owners: &[LineOwner], from_before: Bytes, width: usize) -> Vec<String> {
    let of = |it: &LineOwner| (it.bytes, it.n_blocks, torch_snapshot_line(it, owners));
    let mut lines = listed((owners, N_OWNERS), "more line", of, |_| None, width);
    if from_before > Bytes::ZERO {
        let words = "allocated before the trace: no owner known";
        lines.push(row(from_before, "", words, width));
    }
    lines
}
