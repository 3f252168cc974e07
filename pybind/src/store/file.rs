//! The SQLite file of one session.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gpumem_core::format;
use gpumem_core::recording::Recording;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};

use super::folder;
use super::network;
use super::row::{Place, checksum};

/// `gpum`: what `file` and others tell it by.
const APPLICATION: i64 = 0x6770_756d;
/// What every file of SQLite begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Of the tables; the frames have a version of their own.
const VERSION: i64 = 1;
/// A file that somebody else has locked is waited for as long as this.
const PATIENCE: Duration = Duration::from_secs(2);
/// KiB of pages that SQLite keeps in memory.
const CACHE: i64 = 256;
/// Rows that are damaged are skipped in steps that double; with so many steps none is left.
const MAX_STEPS: u32 = 62;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS session (name TEXT PRIMARY KEY, value TEXT, crc INTEGER);
    CREATE TABLE IF NOT EXISTS frames (
        id INTEGER PRIMARY KEY, kind INTEGER, run INTEGER, device INTEGER, series TEXT,
        since INTEGER, crc INTEGER, bytes BLOB);
    CREATE UNIQUE INDEX IF NOT EXISTS place ON frames (kind, run, device, series, since);
";

/// What is known of a session beside its frames, by name.
pub(super) type Facts = BTreeMap<String, String>;

/// Why a file cannot be read or written.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is no file of ours any more.
    Corrupt(String),
    /// Somebody else has locked it.
    Locked,
    /// No byte fits on the disk.
    Full,
    /// The file or its folder is gone.
    Vanished,
    /// Anything else, in the system's words.
    Other(String),
}

impl Fault {
    /// One sentence.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Corrupt(words) => format!("the file is damaged ({words})"),
            Self::Locked => "another process has locked the file".to_owned(),
            Self::Full => "the disk is full".to_owned(),
            Self::Vanished => "its file was deleted".to_owned(),
            Self::Other(words) => words.clone(),
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let words = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(words),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly) => Self::Other("the file cannot be written".to_owned()),
            Some(ErrorCode::CannotOpen) => Self::Other("the file cannot be opened".to_owned()),
            _ => Self::Other(words),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => {
                let words = error.to_string();
                let words = words.split(" (os error").next().unwrap_or_default();
                Self::Other(words.to_owned())
            }
        }
    }
}

/// What is to be written: a frame's bytes in its place; `None` deletes what is there.
pub(super) type Changes = BTreeMap<Place, Option<Vec<u8>>>;

/// A session's file that is being written. For one thread of the process that opened it.
pub(super) struct SessionFile {
    connection: Connection,
    /// The same file. It is closed after the connection: closing it gives back the locks of both.
    bare: File,
    path: PathBuf,
    identity: Option<folder::Identity>,
    next_id: i64,
}

impl SessionFile {
    /// Creates the file of a session, with what is known of it.
    pub(super) fn create(path: &Path, facts: &Facts) -> Result<Self, Fault> {
        let bare = folder::create_file(path)?;
        let connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        connection.busy_timeout(PATIENCE)?;
        begin_journal(&connection, path)?;
        connection.execute_batch(&format!(
            "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -{CACHE};
             PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; {SCHEMA}"
        ))?;
        let mut file = Self {
            connection,
            bare,
            path: path.to_owned(),
            identity: folder::identity(path),
            next_id: 1,
        };
        file.write(&Changes::new(), facts)?;
        Ok(file)
    }

    /// Writes all of it or nothing.
    pub(super) fn write(&mut self, changes: &Changes, facts: &Facts) -> Result<(), Fault> {
        // SQLite would go on writing to a file that has no name any more.
        if self.identity.is_none() || folder::identity(&self.path) != self.identity {
            return Err(Fault::Vanished);
        }
        // Nor does it look at its first page again.
        let mut first = [0; MAGIC.len()];
        self.bare.rewind()?;
        self.bare.read_exact(&mut first)?;
        if first != *MAGIC {
            return Err(Fault::Corrupt(
                "another program has written to it".to_owned(),
            ));
        }
        let mut next_id = self.next_id;
        let transaction = self.connection.transaction()?;
        {
            let mut delete = transaction.prepare(
                "DELETE FROM frames
                 WHERE kind = ?1 AND run = ?2 AND device = ?3 AND series = ?4 AND since >= ?5",
            )?;
            let mut insert = transaction
                .prepare("INSERT OR REPLACE INTO frames VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
            let mut last_series: Option<&Place> = None;
            for (place, bytes) in changes {
                let of_place = params![
                    place.kind,
                    place.run,
                    place.device,
                    place.series,
                    place.since.cast_signed()
                ];
                let is_next = last_series.is_some_and(|last| last.from(0) == place.from(0));
                if bytes.is_none() || (place.holds_points() && !is_next) {
                    delete.execute(of_place)?;
                }
                last_series = Some(place);
                let Some(bytes) = bytes else { continue };
                insert.execute(params![
                    next_id,
                    place.kind,
                    place.run,
                    place.device,
                    place.series,
                    place.since.cast_signed(),
                    checksum(next_id, place, bytes),
                    bytes
                ])?;
                next_id += 1;
            }
            for (name, value) in facts {
                let crc = checksum(0, &fact_place(name), value.as_bytes());
                transaction.execute(
                    "INSERT OR REPLACE INTO session VALUES (?1, ?2, ?3)",
                    params![name, value, crc],
                )?;
            }
        }
        transaction.commit()?;
        self.next_id = next_id;
        Ok(())
    }

    /// Folds the log into the file: nothing stays beside it, and readers need nothing there.
    pub(super) fn close(self) {
        // A reader may hold the log; then it stays.
        drop(
            self.connection
                .pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())),
        );
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Bytes that SQLite holds for this process.
pub(super) fn held() -> usize {
    // SAFETY: it reads a counter under SQLite's own lock.
    #[expect(unsafe_code, reason = "rusqlite does not offer this counter")]
    let n_bytes = unsafe { rusqlite::ffi::sqlite3_memory_used() };
    usize::try_from(n_bytes).unwrap_or_default()
}

fn fact_place(name: &str) -> Place {
    Place {
        kind: u8::MAX,
        run: 0,
        device: 0,
        series: name.to_owned(),
        since: 0,
    }
}

/// A log beside the file where the file system can share its index; else one for this process
/// alone; else the oldest journal that SQLite has.
fn begin_journal(connection: &Connection, path: &Path) -> Result<(), Fault> {
    if network::is_on_network(path) {
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    }
    let mode = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
    if !matches!(mode.as_deref(), Ok("wal")) {
        connection.pragma_update_and_check(None, "journal_mode", "TRUNCATE", |_| Ok(()))?;
    }
    Ok(())
}

/// What a session's file holds.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) facts: Facts,
    pub(super) recording: Recording,
    /// What is missing, in words.
    pub(super) damage: Option<String>,
}

/// Reads what is known of a session beside its frames.
pub(super) fn facts(path: &Path) -> Result<Facts, Fault> {
    facts_in(&open(path)?)
}

/// Reads a session, also while another process writes it. Of a damaged one what is whole.
pub(super) fn read(path: &Path) -> Result<Stored, Fault> {
    let connection = open(path)?;
    // All of it as it is at one instant.
    connection.execute_batch("BEGIN")?;
    let facts = facts_in(&connection);
    let mut rows = Rows::default();
    rows.read(&connection)?;
    rows.whole.sort_by(|a, b| a.0.cmp(&b.0));
    // Nobody knows how many rows were on a page that cannot be read.
    let n_lost = rows.n_damaged + usize::from(rows.is_cut);
    let payloads = rows.whole.iter().map(|(_, bytes)| bytes.as_slice());
    let recording = format::salvage(payloads, n_lost);
    let mut damage = recording
        .missing()
        .find(|it| it.starts_with("the session's file"))
        .map(str::to_owned);
    let facts = match facts {
        Ok(facts) => facts,
        Err(Fault::Corrupt(_)) => {
            damage.get_or_insert_with(|| "the session's file was damaged".to_owned());
            Facts::new()
        }
        Err(fault) => return Err(fault),
    };
    Ok(Stored {
        facts,
        recording,
        damage,
    })
}

fn open(path: &Path) -> Result<Connection, Fault> {
    if !path.exists() {
        return Err(Fault::Vanished);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    let version = match version.map_err(Fault::from) {
        // Where no index can be made beside it, it is read as it was when it was closed last.
        Err(Fault::Other(_)) => return open_as_it_is(path),
        version => version?,
    };
    if version > VERSION {
        let words = "it was written by a newer gpumem: upgrade jupyter-gpumem";
        return Err(Fault::Other(words.to_owned()));
    }
    Ok(connection)
}

/// In a folder that cannot be written.
fn open_as_it_is(path: &Path) -> Result<Connection, Fault> {
    let name = path.to_string_lossy();
    let name = name
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)?;
    connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
    Ok(connection)
}

fn facts_in(connection: &Connection) -> Result<Facts, Fault> {
    let mut statement = connection.prepare("SELECT name, value, crc FROM session")?;
    let rows = statement.query_map([], |row| {
        let (name, value, crc): (String, String, u32) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((checksum(0, &fact_place(&name), value.as_bytes()) == crc).then_some((name, value)))
    })?;
    let mut facts = Facts::new();
    for row in rows {
        match row {
            Ok(fact) => facts.extend(fact),
            Err(error) => match Fault::from(error) {
                Fault::Other(_) => {}
                fault => return Err(fault),
            },
        }
    }
    Ok(facts)
}

/// The rows of a file that are as they were written.
#[derive(Default)]
struct Rows {
    whole: Vec<(Place, Vec<u8>)>,
    n_damaged: usize,
    /// There were pages that cannot be read.
    is_cut: bool,
}

impl Rows {
    /// Goes through the table itself: an index that is damaged costs nothing. Behind a page that
    /// cannot be read it goes on.
    fn read(&mut self, connection: &Connection) -> Result<(), Fault> {
        let (mut from, mut n_steps) = (i64::MIN, 0);
        loop {
            let n_before = self.whole.len();
            match self.read_from(connection, &mut from) {
                Err(Fault::Corrupt(_)) if n_steps < MAX_STEPS => {
                    self.is_cut = true;
                    n_steps = if self.whole.len() > n_before {
                        0
                    } else {
                        n_steps + 1
                    };
                    from = from.max(0).saturating_add(1 << n_steps);
                }
                Ok(()) | Err(Fault::Corrupt(_)) => return Ok(()),
                Err(fault) => return Err(fault),
            }
        }
    }

    fn read_from(&mut self, connection: &Connection, from: &mut i64) -> Result<(), Fault> {
        let mut statement = connection.prepare(
            "SELECT id, kind, run, device, series, since, crc, bytes FROM frames NOT INDEXED
             WHERE id >= ?1 ORDER BY id",
        )?;
        let mut rows = statement.query([*from])?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            *from = id.saturating_add(1);
            match whole(id, row) {
                Some(row) => self.whole.push(row),
                None => self.n_damaged += 1,
            }
        }
        Ok(())
    }
}

/// A row that is as it was written.
fn whole(id: i64, row: &rusqlite::Row<'_>) -> Option<(Place, Vec<u8>)> {
    let since: i64 = row.get(5).ok()?;
    let place = Place {
        kind: row.get(1).ok()?,
        run: row.get(2).ok()?,
        device: row.get(3).ok()?,
        series: row.get(4).ok()?,
        since: since.cast_unsigned(),
    };
    let crc: u32 = row.get(6).ok()?;
    let bytes: Vec<u8> = row.get(7).ok()?;
    (checksum(id, &place, &bytes) == crc).then_some((place, bytes))
}

/// Puts a damaged file aside, with its log, and says where; nothing of it is overwritten.
pub(super) fn put_aside(path: &Path, now_seconds: u64) -> io::Result<PathBuf> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let aside = path.with_file_name(format!(
        "{stem}{}{now_seconds}.{}",
        folder::ASIDE,
        folder::EXTENSION
    ));
    fs::rename(path, &aside)?;
    for ending in folder::BESIDE {
        // There may be none.
        drop(fs::rename(
            folder::beside(path, ending),
            folder::beside(&aside, ending),
        ));
    }
    Ok(aside)
}

/// The rows of a damaged file that are whole, as what is to be written.
pub(super) fn salvaged(path: &Path) -> Result<(Changes, Facts), Fault> {
    let connection = open(path)?;
    let facts = facts_in(&connection).unwrap_or_default();
    let mut rows = Rows::default();
    rows.read(&connection)?;
    let changes = rows.whole.into_iter();
    Ok((
        changes.map(|(place, bytes)| (place, Some(bytes))).collect(),
        facts,
    ))
}
