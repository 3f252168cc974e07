//! Names of figures → what they are, in the words of nvidia-smi and in those of scripts.
//!
//! Scripts name the same column `memory.used [MiB]`, `gpu_memory_used`, `mem_used_mb` or `gpu0.memoryUsedMiB`. A
//! load, a temperature, a clock or the host's memory is never taken for the device's.

use super::columns::Column;
use super::quantity::unit;

/// What a name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) kind: Column,
    /// Bytes of one.
    pub(super) unit: Option<u64>,
    /// The device in the name: `gpu1_mem_used`.
    pub(super) device: Option<usize>,
    /// Of several names of one kind, the highest counts.
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

/// Behind one of these, a name of memory is no level of it.
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

/// What a name holds.
pub(super) fn named(name: &str) -> Named {
    let name = name.trim().trim_matches('"').trim();
    let end = name.find(['[', '(']).unwrap_or(name.len());
    let (plain, behind) = name.split_at(end);
    let in_brackets = unit(behind.trim_matches(['[', ']', '(', ')', ' ']));
    let mut words = words(plain);
    let last = words.last().and_then(|word| unit(word));
    if last.is_some() && words.len() > 1 {
        words.pop();
    }
    let unit = in_brackets.or(last);
    let device = device_in(&words);
    let is_share = name.contains('%');
    let (kind, rank) = match kind_of_id(&words) {
        Some(kind) => (kind, 0),
        None if is_share => (Column::Other, 0),
        None => kind_of_level(&words, unit.is_some()),
    };
    Named {
        kind,
        unit,
        device: device.filter(|_| kind.is_level()),
        rank,
    }
}

/// `gpuMemory.used_0` → `gpu`, `memory`, `used`, `0`.
fn words(name: &str) -> Vec<String> {
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

fn kind_of_id(words: &[String]) -> Option<Column> {
    let name = words.join(" ");
    let kind =
        match name.as_str() {
            "date" | "day" => Column::Day,
            "index" => Column::Index,
            "gpu" | "gpu id" | "id gpu" | "gpuid" | "gpu index" | "index gpu" | "gpu idx"
            | "gpu number" | "gpu num" | "gpu no" | "device" | "device id" | "device index"
            | "card" | "card id" => Column::Number,
            "uuid" | "gpu uuid" | "uuid gpu" | "device uuid" => Column::Uuid,
            "pci bus id" | "gpu bus id" | "bus id" | "busid" | "pci bus" | "pci id" => Column::Bus,
            "name" => Column::Name,
            "gpu name" | "name gpu" | "device name" | "product name" | "gpu model" => {
                Column::DeviceName
            }
            "pid" | "process id" => Column::Pid,
            "process name" | "process" | "command" | "cmd" => Column::ProcessName,
            "t" | "seconds" | "secs" | "sec" | "time s" | "time sec" | "time secs"
            | "time seconds" => Column::Elapsed,
            "time ms" => Column::ElapsedMillis,
            _ if has(words, &["elapsed", "relative", "runtime"]) => {
                if has(words, &["ms", "millis"]) {
                    Column::ElapsedMillis
                } else {
                    Column::Elapsed
                }
            }
            _ if has(words, &["timestamp", "datetime", "epoch"]) => Column::Time,
            "time" | "ts" | "time stamp" | "date time" | "unix time" | "wall time"
            | "local time" => Column::Time,
            _ => return None,
        };
    Some(kind)
}

/// A level, and how sure that is: `usage` may be a share, and memory alone may be anything.
fn kind_of_level(words: &[String], has_unit: bool) -> (Column, u8) {
    let is_device = has(words, &DEVICE);
    let is_host = has(words, &HOST) && !is_device;
    if !has(words, &MEMORY) || is_host || has(words, &NO_LEVEL) {
        return (Column::Other, 0);
    }
    let of_device = u8::from(is_device);
    if has(words, &TOTAL) {
        return (Column::Total, 2 + of_device);
    }
    if has(words, &FREE) {
        return (Column::Free, 2 + of_device);
    }
    let used = if has(words, &PROCESS) {
        Column::ProcessUsed
    } else {
        Column::Used
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
        (Column::Other, 0)
    }
}

/// The level that a label before a figure with a unit names. Behind a figure of memory, `used` is enough.
pub(super) fn level_before_figure(label: &str, is_behind_memory: bool) -> Column {
    let mut words = words(label);
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
    fn check(kind: Column, names: &[&str]) {
        for name in names {
            assert_eq!(named(name).kind, kind, "{name}");
        }
    }

    #[test]
    fn names_of_scripts_are_those_of_nvidia_smi() {
        check(
            Column::Used,
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
            Column::Total,
            &[
                "memory.total [MiB]",
                "gpu_memory_total",
                "mem_total_mb",
                "vram_capacity_gb",
            ],
        );
        check(Column::Free, &["memory.free [MiB]", "gpu_mem_available_mb"]);
        check(Column::ProcessUsed, &["process_gpu_memory_used"]);
        check(
            Column::Other,
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
        check(Column::Number, &["gpu", "index_gpu", "gpuIndex", "GPU ID"]);
        check(Column::Elapsed, &["elapsed_sec", "t", "time_s"]);
        check(Column::ElapsedMillis, &["elapsed_ms"]);
        check(Column::Time, &["timestamp", "Timestamp (UTC)", "time"]);
    }

    #[test]
    fn units_and_devices_are_in_names_too() {
        let unit_of = |name| named(name).unit;
        assert_eq!(unit_of("mem_used_mb"), Some(1 << 20));
        assert_eq!(unit_of("vram_used_gb"), Some(1 << 30));
        assert_eq!(unit_of("memory_used [B]"), Some(1));
        assert_eq!(unit_of("gpu_memory_used"), None);
        assert_eq!(named("gpu1_mem_used").device, Some(1));
        assert_eq!(named("system.gpu.0.memoryAllocatedBytes").device, Some(0));
        assert_eq!(named("gpu_mem_used").device, None);
    }
}
