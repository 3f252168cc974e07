//! Headers: which column is what, in CSV and in the tables of `dmon` and `pmon`.

use super::quantity::unit;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Time,
    Day,
    /// The device's number, as dmon, pmon and `index` give it.
    Number,
    /// `index` beside `gpu`.
    Index,
    Uuid,
    Bus,
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

impl Column {
    pub(super) const fn is_level(self) -> bool {
        matches!(
            self,
            Self::ProcessUsed | Self::Used | Self::Free | Self::Total
        )
    }
}

/// How a line's fields are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Comma,
    Space,
}

/// The columns below a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) separator: Separator,
    pub(super) kinds: Vec<Column>,
    /// Bytes of one, in each column whose header names its unit; MiB in the others.
    pub(super) units: Vec<Option<u64>>,
    /// As they are in the file.
    pub(super) names: String,
}

impl Columns {
    /// The columns of a header, if the line is one.
    pub(super) fn of_header(line: &str) -> Option<Self> {
        match line.strip_prefix('#') {
            Some(line) => Self::of_monitor(line.trim()),
            None => Self::of_csv(line),
        }
    }

    fn of_csv(line: &str) -> Option<Self> {
        // A reading has a number in some field; a header has none in front of any. pandas writes its index first,
        // without a name.
        let is_name = |(at, field): (usize, &str)| {
            let field = field.trim();
            field.starts_with(|c: char| c.is_ascii_alphabetic() || c == '"')
                || at == 0 && field.is_empty()
        };
        if !line.split(',').enumerate().all(is_name) {
            return None;
        }
        let name_of = |field: &str| {
            let field = field.trim().trim_matches('"');
            let (name, in_brackets) = field.split_once('[').unwrap_or((field, ""));
            let unit = unit(in_brackets.trim_end_matches(']'));
            (name.trim().to_ascii_lowercase(), unit)
        };
        let is_of_processes = line.split(',').any(|field| name_of(field).0 == "pid");
        let mut columns = Vec::new();
        let mut units = Vec::new();
        for (name, unit) in line.split(',').map(name_of) {
            columns.push(csv_column(&name, is_of_processes));
            units.push(unit);
        }
        is_ours(&columns, line).then_some(Self {
            separator: Separator::Comma,
            kinds: with_index(columns),
            units,
            names: line.trim().to_owned(),
        })
    }

    fn of_monitor(line: &str) -> Option<Self> {
        let separator = if line.contains(',') {
            Separator::Comma
        } else {
            Separator::Space
        };
        let mut columns = Vec::new();
        let mut is_of_processes = false;
        for name in line.split([',', ' ', '\t']).filter(|name| !name.is_empty()) {
            is_of_processes |= name == "pid";
            columns.push(match name {
                "Date" => Column::Day,
                "Time" => Column::Time,
                "gpu" => Column::Number,
                "pid" => Column::Pid,
                "fb" if is_of_processes => Column::ProcessUsed,
                "fb" => Column::Used,
                "command" => Column::ProcessName,
                _ => Column::Other,
            });
        }
        columns.contains(&Column::Number).then(|| Self {
            separator,
            units: vec![None; columns.len()],
            kinds: columns,
            names: line.to_owned(),
        })
    }

    pub(super) fn has(&self, wanted: Column) -> bool {
        self.kinds.contains(&wanted)
    }

    pub(super) fn has_level(&self) -> bool {
        self.has(Column::Used)
            || self.has(Column::ProcessUsed)
            || self.has(Column::Free) && self.has(Column::Total)
    }

    /// Takes over the units that the second header of dmon and pmon states.
    pub(super) fn take_units(&mut self, line: &str) {
        let units = line.trim_start_matches('#').split([',', ' ', '\t']);
        let units = units.filter(|unit| !unit.is_empty());
        for (known, name) in self.units.iter_mut().zip(units) {
            *known = unit(name).or(*known);
        }
    }

    /// What logs memory in the form of these columns.
    pub(super) fn command(&self) -> &'static str {
        let is_monitor = self.separator == Separator::Space || self.names.starts_with("gpu,");
        match (is_monitor, self.has(Column::Pid)) {
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

/// The names of `--query-gpu` and `--query-compute-apps`, and those that scripts give.
fn csv_column(name: &str, is_of_processes: bool) -> Column {
    let of_process = |theirs, ours| if is_of_processes { theirs } else { ours };
    match name {
        "timestamp" | "time" | "datetime" | "date_time" | "unix_time" | "epoch" => Column::Time,
        "date" => Column::Day,
        "gpu" | "gpu_id" | "gpu_index" | "gpu.index" | "device" | "device_id" => Column::Number,
        "index" => Column::Index,
        "uuid" | "gpu_uuid" => Column::Uuid,
        "pci.bus_id" | "gpu_bus_id" | "bus_id" => Column::Bus,
        "name" => of_process(Column::ProcessName, Column::DeviceName),
        "gpu_name" => Column::DeviceName,
        "pid" => Column::Pid,
        "process_name" => Column::ProcessName,
        "used_gpu_memory" | "used_memory" => of_process(Column::ProcessUsed, Column::Other),
        "memory.used" | "memory_used" | "mem_used" | "memory.used_mib" | "memory_used_mib" => {
            of_process(Column::ProcessUsed, Column::Used)
        }
        "memory.total" | "memory_total" | "mem_total" | "memory_total_mib" => Column::Total,
        "memory.free" | "memory_free" | "mem_free" => Column::Free,
        _ => Column::Other,
    }
}

/// `index` is the number, unless there is another one beside it.
fn with_index(mut columns: Vec<Column>) -> Vec<Column> {
    if !columns.contains(&Column::Number) {
        for column in &mut columns {
            if *column == Column::Index {
                *column = Column::Number;
            }
        }
    }
    columns
}

/// Whether a line of names is a header of nvidia-smi: others have a `timestamp`, too.
fn is_ours(columns: &[Column], line: &str) -> bool {
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
