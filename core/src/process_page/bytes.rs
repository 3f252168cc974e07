//! The form in which a page goes to where it is shown. Only this module writes and reads it.
//!
//! After [`BEGINS`] and a checksum, each field stands behind the other: numbers as LEB128, what may be
//! unknown with a byte before it, texts and lists with their length.

use std::fmt;

use super::{BadEnd, MAX_ROWS, PageCause, PageRow, ProcessPage};
use crate::analyze::Severity;
use crate::downsample::{LevelPoint, MAX_LEVELS};
use crate::units::{ByteDelta, Bytes, Nanos};

/// The first bytes of a page.
pub const BEGINS: &[u8] = b"\x93gpumem processes 1\n";

/// Longer texts are cut: they are names, labels and sentences.
const MAX_TEXT: usize = 4096;
const MAX_CAUSES: usize = 1024;
const MAX_NOTES: usize = 64;
/// No row takes fewer bytes, nor any cause.
const LEAST_ROW: usize = 17;
const LEAST_CAUSE: usize = 4;

/// Why bytes are no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageError {
    /// They begin otherwise.
    NoPage,
    /// They are not those that were written.
    Checksum,
    /// They end too early.
    Cut,
    /// A field has a value that it cannot have.
    Invalid(&'static str),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPage => write!(f, "not a page of processes"),
            Self::Checksum => write!(f, "damaged: the checksum does not match"),
            Self::Cut => write!(f, "cut off"),
            Self::Invalid(what) => write!(f, "damaged: {what} cannot be"),
        }
    }
}

impl std::error::Error for PageError {}

impl ProcessPage {
    /// The page as bytes. Texts of over 4096 bytes are cut.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer(Vec::new());
        writer.page(self);
        let payload = writer.0;
        let checksum = crc32fast::hash(&payload).to_le_bytes();
        [BEGINS, &checksum, &payload].concat()
    }

    /// The page that bytes hold.
    ///
    /// # Errors
    ///
    /// The bytes are none of a page, or not as they were written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PageError> {
        let rest = bytes.strip_prefix(BEGINS).ok_or(PageError::NoPage)?;
        let (checksum, payload) = rest.split_first_chunk().ok_or(PageError::Cut)?;
        if crc32fast::hash(payload) != u32::from_le_bytes(*checksum) {
            return Err(PageError::Checksum);
        }
        let mut reader = Reader(payload);
        let page = reader.page()?;
        match reader.0 {
            [] => Ok(page),
            _ => Err(PageError::Invalid("what follows the last field")),
        }
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn page(&mut self, page: &ProcessPage) {
        for text in [&page.noun, &page.title, &page.healthy, &page.step] {
            self.text(text);
        }
        self.number(page.span.get());
        let rows = &page.rows[..page.rows.len().min(MAX_ROWS)];
        self.length(rows.len());
        for row in rows {
            self.row(row);
        }
        let causes = &page.causes[..page.causes.len().min(MAX_CAUSES)];
        self.length(causes.len());
        for cause in causes {
            self.cause(cause);
        }
        let notes = &page.notes[..page.notes.len().min(MAX_NOTES)];
        self.length(notes.len());
        for note in notes {
            self.text(note);
        }
    }

    fn cause(&mut self, cause: &PageCause) {
        self.0.push(severity_code(Some(cause.severity)));
        self.text(&cause.words);
        self.text(&cause.command);
        let rows = cause.rows.iter().filter(|row| **row < MAX_ROWS);
        self.length(rows.clone().count());
        for row in rows {
            self.length(*row);
        }
    }

    fn row(&mut self, row: &PageRow) {
        for text in [
            &row.name,
            &row.machine,
            &row.device,
            &row.growth,
            &row.ending,
        ] {
            self.text(text);
        }
        self.known(row.pid.map(u64::from));
        self.known(row.latest.map(Bytes::get));
        self.known(row.peak.map(Bytes::get));
        self.known(row.grew.map(zigzag));
        self.known(row.outside.map(Bytes::get));
        self.known(row.gpu_used.map(Bytes::get));
        self.known(row.n_steps);
        self.known(row.per_step.map(zigzag));
        self.0.push(match row.end {
            None => 0,
            Some(BadEnd::OutOfMemory) => 1,
            Some(BadEnd::Died) => 2,
        });
        self.number(row.until.get());
        self.0.push(severity_code(row.severity));
        let levels = &row.levels[..row.levels.len().min(MAX_LEVELS)];
        self.length(levels.len());
        let (mut at, mut level) = (0, 0);
        for point in levels {
            self.number(point.at.get().saturating_sub(at));
            let change = point.level.get().wrapping_sub(level).cast_signed();
            self.number(zigzag(ByteDelta::new(change)));
            (at, level) = (point.at.get().max(at), point.level.get());
        }
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    fn length(&mut self, length: usize) {
        self.number(length as u64);
    }

    fn text(&mut self, text: &str) {
        let mut end = text.len().min(MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &text[..end];
        self.length(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn known(&mut self, number: Option<u64>) {
        self.0.push(u8::from(number.is_some()));
        if let Some(number) = number {
            self.number(number);
        }
    }
}

/// Small numbers of either sign in few bytes.
fn zigzag(delta: ByteDelta) -> u64 {
    let n = delta.get();
    ((n << 1) ^ (n >> 63)).cast_unsigned()
}

fn unzigzag(n: u64) -> i64 {
    (n >> 1).cast_signed() ^ -(n & 1).cast_signed()
}

const fn severity_code(severity: Option<Severity>) -> u8 {
    match severity {
        None => 0,
        Some(Severity::Info) => 1,
        Some(Severity::Warning) => 2,
        Some(Severity::Critical) => 3,
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn page(&mut self) -> Result<ProcessPage, PageError> {
        let [noun, title, healthy, step] = self.texts()?;
        let span = Nanos::new(self.number()?);
        let n_rows = self.length(MAX_ROWS, "the number of rows")?;
        let rows = self.list(n_rows, LEAST_ROW, Self::row)?;
        let n_causes = self.length(MAX_CAUSES, "the number of causes")?;
        let causes = self.list(n_causes, LEAST_CAUSE, |reader| reader.cause(rows.len()))?;
        let n_notes = self.length(MAX_NOTES, "the number of notes")?;
        let notes = self.list(n_notes, 1, Self::text)?;
        Ok(ProcessPage {
            noun,
            title,
            healthy,
            step,
            span,
            causes,
            rows,
            notes,
        })
    }

    fn cause(&mut self, n_rows: usize) -> Result<PageCause, PageError> {
        let severity = self.severity()?;
        let severity = severity.ok_or(PageError::Invalid("the severity of a cause"))?;
        let [words, command] = self.texts()?;
        let n = self.length(n_rows, "the number of a cause's rows")?;
        let rows = self.list(n, 1, |reader| {
            let row = reader.length(n_rows, "the row of a cause")?;
            if row == n_rows {
                return Err(PageError::Invalid("the row of a cause"));
            }
            Ok(row)
        })?;
        Ok(PageCause {
            severity,
            words,
            command,
            rows,
        })
    }

    fn row(&mut self) -> Result<PageRow, PageError> {
        let [name, machine, device, growth, ending] = self.texts()?;
        let pid = match self.known()? {
            Some(pid) => {
                let pid = u32::try_from(pid);
                Some(pid.map_err(|_| PageError::Invalid("the number of a process"))?)
            }
            None => None,
        };
        Ok(PageRow {
            name,
            machine,
            device,
            growth,
            ending,
            pid,
            latest: self.known()?.map(Bytes::new),
            peak: self.known()?.map(Bytes::new),
            grew: self.known()?.map(unzigzag).map(ByteDelta::new),
            outside: self.known()?.map(Bytes::new),
            gpu_used: self.known()?.map(Bytes::new),
            n_steps: self.known()?,
            per_step: self.known()?.map(unzigzag).map(ByteDelta::new),
            end: match self.byte()? {
                0 => None,
                1 => Some(BadEnd::OutOfMemory),
                2 => Some(BadEnd::Died),
                _ => return Err(PageError::Invalid("the end of a process")),
            },
            until: Nanos::new(self.number()?),
            severity: self.severity()?,
            levels: self.levels()?,
        })
    }

    fn levels(&mut self) -> Result<Vec<LevelPoint>, PageError> {
        let n = self.length(MAX_LEVELS, "the number of levels")?;
        let (mut at, mut level) = (0_u64, 0_u64);
        self.list(n, 2, |reader| {
            let later = at.checked_add(reader.number()?);
            at = later.ok_or(PageError::Invalid("the instant of a level"))?;
            level = level.wrapping_add(unzigzag(reader.number()?).cast_unsigned());
            Ok(LevelPoint {
                at: Nanos::new(at),
                level: Bytes::new(level),
            })
        })
    }

    /// A list of that length, whose entries take at least so many bytes.
    fn list<T>(
        &mut self,
        n: usize,
        least: usize,
        mut entry: impl FnMut(&mut Self) -> Result<T, PageError>,
    ) -> Result<Vec<T>, PageError> {
        if n > self.0.len() / least {
            return Err(PageError::Cut);
        }
        let mut entries = Vec::with_capacity(n);
        for _ in 0..n {
            entries.push(entry(self)?);
        }
        Ok(entries)
    }

    fn byte(&mut self) -> Result<u8, PageError> {
        let (first, rest) = self.0.split_first().ok_or(PageError::Cut)?;
        self.0 = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, PageError> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                break;
            }
            number |= part << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(PageError::Invalid("a number"))
    }

    fn length(&mut self, most: usize, what: &'static str) -> Result<usize, PageError> {
        let length = usize::try_from(self.number()?);
        let length = length.ok().filter(|length| *length <= most);
        length.ok_or(PageError::Invalid(what))
    }

    fn text(&mut self) -> Result<String, PageError> {
        let length = self.length(MAX_TEXT, "the length of a text")?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(PageError::Cut)?;
        self.0 = rest;
        let text = std::str::from_utf8(text).map_err(|_| PageError::Invalid("a text"))?;
        Ok(text.to_owned())
    }

    fn texts<const N: usize>(&mut self) -> Result<[String; N], PageError> {
        let mut texts = [const { String::new() }; N];
        for text in &mut texts {
            *text = self.text()?;
        }
        Ok(texts)
    }

    fn known(&mut self) -> Result<Option<u64>, PageError> {
        match self.byte()? {
            0 => Ok(None),
            1 => Ok(Some(self.number()?)),
            _ => Err(PageError::Invalid("whether something is known")),
        }
    }

    fn severity(&mut self) -> Result<Option<Severity>, PageError> {
        match self.byte()? {
            0 => Ok(None),
            1 => Ok(Some(Severity::Info)),
            2 => Ok(Some(Severity::Warning)),
            3 => Ok(Some(Severity::Critical)),
            _ => Err(PageError::Invalid("a severity")),
        }
    }
}
