//! Every reader of gpumem on any bytes, and the views of its result.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use gpumem_analyzer::{Rules, analyze};
use gpumem_charts as charts;
use gpumem_explorer::formats::{Content, FileKind, Format, OtherFile, ReadMethod, torch_traces};
use gpumem_explorer::multiples::{MultiplesView, multiples};
use gpumem_explorer::process_page::{ProcessPage, RowOrder, bands};
use gpumem_model::recording::{DeviceIdx, Recording};
use gpumem_readers::cell_files::CellFiles;
use gpumem_readers::chrome_trace::GroupBy;
use gpumem_readers::container::Container;
use gpumem_readers::oom::ClassName;
use gpumem_readers::torch_snapshot::{Explorer, FlameSide, SnapshotChange};
use gpumem_readers::{
    chrome_trace, device_profile, memory_timeline, nvidia_smi, oom, pickle, stormlog,
    torch_snapshot,
};
use gpumem_report as report;
use gpumem_report::columns::n_columns;
use gpumem_report::{json, table};
use gpumem_scene as scene;
use gpumem_scene::Theme;
use gpumem_wire as wire;

use super::capture::capture;
use super::counted::peak_of;
use super::sealed::{frames, sealed};

/// Reading may take this many bytes of memory for each byte that is read, …
const PER_BYTE: usize = 20;

/// A reader: its name, and what reads bytes and shows what was in them.
pub(crate) struct Reader {
    /// The name of its folder in the corpus.
    pub(crate) name: &'static str,
    /// Panics if it takes more memory than it may.
    pub(crate) read: fn(&[u8]),
}

/// All of them.
pub(crate) const READERS: [Reader; 17] = [
    reader("cell_files", read_cell_files),
    reader("chrome_trace", read_chrome_trace),
    reader("device_profile", read_device_profile),
    reader("file_kind", read_file_kind),
    reader("found", read_found),
    reader("memory_timeline", read_memory_timeline),
    reader("nsight", read_nsight),
    reader("nvidia_smi", read_nvidia_smi),
    reader("oom", read_oom),
    reader("pickle", read_pickle),
    reader("process_page", read_process_page),
    reader("recording", read_recording),
    reader("salvage", read_salvage),
    reader("snapshot_change", read_snapshot_change),
    reader("snapshot_explorer", read_snapshot_explorer),
    reader("stormlog", read_stormlog),
    reader("torch_snapshot", read_torch_snapshot),
];

const fn reader(name: &'static str, read: fn(&[u8])) -> Reader {
    Reader { name, read }
}

/// … and this many: buffers of 64 KiB for what is unpacked or repaired, and the unpacker itself.
const AT_LEAST: usize = 256 << 10;

/// No reader unpacks more of a file as small as those of the fuzzers.
const LARGEST_UNPACKED: u64 = 64 << 20;

/// Calls, and panics if that takes more memory than reading these bytes may.
fn within<T>(bytes: &[u8], read: impl FnOnce() -> T) -> T {
    within_size(bytes.len(), AT_LEAST, read)
}

fn within_size<T>(n_bytes: usize, at_least: usize, read: impl FnOnce() -> T) -> T {
    let (value, peak) = peak_of(read);
    let limit = PER_BYTE * n_bytes + at_least;
    assert!(
        peak <= limit,
        "{peak} bytes of memory for {n_bytes} bytes, more than {limit}"
    );
    value
}

/// Lists of a recording may take 256 KiB in any case.
const OF_RECORDING: usize = 512 << 10;

/// How many bytes are read: what a gzip file is unpacked to counts, not what it is packed in.
fn n_read(bytes: &[u8]) -> usize {
    if Container::recognise(bytes) != Container::Gzip {
        return bytes.len();
    }
    let mut unpacked = MultiGzDecoder::new(bytes).take(LARGEST_UNPACKED);
    // What is damaged counts as far as it can be unpacked.
    drop(io::copy(&mut unpacked, &mut io::sink()));
    bytes.len() + (LARGEST_UNPACKED - unpacked.limit()) as usize
}

/// A width for text, by the bytes: 20 to 200 columns.
fn width(bytes: &[u8]) -> usize {
    let sum = |sum: usize, byte: &u8| sum.wrapping_mul(31).wrapping_add(usize::from(*byte));
    20 + bytes.iter().fold(bytes.len(), sum) % 181
}

fn read_process_page(bytes: &[u8]) {
    let page = within(bytes, || ProcessPage::from_bytes(bytes));
    let Ok(page) = page else {
        return;
    };
    let rows: Vec<usize> = (0..page.rows.len().min(24)).collect();
    let view = MultiplesView {
        width: width(bytes) as f64 * 8.0,
        rows: &rows,
        cursor: Some(page.span),
        pointed: Some(0),
        chosen: &rows,
        units: gpumem_model::units::Units::Binary,
    };
    let scene = multiples(&page, &bands(&page), &view).scene;
    drop(scene::svg(&scene, Theme::Light));
    for column in page.columns() {
        let order = RowOrder {
            column: Some(column),
            ..RowOrder::default()
        };
        for row in page.order(&order) {
            drop(column.cell(&page.rows[row], view.units));
        }
    }
}

fn read_chrome_trace(bytes: &[u8]) {
    // Its events may take 1 MiB in any case.
    let cells = CellFiles::from_text("3427300630 In [3]");
    let summary = within_size(bytes.len(), 2 << 20, || {
        chrome_trace::summary(bytes, &cells)
    });
    let summary = match summary {
        Ok(summary) => summary,
        Err(error) => return refused(bytes, error.offset, &error),
    };
    let workers = vec![("trace.json".to_owned(), summary)];
    workers.json();
    for by in [
        GroupBy::Name,
        GroupBy::Shapes,
        GroupBy::Module,
        GroupBy::Function,
    ] {
        torch_traces(&workers, by, width(bytes));
    }
}

fn read_memory_timeline(bytes: &[u8]) {
    // Its lists may take 1 MiB in any case.
    match within_size(bytes.len(), 2 << 20, || memory_timeline::timeline(bytes)) {
        Ok(timeline) => {
            show_content(&timeline, bytes);
        }
        Err(error) => refused(bytes, error.offset, &error),
    }
}

fn read_device_profile(bytes: &[u8]) {
    match within_size(n_read(bytes), AT_LEAST, || device_profile::read(bytes)) {
        Ok(profile) => {
            show_table(&profile, bytes);
        }
        Err(error) => drop(error.to_string()),
    }
}

fn read_nvidia_smi(bytes: &[u8]) {
    match within(bytes, || nvidia_smi::read(bytes)) {
        Ok(log) => {
            show_table(&log, bytes);
        }
        Err(error) => refused(bytes, error.offset, &error),
    }
}

fn read_stormlog(bytes: &[u8]) {
    match within(bytes, || stormlog::read(bytes)) {
        Ok(log) => {
            show_table(&log, bytes);
        }
        Err(error) => refused(bytes, error.offset, &error),
    }
}

fn read_nsight(bytes: &[u8]) {
    let capture = capture(bytes);
    let export = within(bytes, || capture.summed_up());
    show_content(&export, bytes);
}

/// Whatever it is, read as `gpumem.load` reads it.
fn read_file_kind(bytes: &[u8]) {
    let kind = within(bytes, || FileKind::recognise(bytes));
    kind.refusal("file");
    let Some(ReadMethod::Bytes(read)) = kind.format.map(Format::reading) else {
        return;
    };
    let file = OtherFile {
        name: "file",
        bytes,
        cells: &CellFiles::default(),
    };
    match within_size(n_read(bytes), 2 << 20, || read(&file)) {
        Ok(content) => show_content(&*content, bytes),
        Err(refusal) => refused(bytes, refusal.offset, &refusal.message),
    }
}

fn read_oom(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    within(bytes, || {
        oom::parse(&text);
        oom::within(&text, 200);
        let (module, name) = text.split_once('\n').unwrap_or((&text, ""));
        let (name, text) = name.split_once('\n').unwrap_or((name, &text));
        let class = ClassName {
            module: module.to_owned(),
            name: name.to_owned(),
        };
        oom::of_exception(&[class], text);
    });
}

fn read_cell_files(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let cells = within(bytes, || CellFiles::from_text(&text));
    for line in text.lines() {
        cells.name_of(line);
    }
    CellFiles::from_text(&cells.to_text());
    CellFiles::new(text.lines().zip(text.lines().skip(1)));
}

fn read_pickle(bytes: &[u8]) {
    match within_size(bytes.len(), 2 << 20, || pickle::parse(bytes)) {
        Ok(tree) => {
            tree.root().get("segments");
        }
        Err(error) => refused(bytes, error.offset, &error),
    }
}

fn read_torch_snapshot(bytes: &[u8]) {
    let summary = within_size(bytes.len(), 2 << 20, || {
        torch_snapshot::summary(bytes, &CellFiles::default())
    });
    match summary {
        Ok(summary) => {
            show_content(&summary, bytes);
        }
        Err(error) => refused(bytes, error.offset, &error),
    }
}

/// Two snapshots, the length of the first before them.
fn read_snapshot_change(bytes: &[u8]) {
    let (length, files) = bytes.split_first_chunk::<2>().unwrap_or((&[0; 2], bytes));
    let length = usize::from(u16::from_le_bytes(*length)).min(files.len());
    let (before, after) = files.split_at(length);
    let cells = CellFiles::from_text("3427300630 In [3]");
    let summary = |file| torch_snapshot::summary(file, &cells);
    let (Ok(before), Ok(after)) = (summary(before), summary(after)) else {
        return;
    };
    let change = within_size(bytes.len(), 2 << 20, || {
        SnapshotChange::between(&before, &after)
    });
    show_content(&change, bytes);
}

fn read_snapshot_explorer(bytes: &[u8]) {
    let Ok(explorer) = within_size(bytes.len(), 2 << 20, || {
        Explorer::open(bytes, &CellFiles::default())
    }) else {
        return;
    };
    for device in 0..explorer.summary.devices.len().min(4) {
        let n_events = explorer.levels(device).allocated.len();
        for at in [0, n_events / 2, n_events.saturating_sub(1), n_events] {
            explorer.flame(device, at, FlameSide::Outside);
            explorer.flame(device, at, FlameSide::Inside);
            explorer.owners(device, at);
            explorer.micros(device, at);
        }
        explorer.segments(device);
        explorer.failures(device);
    }
}

fn read_recording(bytes: &[u8]) {
    let bytes = sealed(bytes);
    match within_size(bytes.len(), OF_RECORDING, || wire::decode(&bytes)) {
        Ok(recording) => show(&recording, &bytes),
        Err(error) => refused(&bytes, error.offset, &error),
    }
}

/// As they are, and with a byte between any two frames, behind which the next one has to be found.
fn read_salvage(bytes: &[u8]) {
    let apart = frames(&sealed(bytes)).join(&0xa3);
    for bytes in [bytes, &apart] {
        let salvaged = within_size(bytes.len(), OF_RECORDING, || {
            wire::salvage(bytes, &mut || true)
        });
        if let Ok(salvaged) = salvaged {
            show(&salvaged.recording, bytes);
        }
    }
}

fn read_found(bytes: &[u8]) {
    let bytes = sealed(bytes);
    if let Err(error) = within_size(bytes.len(), OF_RECORDING, || wire::decode_found(&bytes)) {
        drop(error.to_string());
    }
}

fn show_content(content: &dyn Content, bytes: &[u8]) {
    content.json();
    content.repr();
    content.text(width(bytes));
}

/// Likewise, and from 60 columns on no line is longer.
fn show_table(content: &dyn Content, bytes: &[u8]) {
    show_content(content, bytes);
    let width = width(bytes).max(60);
    let text = content.text(width);
    let long = text.lines().find(|line| n_columns(line) > width);
    assert_eq!(long, None, "more than {width} columns");
}

fn show(recording: &Recording, bytes: &[u8]) {
    let rules = Rules::default();
    let analysis = analyze(recording, &rules);
    json::report_json(recording, &analysis, &rules);
    report::text(recording, &analysis, width(bytes));
    report::csv(recording, &analysis);
    report::markdown(recording, &analysis, DeviceIdx(0));
    scene::svg(&charts::report(recording, &analysis, 900.0), Theme::Light);
    gpumem_report::chrome_trace::chrome_trace(recording, &analysis);
    table::runs(recording, &analysis);
    table::samples(recording);
    table::findings(recording, &analysis);
    wire::decode(&wire::encode(recording)).expect("what was read can be written and read again");
}

/// An error names a byte of the file, or of what is packed in it, and can be shown.
fn refused(bytes: &[u8], offset: usize, error: &impl std::fmt::Display) {
    drop(error.to_string());
    assert!(
        offset <= bytes.len() || Container::recognise(bytes) == Container::Gzip,
        "byte {offset} of {}: {error}",
        bytes.len()
    );
}
