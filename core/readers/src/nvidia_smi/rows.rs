//! Rows → readings.

use super::columns::{Separator, SmiColumn, SmiColumns};
use super::decoded::{DecodedLine, DecodedText};
use super::fault::NvidiaSmiFault;
use super::fields::{fields, is_open};
use super::query::{self, Query, QueryLine};
use super::row::SmiRow;
use super::table::{self, TablePosition};
use super::xml::{self, Element, Xml};
use super::{TITLE, TITLE_OF_OTHERS};
use super::{guess, prose, quantity};
use crate::level_log::{Ids, LevelKind, LevelLog, LevelLogBuilder, LogReading, WallTime};
use gpumem_model::units::Bytes;

/// At most this many characters of a line without a reading are shown.
const N_SHOWN: usize = 60;

/// No device has more memory.
pub(super) const MOST: Bytes = Bytes::mib(16 << 20);

pub(super) fn read(decoded: &DecodedText<'_>) -> Result<LevelLog, (usize, NvidiaSmiFault)> {
    let mut reader = SmiReader::default();
    let mut lines = decoded.lines();
    while let Some(mut line) = lines.next() {
        if reader.is_open(line) {
            let mut ahead = lines.clone();
            let joined = ahead.by_ref().take(N_IN_QUOTES);
            let mut joined = joined.map(|last| decoded.joined(line, last));
            if let Some(whole) = joined.find(|line| !reader.is_open(*line)) {
                (line, lines) = (whole, ahead);
            }
        }
        reader.line(line, decoded)?;
    }
    reader.finish()
}

/// A quoted field has at most this many lines.
const N_IN_QUOTES: usize = 4;

/// The output that the current lines belong to, unless they are rows.
enum Output<'t> {
    Query(Query<'t>),
    Xml(Xml<'t>),
}

/// How to name devices that only their position in each reading distinguishes.
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

/// A row's time and level in a log that does not name its devices.
struct UnnamedRow<'t> {
    at: WallTime,
    reading: LogReading<'t>,
}

#[derive(Default)]
struct SmiReader<'t> {
    columns: Option<SmiColumns>,
    table: TablePosition<'t>,
    output: Option<Output<'t>>,
    /// A header without memory, and its offset.
    without_memory: Option<(usize, SmiColumns)>,
    /// Rows without anything that names their device.
    unnamed: Vec<UnnamedRow<'t>>,
    unnamed_total: Option<Bytes>,
    builder: LevelLogBuilder<'t>,
    latest_time: Option<WallTime>,
    has_units: bool,
    n_strange: usize,
    first_strange: Option<DecodedLine<'t>>,
    has_cut: bool,
    /// A number that is no level in MiB.
    too_large: Option<&'t str>,
    is_guessed: bool,
    /// The log's name, if nvidia-smi did not write its lines.
    title: Option<&'static str>,
    /// The offset of an output that may lack memory.
    output_at: Option<(usize, &'static str)>,
    end: usize,
}

impl<'t> SmiReader<'t> {
    fn line(
        &mut self,
        line: DecodedLine<'t>,
        decoded: &'t DecodedText<'_>,
    ) -> Result<(), (usize, NvidiaSmiFault)> {
        self.end = line.at + line.text.len();
        if self.other_output(line) {
            return Ok(());
        }
        if let Some(columns) = SmiColumns::of_header(line.text) {
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
        let is_first = !self.has_readings();
        if self.columns.is_none() && !is_prose(line.text) {
            self.columns = self.guessed(decoded)?;
        }
        if self.row(line) || self.too_large.is_none() && self.prose(line) {
            return Ok(());
        }
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
        Ok(())
    }

    /// Whether a quoted field continues on the next line.
    fn is_open(&self, line: DecodedLine<'t>) -> bool {
        self.columns
            .as_ref()
            .is_some_and(|columns| match columns.separator {
                Separator::Letter(separator) => is_open(line.text, separator),
                Separator::Space => false,
            })
    }

    /// Reads a line of the table, of `-q` or of its XML; false for other lines.
    fn other_output(&mut self, line: DecodedLine<'t>) -> bool {
        if table::is_drawn(line.text) {
            if table::is_theirs(line.text) {
                self.output_at.get_or_insert((line.at, "the table"));
            }
            if let Some(row) = self.table.line(line.text) {
                self.named(&row, self.latest_time);
            }
            return true;
        }
        if query::begins(line.text) {
            self.output_at
                .get_or_insert((line.at, "the output of `-q`"));
            self.output = Some(Output::Query(Query::default()));
        } else if xml::begins(line.text) {
            self.output_at
                .get_or_insert((line.at, "the XML of `-q -x`"));
            if !matches!(self.output, Some(Output::Xml(_))) {
                self.output = Some(Output::Xml(Xml::default()));
            }
        }
        match self.output.take() {
            None => false,
            Some(Output::Query(mut query)) => {
                let said = query.line(line.indent, line.text);
                self.output = Some(Output::Query(query));
                match said {
                    QueryLine::Row(row) if line.has_end => self.named(&row, self.latest_time),
                    QueryLine::Row(_) => self.has_cut = true,
                    QueryLine::Time(time) => self.latest_time = Some(time),
                    QueryLine::Other => (),
                    QueryLine::Foreign => return false,
                }
                true
            }
            Some(Output::Xml(mut xml)) => {
                let is_theirs = line.text.starts_with('<');
                xml.line(line.text, |element| match element {
                    Element::Row(row) => self.named(&row, self.latest_time),
                    Element::Time(time) => self.latest_time = Some(time),
                });
                self.output = Some(Output::Xml(xml));
                is_theirs
            }
        }
    }

    /// Reads such a line; false for other lines.
    fn prose(&mut self, line: DecodedLine<'t>) -> bool {
        let time = prose::time_in(line.text);
        let row = prose::row(line.text).filter(|_| self.columns.is_none());
        let is_heading = time.is_some_and(|(_, rest)| is_heading(rest));
        if row.is_none() && !is_heading {
            return false;
        }
        let time = time.map(|(time, _)| time.after_midnight(self.latest_time));
        self.latest_time = time.or(self.latest_time);
        if let Some(row) = row {
            if !line.has_end {
                return false;
            }
            self.title = Some(TITLE_OF_OTHERS);
            self.take(&row, self.latest_time);
        }
        true
    }

    fn has_readings(&self) -> bool {
        self.builder.n_readings() > 0 || !self.unnamed.is_empty()
    }

    /// The columns of a log that begins without a header.
    fn guessed(
        &mut self,
        decoded: &DecodedText<'_>,
    ) -> Result<Option<SmiColumns>, (usize, NvidiaSmiFault)> {
        if self.is_guessed {
            return Ok(None);
        }
        self.is_guessed = true;
        let lines = decoded.lines().map(|line| line.text);
        let rows = lines.take_while(|line| SmiColumns::of_header(line).is_none());
        let rows: Vec<&str> = rows.take(4000).collect();
        match guess::columns(&rows) {
            Some(Ok(columns)) => {
                let at = |wanted: fn(&SmiColumn) -> bool| columns.kinds.iter().position(wanted);
                let used = at(|kind| matches!(kind, SmiColumn::Used | SmiColumn::ProcessUsed));
                let of_total = at(|kind| *kind == SmiColumn::Total)
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

    /// Reads one row; false for other lines.
    fn row(&mut self, line: DecodedLine<'t>) -> bool {
        let is_first = !self.has_readings();
        let Some(columns) = &self.columns else {
            return false;
        };
        let Some(fields) = fields(line.text, columns) else {
            return false;
        };
        let (mut row, mut of_devices) = (SmiRow::default(), Vec::new());
        for (at, field) in fields.into_iter().enumerate() {
            let (column, unit) = (columns.kinds[at], columns.units[at]);
            let row = match columns.devices[at] {
                Some(device) if columns.has_several_devices() => row_of(&mut of_devices, device),
                _ => &mut row,
            };
            let is_in_order = row.take(field, column, unit.unwrap_or(1 << 20), columns.separator);
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
        // A script may write the time above the rows.
        let at = at.or(self.latest_time.filter(|_| !columns.has_time()));
        if !columns.has_level() {
            return true;
        }
        if of_devices.is_empty() {
            self.take(&row, at);
        }
        for (_, row) in of_devices {
            self.named(&row, at);
        }
        true
    }

    /// A row of a device that may have no name.
    fn take(&mut self, row: &SmiRow<'t>, at: Option<WallTime>) {
        match (row.used(), at) {
            (Some(reading), Some(at)) if row.ids == Ids::default() && row.pid.is_none() => {
                self.unnamed_row(at, reading, row.total);
            }
            _ => self.named(row, at),
        }
    }

    fn unnamed_row(&mut self, at: WallTime, reading: LogReading<'t>, total: Option<Bytes>) {
        self.builder.at(Some(at));
        self.unnamed_total = self.unnamed_total.max(total);
        self.unnamed.push(UnnamedRow { at, reading });
    }

    fn named(&mut self, row: &SmiRow<'t>, at: Option<WallTime>) {
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
            return Err(match (self.output_at, self.columns) {
                (Some((at, output)), _) => (at, NvidiaSmiFault::NoLevel(output)),
                (None, Some(_)) => (self.end, NvidiaSmiFault::NoReading),
                (None, None) => (self.end, NvidiaSmiFault::NotALog),
            });
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
        Ok(self.builder.finish(self.title.unwrap_or(TITLE)))
    }

    /// Rows without a device: rows with the same time belong to one device each, in their order.
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

/// Whether a row without a line end may have lost digits: `12` of `1234`. A unit or a bracket ends a field;
/// cut columns that are not read do not matter.
fn may_be_cut(text: &str, columns: &SmiColumns) -> bool {
    let is_read = columns.kinds.last() != Some(&SmiColumn::Other);
    is_read && !text.ends_with(['B', ']', '%', '"'])
}

/// Number of rows in each reading, if times show it: all have the same number, at most 20 ms apart.
fn n_in_turn(rows: &[UnnamedRow<'_>]) -> Option<usize> {
    const APART: u64 = 20_000_000;
    let is_same = |a: &UnnamedRow<'_>, b: &UnnamedRow<'_>| {
        b.at.since(a.at).get() <= APART && b.at.nanos() >= a.at.nanos()
    };
    let turns: Vec<usize> = rows.chunk_by(is_same).map(<[_]>::len).collect();
    // The last one may be cut.
    let (last, whole) = turns.split_last()?;
    let n = *whole.first()?;
    (whole.iter().all(|turn| *turn == n) && *last <= n).then_some(n)
}

/// Whether a line is prose: a level in words, or a time above a reading.
fn is_prose(text: &str) -> bool {
    let is_time = |(_, behind): (WallTime, &str)| is_heading(behind);
    prose::row(text).is_some() || prose::time_in(text).is_some_and(is_time)
}

/// The row of a device whose number stands in the names of columns.
fn row_of<'r, 't>(rows: &'r mut Vec<(usize, SmiRow<'t>)>, device: usize) -> &'r mut SmiRow<'t> {
    let at = rows.iter().position(|(known, _)| *known == device);
    let at = at.unwrap_or_else(|| {
        let mut row = SmiRow::default();
        row.ids.number = NUMBERS.get(device).copied();
        rows.push((device, row));
        rows.len() - 1
    });
    &mut rows[at].1
}

/// Numbers of devices that stand in the names of columns.
const NUMBERS: [&str; 16] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
];

/// Whether only a zone and the driver's version follow a time, as gpustat writes.
fn is_heading(behind_time: &str) -> bool {
    let is_zone =
        |word: &str| word.len() <= 5 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_version = |word: &str| {
        word.contains('.')
            && word
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let mut words = behind_time.split_whitespace();
    words.all(|word| is_zone(word) || is_version(word))
}
