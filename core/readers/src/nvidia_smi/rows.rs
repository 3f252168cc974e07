//! Rows → readings.

use super::TITLE;
use super::columns::{Column, Columns, Separator};
use super::decoded::{Decoded, Line};
use super::fault::{NvidiaSmiFault, other_output};
use super::{guess, quantity};
use crate::level_log::{Builder, Ids, LevelKind, LevelLog, Reading, WallTime};
use gpumem_model::units::Bytes;

/// Lines that are no readings are shown up to here.
const N_SHOWN: usize = 60;

/// No device has more memory.
pub(super) const MOST: Bytes = Bytes::mib(16 << 20);

pub(super) fn read(decoded: &Decoded<'_>) -> Result<LevelLog, (usize, NvidiaSmiFault)> {
    let mut reader = Reader::default();
    for line in decoded.lines() {
        reader.line(line, decoded)?;
    }
    reader.finish()
}

/// What devices are called that only their place in each reading tells apart.
const NAMES_IN_TURN: [&str; 16] = [
    "line 1 of each reading",
    "line 2 of each reading",
    "line 3 of each reading",
    "line 4 of each reading",
    "line 5 of each reading",
    "line 6 of each reading",
    "line 7 of each reading",
    "line 8 of each reading",
    "line 9 of each reading",
    "line 10 of each reading",
    "line 11 of each reading",
    "line 12 of each reading",
    "line 13 of each reading",
    "line 14 of each reading",
    "line 15 of each reading",
    "line 16 of each reading",
];

/// A row's time and level, of a log that does not name its devices.
struct Unnamed<'t> {
    at: WallTime,
    reading: Reading<'t>,
}

#[derive(Default)]
struct Reader<'t> {
    columns: Option<Columns>,
    /// The header without memory that was there, and where.
    without_memory: Option<(usize, Columns)>,
    /// Rows without anything that names their device.
    unnamed: Vec<Unnamed<'t>>,
    unnamed_total: Option<Bytes>,
    builder: Builder<'t>,
    latest_time: Option<WallTime>,
    has_units: bool,
    n_strange: usize,
    first_strange: Option<Line<'t>>,
    has_cut: bool,
    /// A number that is no level in MiB.
    too_large: Option<&'t str>,
    is_guessed: bool,
    end: usize,
}

impl<'t> Reader<'t> {
    fn line(
        &mut self,
        line: Line<'t>,
        decoded: &'t Decoded<'_>,
    ) -> Result<(), (usize, NvidiaSmiFault)> {
        self.end = line.at + line.text.len();
        if let Some(columns) = Columns::of_header(line.text) {
            let has_level = columns.has_level();
            if !has_level && self.without_memory.is_none() {
                self.without_memory = Some((line.at, columns.clone()));
            }
            self.columns = Some(columns);
            return Ok(());
        }
        if line.text.starts_with('#') {
            let is_units = line.text.contains("Idx");
            if let Some(columns) = self.columns.as_mut().filter(|_| is_units) {
                columns.take_units(line.text);
            }
            return Ok(());
        }
        if self.columns.is_none() {
            if let Some(what) = other_output(line.text) {
                return Err((line.at, NvidiaSmiFault::OtherOutput(what)));
            }
            self.columns = self.guessed(decoded)?;
        }
        let is_first = !self.has_readings();
        if !self.row(line) {
            if let Some(value) = self.too_large.take().filter(|_| is_first) {
                let value = value.to_owned();
                return Err((line.at, NvidiaSmiFault::TooLarge { value }));
            }
            if line.has_end {
                self.n_strange += 1;
                self.first_strange.get_or_insert(line);
            } else {
                self.has_cut = true;
            }
        }
        Ok(())
    }

    fn has_readings(&self) -> bool {
        self.builder.n_readings() > 0 || !self.unnamed.is_empty()
    }

    /// The columns of a log that begins without a header.
    fn guessed(
        &mut self,
        decoded: &Decoded<'_>,
    ) -> Result<Option<Columns>, (usize, NvidiaSmiFault)> {
        if self.is_guessed {
            return Ok(None);
        }
        self.is_guessed = true;
        let lines = decoded.lines().map(|line| line.text);
        let mut rows = Vec::new();
        rows.extend(
            lines
                .take_while(|line| Columns::of_header(line).is_none())
                .take(4000),
        );
        match guess::columns(&rows) {
            Some(Ok(columns)) => {
                let at = |wanted: fn(&Column) -> bool| columns.kinds.iter().position(wanted);
                let used = at(|kind| matches!(kind, Column::Used | Column::ProcessUsed));
                let of_total = at(|kind| *kind == Column::Total)
                    .map(|total| format!(", column {} as the capacity", total + 1));
                let words = format!(
                    "the log has no header: column {} was taken as used memory{}",
                    used.unwrap_or(0) + 1,
                    of_total.unwrap_or_default()
                );
                self.builder.notes.push(words);
                Ok(Some(columns))
            }
            Some(Err(n_columns)) => Err((0, NvidiaSmiFault::Unnamed { n_columns })),
            None => Ok(None),
        }
    }

    /// Reads one row; false if it is none.
    fn row(&mut self, line: Line<'t>) -> bool {
        let is_first = !self.has_readings();
        let Some(columns) = &self.columns else {
            return false;
        };
        let Some(fields) = fields(line.text, columns) else {
            return false;
        };
        let mut row = Row::default();
        for ((field, column), unit) in fields.into_iter().zip(&columns.kinds).zip(&columns.units) {
            let is_in_order = row.take(field, *column, unit.unwrap_or(1 << 20));
            if !is_in_order {
                return false;
            }
            let is_too_large =
                |text| matches!(quantity::level(text, 1 << 20), Some(Ok(it)) if it > MOST);
            if unit.is_none()
                && column.is_level()
                && !quantity::has_unit(field)
                && is_too_large(field)
            {
                self.too_large = Some(field);
                return false;
            }
        }
        self.has_units |= row.has_unit;
        if !line.has_end && self.has_units && !row.has_unit {
            return false;
        }
        if !line.has_end && may_be_cut(line.text, columns) {
            if is_first {
                self.builder
                    .notes
                    .push("the only reading has no line end: it may be cut".to_owned());
            } else {
                return false;
            }
        }
        let at = row.time().map(|at| at.after_midnight(self.latest_time));
        self.latest_time = at.or(self.latest_time);
        if !columns.has_level() {
            return true;
        }
        match (row.used(), at) {
            (Some(reading), Some(at)) if row.ids == Ids::default() && row.pid.is_none() => {
                self.unnamed_row(at, reading, row.total);
            }
            _ => self.named(&row, at),
        }
        true
    }

    fn unnamed_row(&mut self, at: WallTime, reading: Reading<'t>, total: Option<Bytes>) {
        self.builder.at(Some(at));
        self.unnamed_total = self.unnamed_total.max(total);
        self.unnamed.push(Unnamed { at, reading });
    }

    fn named(&mut self, row: &Row<'t>, at: Option<WallTime>) {
        let Some(device) = self.builder.device(row.ids) else {
            return;
        };
        self.builder.at(at);
        if let Some(name) = row.device_name {
            self.builder.name(device, name);
        }
        if let Some(total) = row.total {
            self.builder.capacity(device, total);
        }
        if let Some(used) = row.used() {
            self.builder.level(device, LevelKind::Used, used, at);
        }
        if let Some(pid) = row.pid
            && let Some(process) = self.builder.process(device, pid, row.process_name)
            && let Some(used) = row.process_used
        {
            self.builder
                .process_level(process, LevelKind::Used, used, at);
        }
    }

    fn finish(mut self) -> Result<LevelLog, (usize, NvidiaSmiFault)> {
        self.name_unnamed();
        if !self.builder.has_levels() && self.builder.n_readings() == 0 {
            if let Some((at, columns)) = self.without_memory {
                let (command, columns) = (columns.command(), columns.names);
                return Err((at, NvidiaSmiFault::NoMemory { columns, command }));
            }
            let what = match self.columns {
                Some(_) => NvidiaSmiFault::NoReading,
                None => NvidiaSmiFault::NotALog,
            };
            return Err((self.end, what));
        }
        let notes = &mut self.builder.notes;
        if let Some(line) = self.first_strange {
            let (n, number) = (self.n_strange, line.number);
            let text: String = line.text.chars().take(N_SHOWN).collect();
            let dots = if text.len() < line.text.len() {
                "…"
            } else {
                ""
            };
            notes.push(match n {
                1 => format!("line {number} is not a reading: {text}{dots}"),
                n => format!("{n} lines are not readings, first line {number}: {text}{dots}"),
            });
        }
        if self.has_cut {
            notes.push("the last line was cut off, and left out".to_owned());
        }
        Ok(self.builder.finish(TITLE))
    }

    /// Rows without a device: those of one time are one of each device, in their order.
    fn name_unnamed(&mut self) {
        if self.unnamed.is_empty() {
            return;
        }
        let n_devices = n_in_turn(&self.unnamed)
            .unwrap_or(1)
            .min(NAMES_IN_TURN.len());
        if n_devices > 1 {
            self.builder.notes.push(format!(
                "the log does not name its devices: each reading has {n_devices} lines, \
                 taken as one device each"
            ));
        }
        for (at, row) in std::mem::take(&mut self.unnamed).into_iter().enumerate() {
            let number = (n_devices > 1).then(|| NAMES_IN_TURN[at % n_devices]);
            let Some(device) = self.builder.device(Ids {
                number,
                ..Ids::default()
            }) else {
                return;
            };
            if let Some(total) = self.unnamed_total {
                self.builder.capacity(device, total);
            }
            self.builder
                .level(device, LevelKind::Used, row.reading, Some(row.at));
        }
    }
}

/// Whether a row without a line end may have lost a part that counts: `12` of `1234`. A unit or a bracket ends a
/// field; what is cut from a column that is not read is no loss.
fn may_be_cut(text: &str, columns: &Columns) -> bool {
    let is_read = columns.kinds.last() != Some(&Column::Other);
    is_read && !text.ends_with(['B', ']', '%', '"'])
}

/// How many rows each reading has, if times tell: all have as many, at most 20 ms apart.
fn n_in_turn(rows: &[Unnamed<'_>]) -> Option<usize> {
    const APART: u64 = 20_000_000;
    let is_same = |a: &Unnamed<'_>, b: &Unnamed<'_>| {
        b.at.since(a.at).get() <= APART && b.at.nanos() >= a.at.nanos()
    };
    let mut turns = Vec::new();
    turns.extend(rows.chunk_by(is_same).map(<[_]>::len));
    // The last one may be cut.
    let (last, whole) = turns.split_last()?;
    let n = *whole.first()?;
    (whole.iter().all(|turn| *turn == n) && *last <= n).then_some(n)
}

/// The fields of a row; `None` if there are too few.
fn fields<'t>(text: &'t str, columns: &Columns) -> Option<Vec<&'t str>> {
    let n = columns.kinds.len();
    let mut fields: Vec<&str> = Vec::with_capacity(n);
    match columns.separator {
        Separator::Comma => fields.extend(text.split(',').map(str::trim)),
        Separator::Space => {
            let mut rest = text;
            // A command may have spaces in it.
            while fields.len() + 1 < n {
                let (field, behind) = rest.split_once(char::is_whitespace)?;
                fields.push(field);
                rest = behind.trim_start();
            }
            fields.push(rest);
        }
    }
    if fields.len() > n && columns.separator == Separator::Comma {
        // Nothing is quoted: a comma in the name of a process makes further fields.
        let name = columns
            .kinds
            .iter()
            .position(|it| *it == Column::ProcessName)?;
        let n_more = fields.len() - n;
        let begin = fields.get(name)?.as_ptr() as usize - text.as_ptr() as usize;
        let last = fields.get(name + n_more)?;
        let end = last.as_ptr() as usize - text.as_ptr() as usize + last.len();
        fields.splice(name..=name + n_more, [text.get(begin..end)?]);
    }
    (fields.len() == n).then_some(fields)
}

#[derive(Default)]
struct Row<'t> {
    ids: Ids<'t>,
    day: Option<&'t str>,
    clock: Option<&'t str>,
    device_name: Option<&'t str>,
    pid: Option<u64>,
    process_name: Option<&'t str>,
    process_used: Option<Reading<'t>>,
    level: Option<Reading<'t>>,
    free: Option<Bytes>,
    total: Option<Bytes>,
    /// Whether a level has its unit behind it.
    has_unit: bool,
}

impl<'t> Row<'t> {
    /// Takes a field in; false if it cannot be what its column holds.
    fn take(&mut self, field: &'t str, column: Column, unit: u64) -> bool {
        let field = field.trim_matches('"');
        let known = (!quantity::is_missing(field)).then_some(field);
        self.has_unit |= column.is_level() && (known.is_none() || quantity::has_unit(field));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        match column {
            Column::Time => self.clock = known,
            Column::Day => self.day = known,
            Column::Number => {
                self.ids.number = known;
                return known.is_none_or(is_number) && known.is_some();
            }
            Column::Index => self.ids.index = known,
            Column::Uuid => self.ids.uuid = known,
            Column::Bus => self.ids.bus = known,
            Column::DeviceName => self.device_name = known,
            Column::Pid => {
                self.pid = known.and_then(|pid| pid.parse().ok());
                return known.is_none() || self.pid.is_some();
            }
            Column::ProcessName => self.process_name = known,
            Column::ProcessUsed => {
                self.process_used = quantity::level(field, unit);
                return self.process_used.is_some();
            }
            Column::Used => {
                self.level = quantity::level(field, unit);
                return self.level.is_some();
            }
            Column::Free | Column::Total => {
                let Some(level) = quantity::level(field, unit) else {
                    return false;
                };
                let place = if column == Column::Free {
                    &mut self.free
                } else {
                    &mut self.total
                };
                *place = level.ok();
            }
            Column::Other => (),
        }
        true
    }

    /// What is used: as logged, or what is not free.
    fn used(&self) -> Option<Reading<'t>> {
        let of_free = self.total.zip(self.free);
        self.level
            .or_else(|| of_free.map(|(total, free)| Ok(total.saturating_sub(free))))
    }

    fn time(&self) -> Option<WallTime> {
        match (self.day, self.clock) {
            (Some(day), Some(clock)) => WallTime::parse(&format!("{day} {clock}")),
            (Some(one), None) | (None, Some(one)) => WallTime::parse(one),
            (None, None) => None,
        }
    }
}
