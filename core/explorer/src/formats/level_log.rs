//! Logs of memory levels, whoever wrote them.

mod json;

use gpumem_model::units::{Bytes, Nanos, count, count_of};
use gpumem_readers::level_log::{
    DeviceLog, LevelLog, LevelSeries, LogSeries, LogShape, ProcessLog,
};
use gpumem_report::columns::{cut, in_parts, to_text, wrapped};

use super::{Content, FileFigure};
pub(super) use json::JsonLog;

/// At most this many devices are listed.
const N_DEVICES: usize = 32;

/// At most this many processes of each device are listed, those with the highest peaks.
const N_PROCESSES: usize = 10;

/// Columns of a drawn series.
const N_COLUMNS: usize = 48;

/// At this share of its capacity a device is nearly full.
const NEARLY_FULL: f64 = 0.95;

impl Content for LevelLog {
    fn kind(&self) -> &'static str {
        "a log of memory levels"
    }

    /// What each device's memory did, the ones that rose first, and its processes.
    fn text(&self, width: usize) -> String {
        text(self, width)
    }

    /// Fields named `*_bytes` are bytes, `*_nanos` nanoseconds since the log's start; unknown is `null`.
    fn json(&self) -> String {
        serde_json::to_string(&JsonLog(self)).expect("a log holds strings and numbers only")
    }

    fn measures(&self) -> Option<Vec<FileFigure>> {
        let mut measures = Vec::new();
        for device in &self.devices {
            let of_process = device.processes.iter().filter(|_| device.levels.is_empty());
            let of_processes = of_process.flat_map(|process| {
                let name = process.name.as_deref().map_or("process", short_name);
                process
                    .levels
                    .iter()
                    .map(move |level| (format!("{name}, "), level))
            });
            let levels = device.levels.iter().map(|level| (String::new(), level));
            for (who, level) in levels.chain(of_processes) {
                let (name, series) = (level.kind.name(), &level.series);
                for (when, bytes) in [
                    ("at first", series.first),
                    ("at last", series.last),
                    ("at its peak", series.peak),
                ] {
                    let name = format!("{who}{name} {when}");
                    measures.push(FileFigure::level(&device.label, &name, bytes));
                }
            }
        }
        Some(measures)
    }

    fn repr(&self) -> String {
        let devices = count(self.devices.len(), "device");
        let readings = count(self.n_readings, "reading");
        format!("<LevelLog {}: {devices}, {readings}>", self.title)
    }
}

fn text(log: &LevelLog, width: usize) -> String {
    let mut title = vec![
        log.title.to_owned(),
        count(log.devices.len(), "device"),
        count(log.n_readings, "reading"),
    ];
    match (log.started.filter(|time| time.is_of_clock()), log.duration) {
        (Some(started), Some(Nanos::ZERO)) => title.push(format!("at {started}")),
        (Some(started), Some(duration)) => title.push(format!("{duration} from {started}")),
        (_, duration) => title.extend(duration.map(|duration| duration.to_string())),
    }
    let mut lines = vec![in_parts(&title, width, "  ")];
    lines.extend(conclusion(log, width));
    lines.extend(
        log.notes
            .iter()
            .map(|note| wrapped(&format!("! {note}"), width)),
    );
    for device in log.devices.iter().take(N_DEVICES) {
        lines.push(String::new());
        lines.extend(device_lines(device, log, width));
    }
    let n_more = log.devices.len().saturating_sub(N_DEVICES);
    if n_more > 0 {
        lines.push(format!("… and {}", count(n_more, "more device")));
    }
    to_text(&lines)
}

/// A device or process that rose, with the words for it.
struct Rise<'l> {
    who: String,
    series: &'l LogSeries,
    shape: LogShape,
}

/// What rose and what is nearly full, before any figure.
fn conclusion(log: &LevelLog, width: usize) -> Vec<String> {
    let mut rises = rises(log);
    rises.sort_by_key(|it| {
        let rose = it.series.last.saturating_sub(it.series.first);
        (
            it.shape != LogShape::RoseThroughout,
            std::cmp::Reverse(rose),
        )
    });
    let mut lines = Vec::new();
    for it in rises.iter().take(5) {
        let words = format!("▲ {} {}", it.who, rise_words(it.series, it.shape));
        lines.push(wrapped(&words, width));
    }
    if rises.len() > 5 {
        lines.push(format!("  … and {} more rose", rises.len() - 5));
    }
    for device in &log.devices {
        lines.extend(nearly_full(device).map(|words| wrapped(&words, width)));
    }
    if rises.is_empty() {
        lines.push(wrapped(&no_rise(log), width));
    } else {
        let words = "  A log tells that memory rose, not why. Whether it is a leak, and of which \
                     cell, takes recorded runs: `%gpumem on`.";
        lines.push(wrapped(words, width));
    }
    lines
}

/// That nothing rose, or not by as much as counts.
fn no_rise(log: &LevelLog) -> String {
    let mut levels = log.devices.iter().map(DeviceLog::main_level);
    let what = if levels.all(|level| level.is_none()) {
        "process"
    } else {
        "device"
    };
    let rose = |it: &(Rise<'_>, Option<Bytes>)| it.0.series.last.saturating_sub(it.0.series.first);
    let most = judged(log).into_iter().max_by_key(rose);
    match most.filter(|most| rose(most) > Bytes::ZERO) {
        Some(most) => {
            let (Rise { who, series, .. }, capacity) = &most;
            let (rose, least) = (rose(&most), series.least_change(*capacity));
            format!(
                "no {what}'s memory rose clearly: {who} by {rose}, and less than {least} does not count"
            )
        }
        None => format!("no {what}'s memory rose from the log's start to its end"),
    }
}

/// The devices that rose; of a device without levels of its own, its processes.
fn rises(log: &LevelLog) -> Vec<Rise<'_>> {
    let is_rise = |it: &Rise<'_>| {
        matches!(
            it.shape,
            LogShape::RoseThroughout | LogShape::RoseAndStayed | LogShape::Rose
        )
    };
    let all = judged(log).into_iter().map(|(rise, _)| rise);
    all.filter(is_rise).collect()
}

/// Each device with its shape, and its capacity; of a device without levels of its own, its processes.
fn judged(log: &LevelLog) -> Vec<(Rise<'_>, Option<Bytes>)> {
    let mut judged = Vec::new();
    for device in &log.devices {
        let mut all: Vec<(String, &LevelSeries)> = Vec::new();
        match device.main_level() {
            Some(named) => all.push((device.label.clone(), named)),
            None => all.extend(device.processes.iter().filter_map(|process| {
                let name = in_brackets(process.name.as_deref());
                let who = format!("process {}{name}", process.pid);
                Some((who, process.main_level()?))
            })),
        }
        for (who, named) in all {
            let capacity = device.capacity_of(named.kind);
            let (series, shape) = (&named.series, named.series.shape(capacity));
            judged.push((Rise { who, series, shape }, capacity));
        }
    }
    judged
}

fn in_brackets(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" ({})", short_name(name)))
}

/// The end of a command's path.
fn short_name(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    if file.is_empty() { name } else { file }
}

fn rise_words(series: &LogSeries, shape: LogShape) -> String {
    let rose = series.last - series.first;
    let time = series.duration().filter(|time| *time > Nanos::ZERO);
    let over = time.map_or_else(String::new, |time| format!(" in {time}"));
    let (first, last) = (series.first, series.last);
    match shape {
        LogShape::RoseThroughout => {
            format!("rose throughout: {rose}{over}, from {first} to {last}")
        }
        LogShape::RoseAndStayed => format!("rose by {} and stayed there: {last}", rose.magnitude()),
        _ => format!(
            "ended {rose} higher than it began: {last}",
            rose = rose.magnitude()
        ),
    }
}

fn nearly_full(device: &DeviceLog) -> Option<String> {
    let named = device.main_level()?;
    let capacity = device.capacity_of(named.kind)?;
    let peak = named.series.peak;
    let share = peak.as_f64() / capacity.as_f64();
    (share >= NEARLY_FULL).then(|| {
        let free = capacity.saturating_sub(peak);
        format!(
            "▲ {} was nearly full: at its peak {free} of {capacity} was free",
            device.label
        )
    })
}

fn device_lines(device: &DeviceLog, log: &LevelLog, width: usize) -> Vec<String> {
    let mut head = vec![device.label.clone()];
    head.extend(device.name.clone());
    head.extend(device.capacity.map(|capacity| format!("{capacity} in all")));
    let mut lines = vec![in_parts(&head, width, "  ")];
    for named in &device.levels {
        lines.extend(level_lines(named, device, log, width));
    }
    lines.extend(missing(&device.missing).map(|words| wrapped(&words, width)));
    if !device.processes.is_empty() {
        lines.extend(process_lines(&device.processes, log, width));
    } else if lines.len() == 1 {
        lines.push("  no process used it".to_owned());
    }
    lines
}

/// How often there was no figure, and what stood in its place.
fn missing(missing: &[(String, usize)]) -> Option<String> {
    let n_readings = missing.iter().map(|(_, n)| n).sum();
    let words = match missing {
        [] => return None,
        [(words, _)] => words.clone(),
        several => {
            let each = several.iter().map(|(words, n)| format!("{words} in {n}"));
            each.collect::<Vec<_>>().join(", ")
        }
    };
    Some(format!(
        "  no figure in {}: {words}",
        count(n_readings, "reading")
    ))
}

fn level_lines(
    named: &LevelSeries,
    device: &DeviceLog,
    log: &LevelLog,
    width: usize,
) -> Vec<String> {
    let series = &named.series;
    let capacity = device.capacity_of(named.kind);
    let shape = series.shape(capacity);
    let name = named.kind.name();
    if series.lowest == series.peak {
        let always = format!("  {name} {}, the same in {}", series.last, readings(series));
        return vec![wrapped(&always, width)];
    }
    let mut parts = vec![
        format!("  {name} {} at first", series.first),
        format!("{} at last", series.last),
        format!("lowest {}", series.lowest),
        format!("peak {}{}", series.peak, share(series.peak, capacity)),
    ];
    parts.push(when(series, log));
    // Small beside the capacity may still be much.
    let is_much = series.peak.saturating_sub(series.lowest) >= Bytes::mib(16);
    let words = shape_text(shape).filter(|_| shape != LogShape::Flat || !is_much);
    parts.extend(words.map(str::to_owned));
    let mut lines = vec![in_parts(&parts, width, "    ")];
    let drawn = drawn(series, capacity, N_COLUMNS.min(width.saturating_sub(4)));
    lines.push(format!("  {drawn}"));
    lines
}

fn readings(series: &LogSeries) -> String {
    count_of(series.n_readings, "reading")
}

fn share(level: Bytes, capacity: Option<Bytes>) -> String {
    match capacity.filter(|capacity| *capacity > Bytes::ZERO) {
        Some(capacity) => {
            let percent = (level.as_f64() / capacity.as_f64() * 100.0).round() as u64;
            format!(" ({percent} %)")
        }
        None => String::new(),
    }
}

/// When the peak was: by the clock and since the log's start, else by the number of readings.
fn when(series: &LogSeries, log: &LevelLog) -> String {
    match (series.peak_at, log.started) {
        (Some(at), Some(started)) => {
            let after = format!("{} after the start", at.since(started));
            if at.is_of_clock() {
                format!("{after}, at {at}")
            } else {
                after
            }
        }
        _ => format!(
            "in reading {} of {}",
            series.peak_ordinal + 1,
            series.n_readings
        ),
    }
}

const fn shape_text(shape: LogShape) -> Option<&'static str> {
    match shape {
        LogShape::Flat => Some("hardly changed"),
        LogShape::FellBack => Some("fell back after its peak"),
        LogShape::Fell => Some("lower at its end"),
        LogShape::RoseThroughout => Some("rose throughout"),
        LogShape::RoseAndStayed => Some("rose, then stayed"),
        LogShape::Rose => None,
    }
}

/// The highest level of each column, against the capacity; against the peak if that is unknown.
fn drawn(series: &LogSeries, capacity: Option<Bytes>, n_columns: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let full = capacity.unwrap_or(series.peak).max(series.peak).as_f64();
    let n_columns = n_columns.min(series.n_readings as usize).max(1);
    let mut highest: Vec<Option<Bytes>> = vec![None; n_columns];
    for point in series.points() {
        let column = point.ordinal.saturating_mul(n_columns as u64) / series.n_readings;
        if let Some(known) = highest.get_mut(column as usize) {
            *known = (*known).max(Some(point.level));
        }
    }
    let mut before = series.first;
    let bar = |level: &Option<Bytes>| {
        before = level.unwrap_or(before);
        let step = (before.as_f64() / full * 8.0).ceil() as usize;
        BARS[step.clamp(1, 8) - 1]
    };
    highest.iter().map(bar).collect()
}

fn process_lines(processes: &[ProcessLog], log: &LevelLog, width: usize) -> Vec<String> {
    let is_bare = processes.iter().all(|process| process.levels.is_empty());
    let mut lines = Vec::new();
    if !is_bare {
        let [pid, first, last, peak] = ["process", "first", "last", "peak"];
        lines.push(cut(
            &format!("  {pid:>8} {first:>9} {last:>9} {peak:>9}  name"),
            width,
        ));
    }
    for process in processes.iter().take(N_PROCESSES) {
        let name = process.name.as_deref().map_or("", short_name);
        let pid = process.pid;
        let line = match (process.main_level(), &process.missing[..]) {
            (Some(named), _) => {
                let series = &named.series;
                let level = |level: Bytes| level.to_string();
                let [first, last, peak] = [series.first, series.last, series.peak].map(level);
                let gone = ended_early(series, log);
                format!("  {pid:>8} {first:>9} {last:>9} {peak:>9}  {name}{gone}")
            }
            (None, missing @ [_, ..]) => {
                let words: Vec<&str> = missing.iter().map(|(words, _)| words.as_str()).collect();
                let words = words.join(", ");
                format!("  {pid:>8} {words:>29}  {name}")
            }
            (None, []) => format!("  {pid:>8} {:>29}  {name}", "no figure"),
        };
        lines.push(cut(line.trim_end(), width));
    }
    let n_more = processes.len().saturating_sub(N_PROCESSES);
    if n_more > 0 {
        let peaks = if is_bare { "" } else { " with lower peaks" };
        let more = if n_more == 1 { "process" } else { "processes" };
        lines.push(format!("  … and {n_more} more {more}{peaks}"));
    }
    lines
}

/// Says so if a process was gone before the log's end.
fn ended_early(series: &LogSeries, log: &LevelLog) -> String {
    let (Some(last), Some(started), Some(duration)) = (series.last_at, log.started, log.duration)
    else {
        return String::new();
    };
    let missed = duration.since(last.since(started));
    // It may have been read just before the others.
    if missed.get() <= duration.get() / 20 {
        return String::new();
    }
    format!(" · last seen after {}", last.since(started))
}
