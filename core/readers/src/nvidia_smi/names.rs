//! Names of figures, as nvidia-smi and scripts write them → their meaning.
//!
//! Scripts name the same column `memory.used [MiB]`, `gpu_memory_used`, `mem_used_mb` or `gpu0.memoryUsedMiB`.
//! Loads, temperatures, clocks and the host's memory never count as the device's.

use super::columns::SmiColumn;
use super::quantity::unit;

/// The meaning of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnName {
    pub(super) kind: SmiColumn,
    /// Bytes per unit.
    pub(super) unit: Option<u64>,
    /// The device in the name: `gpu1_mem_used`.
    pub(super) device: Option<usize>,
    /// If several names have one kind, the highest counts.
    pub(super) rank: u8,
}

const MEMORY: [&str; 5] = ["memory", "mem", "vram", "fb", "framebuffer"];
const DEVICE: [&str; 6] = ["gpu", "vram", "fb", "framebuffer", "cuda", "nvidia"];
const HOST: [&str; 9] = [
    "ram", "cpu", "host", "system", "sys", "swap", "rss", "virtual", "shared",
];
const PROCESS: [&str; 3] = ["process", "proc", "pid"];
const USED: [&str; 5] = ["used", "allocated", "occupied", "consumed", "inuse"];
const USAGE: [&str; 2] = ["usage", "use"];
const TOTAL: [&str; 2] = ["total", "capacity"];
const FREE: [&str; 4] = ["free", "available", "avail", "remaining"];

/// After one of these words, a name of memory is no level.
const NO_LEVEL: [&str; 37] = [
    "util",
    "utilization",
    "utilisation",
    "load",
    "percent",
    "pct",
    "perc",
    "ratio",
    "fraction",
    "temp",
    "temperature",
    "clock",
    "clocks",
    "clk",
    "freq",
    "frequency",
    "mhz",
    "bandwidth",
    "bw",
    "power",
    "ecc",
    "errors",
    "error",
    "bar",
    "reserved",
    "requested",
    "max",
    "min",
    "peak",
    "time",
    "active",
    "activity",
    "rate",
    "throughput",
    "delta",
    "type",
    "protected",
];

/// The words of a name.
pub(super) fn parse_name(name: &str) -> ColumnName {
    let name = name.trim().trim_matches('"').trim();
    let end = name.find(['[', '(']).unwrap_or(name.len());
    let (plain, behind) = name.split_at(end);
    let in_brackets = unit(behind.trim_matches(['[', ']', '(', ')', ' ']));
    let mut words = split_words(plain);
    let last = words.last().and_then(|word| unit(word));
    if last.is_some() && words.len() > 1 {
        words.pop();
    }
    let unit = in_brackets.or(last);
    let device = device_in(&words);
    let is_share = name.contains('%');
    let (kind, rank) = match kind_of_id(&words) {
        Some(kind) => (kind, 0),
        None if is_share => (SmiColumn::Other, 0),
        None => kind_of_level(&words, unit.is_some()),
    };
    ColumnName {
        kind,
        unit,
        device: device.filter(|_| kind.is_level()),
        rank,
    }
}

/// `gpuMemory.used_0` → `gpu`, `memory`, `used`, `0`.
fn split_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_alphanumeric() {
            before = ' ';
            continue;
        }
        let begins_name = letter.is_uppercase()
            && (before.is_lowercase()
                || before.is_uppercase() && letters.peek().is_some_and(|next| next.is_lowercase()));
        let is_new = !before.is_alphanumeric()
            || begins_name
            || before.is_ascii_digit() != letter.is_ascii_digit();
        if is_new {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words
        .into_iter()
        .flat_map(|word| match word.strip_prefix("mem").map(str::to_owned) {
            Some(rest) if [&USED[..], &TOTAL, &FREE].concat().contains(&rest.as_str()) => {
                vec!["mem".to_owned(), rest]
            }
            _ => vec![word],
        })
        .collect()
}

fn has(words: &[String], wanted: &[&str]) -> bool {
    words.iter().any(|word| wanted.contains(&word.as_str()))
}

/// The number behind `gpu`.
fn device_in(words: &[String]) -> Option<usize> {
    let of_gpu = words
        .windows(2)
        .find(|pair| pair[0] == "gpu" || pair[0] == "cuda");
    of_gpu?[1].parse().ok()
}

fn kind_of_id(words: &[String]) -> Option<SmiColumn> {
    let name = words.join(" ");
    let kind = match name.as_str() {
        "date" | "day" => SmiColumn::Day,
        "index" => SmiColumn::Index,
        "gpu" | "gpu id" | "id gpu" | "gpuid" | "gpu index" | "index gpu" | "gpu idx"
        | "gpu number" | "gpu num" | "gpu no" | "device" | "device id" | "device index"
        | "card" | "card id" => SmiColumn::Number,
        "uuid" | "gpu uuid" | "uuid gpu" | "device uuid" => SmiColumn::Uuid,
        "pci bus id" | "gpu bus id" | "bus id" | "busid" | "pci bus" | "pci id" => SmiColumn::Bus,
        "name" => SmiColumn::Name,
        "gpu name" | "name gpu" | "device name" | "product name" | "gpu model" => {
            SmiColumn::DeviceName
        }
        "pid" | "process id" => SmiColumn::Pid,
        "process name" | "process" | "command" | "cmd" => SmiColumn::ProcessName,
        "t" | "seconds" | "secs" | "sec" | "time s" | "time sec" | "time secs" | "time seconds" => {
            SmiColumn::Elapsed
        }
        "time ms" => SmiColumn::ElapsedMillis,
        _ if has(words, &["elapsed", "relative", "runtime"]) => {
            if has(words, &["ms", "millis"]) {
                SmiColumn::ElapsedMillis
            } else {
                SmiColumn::Elapsed
            }
        }
        _ if has(words, &["timestamp", "datetime", "epoch"]) => SmiColumn::Time,
        "time" | "ts" | "time stamp" | "date time" | "unix time" | "wall time" | "local time" => {
            SmiColumn::Time
        }
        _ => return None,
    };
    Some(kind)
}

/// A level and its certainty: `usage` may be a share, and memory alone may be anything.
fn kind_of_level(words: &[String], has_unit: bool) -> (SmiColumn, u8) {
    let is_device = has(words, &DEVICE);
    let is_host = has(words, &HOST) && !is_device;
    if !has(words, &MEMORY) || is_host || has(words, &NO_LEVEL) {
        return (SmiColumn::Other, 0);
    }
    let of_device = u8::from(is_device);
    if has(words, &TOTAL) {
        return (SmiColumn::Total, 2 + of_device);
    }
    if has(words, &FREE) {
        return (SmiColumn::Free, 2 + of_device);
    }
    let used = if has(words, &PROCESS) {
        SmiColumn::ProcessUsed
    } else {
        SmiColumn::Used
    };
    if has(words, &USED) {
        return (used, 4 + of_device);
    }
    if has(words, &USAGE) {
        return (used, if has_unit { 2 } else { UNSURE } + of_device);
    }
    let is_bare = words.iter().all(|word| {
        let word = word.as_str();
        MEMORY.contains(&word)
            || DEVICE.contains(&word)
            || PROCESS.contains(&word)
            || word.parse::<u32>().is_ok()
    });
    if is_bare && has_unit {
        (used, 2 + of_device)
    } else {
        (SmiColumn::Other, 0)
    }
}

/// The level that a label before a figure with a unit names. After a figure of memory, `used` is enough.
pub(super) fn level_before_figure(label: &str, is_behind_memory: bool) -> SmiColumn {
    let mut words = split_words(label);
    if is_behind_memory && words.len() == 1 {
        words.push("memory".to_owned());
    }
    kind_of_level(&words, true).0
}

/// Below [`SURE`]: it may be a share, unless there is a capacity beside it.
const UNSURE: u8 = 0;

/// From this rank on it is a level of memory.
pub(super) const SURE: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: SmiColumn, names: &[&str]) {
        for name in names {
            assert_eq!(parse_name(name).kind, kind, "{name}");
        }
    }

    #[test]
    fn names_of_scripts_are_those_of_nvidia_smi() {
        check(
            SmiColumn::Used,
            &[
                "memory.used [MiB]",
                "gpu_memory_used",
                "mem_used_mb",
                "memUsed",
                "memused",
                "GPU Memory Used (MiB)",
                "fb_used",
                "vram_used_gb",
                "gpu_mem_mb",
                "GPUMemoryUsage[MB]",
                "system.gpu.0.memoryAllocatedBytes",
            ],
        );
        check(
            SmiColumn::Total,
            &[
                "memory.total [MiB]",
                "gpu_memory_total",
                "mem_total_mb",
                "vram_capacity_gb",
            ],
        );
        check(
            SmiColumn::Free,
            &["memory.free [MiB]", "gpu_mem_available_mb"],
        );
        check(SmiColumn::ProcessUsed, &["process_gpu_memory_used"]);
        check(
            SmiColumn::Other,
            &[
                "utilization.memory [%]",
                "gpu_memory_utilization",
                "mem_util",
                "memory_used_pct",
                "memory.used [%]",
                "temperature.memory",
                "clocks.mem [MHz]",
                "ram_used_mb",
                "cpu_memory_used",
                "system_memory_used_gb",
                "memory.reserved [MiB]",
                "max_memory_allocated",
                "bar1_memory_used",
                "mem",
                "gpu_memory",
                "power_w",
            ],
        );
        check(
            SmiColumn::Number,
            &["gpu", "index_gpu", "gpuIndex", "GPU ID"],
        );
        check(SmiColumn::Elapsed, &["elapsed_sec", "t", "time_s"]);
        check(SmiColumn::ElapsedMillis, &["elapsed_ms"]);
        check(SmiColumn::Time, &["timestamp", "Timestamp (UTC)", "time"]);
    }

    #[test]
    fn units_and_devices_are_in_names_too() {
        let unit_of = |name| parse_name(name).unit;
        assert_eq!(unit_of("mem_used_mb"), Some(1 << 20));
        assert_eq!(unit_of("vram_used_gb"), Some(1 << 30));
        assert_eq!(unit_of("memory_used [B]"), Some(1));
        assert_eq!(unit_of("gpu_memory_used"), None);
        assert_eq!(parse_name("gpu1_mem_used").device, Some(1));
        assert_eq!(
            parse_name("system.gpu.0.memoryAllocatedBytes").device,
            Some(0)
        );
        assert_eq!(parse_name("gpu_mem_used").device, None);
    }
}
