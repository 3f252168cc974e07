//! Headers: the meaning of each column, in CSV and in the tables of `dmon` and `pmon`.

use super::names::{ColumnName, SURE, parse_name};
use super::quantity::unit;

/// The meaning of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SmiColumn {
    Time,
    Day,
    /// Seconds since some start.
    Elapsed,
    ElapsedMillis,
    /// The device's number, as dmon, pmon and `index` give it.
    Number,
    /// `index` beside `gpu`.
    Index,
    Uuid,
    Bus,
    /// Of the process if there is one, else of the device.
    Name,
    DeviceName,
    Pid,
    ProcessName,
    ProcessUsed,
    Used,
    Total,
    Free,
    /// Anything else.
    Other,
}

impl SmiColumn {
    pub(super) const fn is_level(self) -> bool {
        matches!(
            self,
            Self::ProcessUsed | Self::Used | Self::Free | Self::Total
        )
    }
}

/// How a line's fields are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// `,`, `;` or a tab.
    Letter(char),
    Space,
}

/// What separates the fields of a CSV.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// The columns below a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SmiColumns {
    pub(super) separator: Separator,
    pub(super) kinds: Vec<SmiColumn>,
    /// Bytes per unit of each column whose header names one; MiB in the others.
    pub(super) units: Vec<Option<u64>>,
    /// The number of the device in a column's name.
    pub(super) devices: Vec<Option<usize>>,
    /// As they are in the file.
    pub(super) names: String,
}

impl SmiColumns {
    /// The columns of a header, if the line is one.
    pub(super) fn of_header(line: &str) -> Option<Self> {
        match line.strip_prefix('#') {
            Some(line) => Self::of_monitor(line.trim()),
            None => Self::of_csv(line),
        }
    }

    fn of_csv(line: &str) -> Option<Self> {
        let n_of = |separator: &char| line.matches(*separator).count();
        let separator = SEPARATORS.into_iter().rev().max_by_key(n_of)?;
        // Some field of a reading begins with a number; no field of a header does. pandas writes its index first,
        // without a name.
        let is_name = |(at, field): (usize, &str)| {
            let field = field.trim();
            field.starts_with(|c: char| c.is_ascii_alphabetic() || c == '"')
                || at == 0 && field.is_empty()
        };
        if !line.split(separator).enumerate().all(is_name) || is_sentence(line, separator) {
            return None;
        }
        let columns = one_of_each_kind(line.split(separator).map(parse_name).collect());
        let kinds: Vec<SmiColumn> = columns.iter().map(|column| column.kind).collect();
        is_ours(&kinds, line).then(|| Self {
            separator: Separator::Letter(separator),
            units: columns.iter().map(|column| column.unit).collect(),
            devices: columns.iter().map(|column| column.device).collect(),
            kinds: with_index(kinds),
            names: line.trim().to_owned(),
        })
    }

    fn of_monitor(line: &str) -> Option<Self> {
        let separator = if line.contains(',') {
            Separator::Letter(',')
        } else {
            Separator::Space
        };
        let mut columns = Vec::new();
        let mut is_of_processes = false;
        for name in line.split([',', ' ', '\t']).filter(|name| !name.is_empty()) {
            is_of_processes |= name == "pid";
            columns.push(match name {
                "Date" => SmiColumn::Day,
                "Time" => SmiColumn::Time,
                "gpu" => SmiColumn::Number,
                "pid" => SmiColumn::Pid,
                "fb" if is_of_processes => SmiColumn::ProcessUsed,
                "fb" => SmiColumn::Used,
                "command" => SmiColumn::ProcessName,
                _ => SmiColumn::Other,
            });
        }
        columns.contains(&SmiColumn::Number).then(|| Self {
            separator,
            units: vec![None; columns.len()],
            devices: vec![None; columns.len()],
            kinds: columns,
            names: line.to_owned(),
        })
    }

    pub(super) fn has(&self, wanted: SmiColumn) -> bool {
        self.kinds.contains(&wanted)
    }

    /// Whether columns of several devices stand side by side.
    pub(super) fn has_several_devices(&self) -> bool {
        let mut devices = self.devices.iter().flatten();
        let first = devices.next();
        devices.any(|device| Some(device) != first)
    }

    pub(super) fn has_time(&self) -> bool {
        let is_time = |kind: &SmiColumn| {
            matches!(
                kind,
                SmiColumn::Time | SmiColumn::Day | SmiColumn::Elapsed | SmiColumn::ElapsedMillis
            )
        };
        self.kinds.iter().any(is_time)
    }

    pub(super) fn has_level(&self) -> bool {
        self.has(SmiColumn::Used)
            || self.has(SmiColumn::ProcessUsed)
            || self.has(SmiColumn::Free) && self.has(SmiColumn::Total)
    }

    /// Takes over the units that the second header of dmon and pmon states.
    pub(super) fn take_units(&mut self, line: &str) {
        let units = line.trim_start_matches('#').split([',', ' ', '\t']);
        let units = units.filter(|unit| !unit.is_empty());
        for (known, name) in self.units.iter_mut().zip(units) {
            *known = unit(name).or(*known);
        }
    }

    /// The command that logs memory in the form of these columns.
    pub(super) fn command(&self) -> &'static str {
        let is_monitor = self.separator == Separator::Space || self.names.starts_with("gpu,");
        match (is_monitor, self.has(SmiColumn::Pid)) {
            (true, true) => "nvidia-smi pmon -s m -o DT",
            (true, false) => "nvidia-smi dmon -s m -o DT",
            (false, true) => {
                "nvidia-smi --query-compute-apps=timestamp,gpu_uuid,pid,name,used_memory --format=csv -l 1"
            }
            (false, false) => {
                "nvidia-smi --query-gpu=timestamp,index,name,memory.used,memory.total --format=csv -l 1"
            }
        }
    }
}

/// Whether a line is text: it has words but no separators, or a value follows a name.
fn is_sentence(line: &str, separator: char) -> bool {
    let name = line.split(['[', '(']).next().unwrap_or_default();
    let has_words = !line.contains(separator) && name.trim().contains(char::is_whitespace);
    has_words || line.contains(": ") || line.contains('=')
}

/// Keeps the surest of several columns that may be the same level of a device. A possible share is a level only
/// beside a capacity. If a line names a process, its levels are the process's.
fn one_of_each_kind(mut columns: Vec<ColumnName>) -> Vec<ColumnName> {
    let has = |columns: &[ColumnName], kind| columns.iter().any(|column| column.kind == kind);
    let has_total = has(&columns, SmiColumn::Total);
    let is_of_process = has(&columns, SmiColumn::Pid) && !has(&columns, SmiColumn::ProcessUsed);
    for column in &mut columns {
        column.kind = match column.kind {
            SmiColumn::Used if column.rank < SURE && !has_total => SmiColumn::Other,
            SmiColumn::Used if is_of_process => SmiColumn::ProcessUsed,
            SmiColumn::Name if is_of_process => SmiColumn::ProcessName,
            SmiColumn::Name => SmiColumn::DeviceName,
            kind => kind,
        };
    }
    for at in 0..columns.len() {
        let (kind, device, rank) = (columns[at].kind, columns[at].device, columns[at].rank);
        let is_surer = |(other, it): (usize, &ColumnName)| {
            let is_rival = other != at && it.kind == kind && it.device == device;
            is_rival && (it.rank > rank || it.rank == rank && other < at)
        };
        if kind.is_level() && columns.iter().enumerate().any(is_surer) {
            columns[at].kind = SmiColumn::Other;
        }
    }
    columns
}

/// `index` is the device's number, unless another column is.
fn with_index(mut columns: Vec<SmiColumn>) -> Vec<SmiColumn> {
    if !columns.contains(&SmiColumn::Number) {
        for column in &mut columns {
            if *column == SmiColumn::Index {
                *column = SmiColumn::Number;
            }
        }
    }
    columns
}

/// Whether a line of names is a header of nvidia-smi: others have a `timestamp`, too.
fn is_ours(columns: &[SmiColumn], line: &str) -> bool {
    let has_level = columns.iter().any(|column| column.is_level());
    let theirs = [
        "utilization.",
        "temperature.",
        "power.draw",
        "clocks.",
        "pstate",
        "pci.bus_id",
        "driver_version",
        "fan.speed",
        "gpu_uuid",
        "gpu_name",
        "gpu_bus_id",
        "used_gpu_memory",
    ];
    has_level || theirs.iter().any(|name| line.contains(name))
}
