//! The tables of an export. Opened read-only and immutable: SQLite makes no file beside it.
//!
//! The file is somebody else's. Only plain tables are read, in the order of their rows: pages that lead in
//! circles end at once. Nothing that a schema may compute is run, and time and memory are limited.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpumem_model::units::{Bytes, Nanos};
use gpumem_readers::nsight::{
    CallTally, Capture, FailedCall, MemoryEvent, NvtxRange, allocates, frees,
};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use gpumem_base::files;

/// Every export has one of these.
const KNOWN: [&str; 4] = [
    "TARGET_INFO_SESSION_START_TIME",
    "META_DATA_EXPORT",
    "CUDA_GPU_MEMORY_USAGE_EVENTS",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
];
/// What a file may ask of SQLite: values that are read, texts of its schema, and what they may need.
const LIMITS: [(Limit, i32); 7] = [
    (Limit::SQLITE_LIMIT_LENGTH, 1 << 20),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 16),
    (Limit::SQLITE_LIMIT_COLUMN, 256),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 32),
    (Limit::SQLITE_LIMIT_VDBE_OP, 10_000),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
];
/// Memory of SQLite, in bytes.
const MAX_HEAP: i64 = 128 << 20;
/// How often SQLite looks whether the time is over, in steps of its machine.
const STEPS: i32 = 10_000;
/// The least that is read in a second, of a file that is not hostile.
const BYTES_PER_SECOND: u64 = 4 << 20;
/// A small file is read in this.
const MIN_TIME: Duration = Duration::from_secs(10);
/// Longer texts are cut.
const MAX_TEXT: usize = 256;
/// Ranges that were pushed and popped, and those that were started and ended.
const RANGE_TYPES: [i64; 2] = [59, 60];

pub(super) fn read(path: &Path) -> Result<Capture, String> {
    let connection = open(path)?;
    Database {
        tables: tables(&connection)?,
        connection,
    }
    .capture()
}

/// Opens a file of which nothing is trusted.
fn open(path: &Path) -> Result<Connection, String> {
    let file = files::open(path).map_err(|error| error.to_string())?;
    let n_bytes = file.metadata().map_err(|error| error.to_string())?.len();
    let connection = guarded(path, n_bytes);
    connection.map_err(|error| damaged(&error))
}

fn guarded(path: &Path, n_bytes: u64) -> rusqlite::Result<Connection> {
    // SAFETY: it sets a number under SQLite's own lock, and only gpumem uses this copy of SQLite.
    #[expect(unsafe_code, reason = "rusqlite does not offer this limit")]
    unsafe {
        rusqlite::ffi::sqlite3_hard_heap_limit64(MAX_HEAP);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(uri(path), flags)?;
    for (limit, value) in LIMITS {
        connection.set_limit(limit, value)?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    let until = Instant::now() + MIN_TIME + Duration::from_secs(n_bytes / BYTES_PER_SECOND);
    connection.progress_handler(STEPS, Some(move || Instant::now() > until))?;
    connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")?;
    Ok(connection)
}

/// `file:` with every byte that means something else in it as `%41`.
fn uri(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = "file:".to_owned();
    let text = absolute.as_os_str().as_encoded_bytes();
    if !text.starts_with(b"/") {
        // A drive's letter.
        uri.push('/');
    }
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b':' => {
                uri.push(char::from(*byte));
            }
            b'\\' if cfg!(windows) => uri.push('/'),
            byte => write!(uri, "%{byte:02X}").expect("a string takes in every text"),
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    uri
}

fn damaged(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            "the SQLite database takes too long to read".to_owned()
        }
        Some(ErrorCode::OutOfMemory) => {
            format!("the SQLite database needs more than {} MiB", MAX_HEAP >> 20)
        }
        _ => format!("the SQLite database cannot be read ({error})"),
    }
}

/// The plain tables. Views are off, and a virtual table could be any program of SQLite's.
fn tables(connection: &Connection) -> Result<HashSet<String>, String> {
    let sql = "SELECT name, sql FROM sqlite_schema";
    let mut statement = connection.prepare(sql).map_err(|error| damaged(&error))?;
    let mut rows = statement.query([]).map_err(|error| damaged(&error))?;
    let mut tables = HashSet::new();
    while let Some(row) = rows.next().map_err(|error| damaged(&error))? {
        let made_by = text(row, 1).unwrap_or_default();
        if made_by.starts_with("CREATE TABLE") {
            tables.extend(text(row, 0));
        } else if made_by.starts_with("CREATE VIRTUAL") {
            return Err("an SQLite database with virtual tables, which no export has".to_owned());
        }
    }
    Ok(tables)
}

struct Database {
    connection: Connection,
    tables: HashSet<String>,
}

impl Database {
    fn capture(&self) -> Result<Capture, String> {
        if !KNOWN.iter().any(|name| self.tables.contains(*name)) {
            return Err(self.other_database());
        }
        let strings = self.strings()?;
        let mut capture = Capture {
            has_memory: self.tables.contains("CUDA_GPU_MEMORY_USAGE_EVENTS"),
            ..Capture::default()
        };
        self.each("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"], |row| {
            capture.epoch_nanos = integer(row, 0);
        })?;
        self.each("ANALYSIS_DETAILS", &["duration"], |row| {
            capture.duration = unsigned(row, 0).map(Nanos::new);
        })?;
        self.each("META_DATA_EXPORT", &["name", "value"], |row| {
            if text(row, 0).as_deref() == Some("EXPORT_PRODUCT_VERSION") {
                capture.version = text(row, 1);
            }
        })?;
        self.each("PROCESSES", &["pid", "name"], |row| {
            if let (Some(pid), Some(name)) = (unsigned(row, 0), text(row, 1)) {
                capture.processes.insert(pid, name);
            }
        })?;
        self.devices(&mut capture)?;
        self.events(&mut capture)?;
        self.calls(&mut capture, &strings)?;
        self.ranges(&mut capture, &strings)?;
        Ok(capture)
    }

    /// The error for a database that is not of Nsight Systems.
    fn other_database(&self) -> String {
        let mut names: Vec<&str> = self.tables.iter().map(String::as_str).collect();
        names.sort_unstable();
        let shown: Vec<&str> = names.iter().take(5).copied().collect();
        let tables = if shown.is_empty() {
            "none".to_owned()
        } else {
            shown.join(", ")
        };
        format!("an SQLite database, but no export of Nsight Systems: its tables are {tables}")
    }

    /// Calls `take` with each row of a table; columns that are not there are NULL. No table, no rows.
    fn each(
        &self,
        table: &str,
        columns: &[&str],
        mut take: impl FnMut(&Row<'_>),
    ) -> Result<(), String> {
        if !self.tables.contains(table) {
            return Ok(());
        }
        let there = self.columns(table)?;
        let mut selected = Vec::new();
        for column in columns {
            let is_there = there.contains(*column);
            selected.push(if is_there {
                format!("\"{column}\"")
            } else {
                "NULL".to_owned()
            });
        }
        let sql = format!(
            "SELECT {}, _rowid_ FROM \"{table}\" NOT INDEXED",
            selected.join(", ")
        );
        let mut statement = self
            .connection
            .prepare(&sql)
            .map_err(|error| damaged(&error))?;
        let mut rows = statement.query([]).map_err(|error| damaged(&error))?;
        let mut last = None;
        let in_table = |error| format!("table {table}: {}", damaged(&error));
        while let Some(row) = rows.next().map_err(in_table)? {
            let number = integer(row, columns.len());
            if number.is_none() || number <= last {
                return Err(format!(
                    "table {table} is damaged: its rows are not in order"
                ));
            }
            last = number;
            take(row);
        }
        Ok(())
    }

    /// The columns of a plain table.
    fn columns(&self, table: &str) -> Result<HashSet<String>, String> {
        let sql = format!("PRAGMA table_xinfo(\"{table}\")");
        let mut statement = self
            .connection
            .prepare(&sql)
            .map_err(|error| damaged(&error))?;
        let mut rows = statement.query([]).map_err(|error| damaged(&error))?;
        let mut columns = HashSet::new();
        while let Some(row) = rows.next().map_err(|error| damaged(&error))? {
            let name = text(row, 1).unwrap_or_default();
            if integer(row, 6) != Some(0) || name.eq_ignore_ascii_case("_rowid_") {
                return Err(format!(
                    "table {table} has computed columns, which no export has"
                ));
            }
            columns.insert(name);
        }
        Ok(columns)
    }

    fn strings(&self) -> Result<HashMap<i64, Arc<str>>, String> {
        let mut strings = HashMap::new();
        self.each("StringIds", &["id", "value"], |row| {
            if let (Some(id), Some(value)) = (integer(row, 0), text(row, 1)) {
                strings.insert(id, Arc::from(value));
            }
        })?;
        Ok(strings)
    }

    /// Names and capacities, by CUDA's numbers of devices.
    fn devices(&self, capture: &mut Capture) -> Result<(), String> {
        let mut cuda_numbers: HashMap<u64, u64> = HashMap::new();
        self.each("TARGET_INFO_CUDA_DEVICE", &["gpuId", "cudaId"], |row| {
            if let (Some(gpu), Some(cuda)) = (unsigned(row, 0), unsigned(row, 1)) {
                cuda_numbers.insert(gpu, cuda);
            }
        })?;
        let columns = ["id", "cuDevice", "name", "totalMemory"];
        self.each("TARGET_INFO_GPU", &columns, |row| {
            let id = unsigned(row, 0);
            let cuda = id.and_then(|id| cuda_numbers.get(&id).copied());
            if let Some(number) = cuda.or_else(|| unsigned(row, 1)).or(id) {
                let capacity = unsigned(row, 3).filter(|bytes| *bytes > 0).map(Bytes::new);
                capture.devices.insert(number, (text(row, 2), capacity));
            }
        })
    }

    fn events(&self, capture: &mut Capture) -> Result<(), String> {
        let mut free = 1;
        self.each("ENUM_CUDA_DEV_MEM_EVENT_OPER", &["id", "label"], |row| {
            if let (Some(id), Some("Deallocation")) = (integer(row, 0), text(row, 1).as_deref()) {
                free = id;
            }
        })?;
        let columns = [
            "start",
            "globalPid",
            "deviceId",
            "address",
            "bytes",
            "memKind",
            "memoryOperationType",
        ];
        let events = &mut capture.events;
        self.each("CUDA_GPU_MEMORY_USAGE_EVENTS", &columns, |row| {
            let number = |column| bits(row, column).unwrap_or(0);
            if let (Some(at_nanos), Some(bytes)) = (integer(row, 0), unsigned(row, 4)) {
                events.push(MemoryEvent {
                    at_nanos,
                    global_pid: number(1),
                    device: number(2),
                    address: number(3),
                    bytes,
                    kind: integer(row, 5)
                        .and_then(|kind| u8::try_from(kind).ok())
                        .unwrap_or(2),
                    is_free: integer(row, 6) == Some(free),
                });
            }
        })
    }

    /// Calls that allocate or free, those of them that did not succeed, and others for which memory ran out.
    fn calls(&self, capture: &mut Capture, strings: &HashMap<i64, Arc<str>>) -> Result<(), String> {
        const CALLS: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";
        if !self.tables.contains(CALLS) {
            return Ok(());
        }
        capture.has_results = self.columns(CALLS)?.contains("returnValue");
        let failed = &mut capture.failed;
        let mut calls: HashMap<i64, CallTally> = HashMap::new();
        let columns = ["start", "end", "globalTid", "nameId", "returnValue"];
        self.each(CALLS, &columns, |row| {
            let name = integer(row, 3);
            let function = name.and_then(|id| strings.get(&id));
            let function = function.map_or("a call", |function| function);
            let start = integer(row, 0);
            if let Some(name) = name.filter(|_| allocates(function) || frees(function)) {
                let duration = integer(row, 1)
                    .zip(start)
                    .map(|(end, start)| end.saturating_sub(start));
                let duration = duration
                    .and_then(|nanos| u64::try_from(nanos).ok())
                    .unwrap_or(0);
                let tally = calls
                    .entry(name)
                    .or_insert_with(|| CallTally::new(function));
                tally.add(Nanos::new(duration));
            }
            let Some(code) = integer(row, 4).filter(|code| *code != 0) else {
                return;
            };
            if let Some(at_nanos) = start.filter(|_| allocates(function) || code == 2) {
                failed.push(FailedCall {
                    at_nanos,
                    global_tid: bits(row, 2).unwrap_or(0),
                    function: function.to_owned(),
                    code,
                });
            }
        })?;
        capture.calls = Some(calls.into_values().collect());
        Ok(())
    }

    fn ranges(
        &self,
        capture: &mut Capture,
        strings: &HashMap<i64, Arc<str>>,
    ) -> Result<(), String> {
        let ranges = &mut capture.ranges;
        let mut names: HashSet<Arc<str>> = HashSet::new();
        let columns = ["start", "end", "eventType", "globalTid", "text", "textId"];
        self.each("NVTX_EVENTS", &columns, |row| {
            let is_range = integer(row, 2).is_none_or(|kind| RANGE_TYPES.contains(&kind));
            let Some(start_nanos) = integer(row, 0).filter(|_| is_range) else {
                return;
            };
            let registered = || integer(row, 5).and_then(|id| strings.get(&id).cloned());
            let name = text(row, 4).map(|text| shared(&mut names, text));
            let name = name.or_else(registered);
            if let Some(name) = name {
                ranges.push(NvtxRange {
                    start_nanos,
                    end_nanos: integer(row, 1),
                    global_tid: bits(row, 3).unwrap_or(0),
                    name,
                });
            }
        })
    }
}

/// The same text once: ranges repeat their names.
fn shared(known: &mut HashSet<Arc<str>>, text: String) -> Arc<str> {
    if let Some(known) = known.get(text.as_str()) {
        return Arc::clone(known);
    }
    let name: Arc<str> = text.into();
    known.insert(Arc::clone(&name));
    name
}

fn value<'r>(row: &'r Row<'_>, column: usize) -> ValueRef<'r> {
    row.get_ref(column).unwrap_or(ValueRef::Null)
}

fn integer(row: &Row<'_>, column: usize) -> Option<i64> {
    match value(row, column) {
        ValueRef::Integer(number) => Some(number),
        _ => None,
    }
}

fn unsigned(row: &Row<'_>, column: usize) -> Option<u64> {
    integer(row, column).and_then(|number| u64::try_from(number).ok())
}

/// An address or an id, which may use the sign's bit.
fn bits(row: &Row<'_>, column: usize) -> Option<u64> {
    integer(row, column).map(i64::cast_unsigned)
}

fn text(row: &Row<'_>, column: usize) -> Option<String> {
    match value(row, column) {
        ValueRef::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            Some(text.chars().take(MAX_TEXT).collect())
        }
        _ => None,
    }
}
