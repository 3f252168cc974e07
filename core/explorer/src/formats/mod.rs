//! The formats of files that gpumem knows: one line for each in [`Format`].
//!
//! Everything else follows from that line: how a file is recognised and called, whether and how it is read, what it
//! has to say, and which page explores it. A format of another program is read by a folder of `gpumem_readers`.
//!
//! ```
//! use gpumem_explorer::formats::{FileKind, Format, PageKind};
//!
//! let kind = FileKind::recognise(b"{\"traceEvents\": []}");
//! assert_eq!((kind.format, kind.page()), (Some(Format::TorchTrace), Some(PageKind::Trace)));
//! let kind = FileKind::recognise(b"PK\x03\x04");
//! assert_eq!((kind.name(), kind.format), ("a ZIP archive, as torch.save writes", None));
//! ```

mod comparison;
mod device_profile;
mod file_kind;
mod level_log;
mod memory_timeline;
mod memray;
mod nsight;
mod nvidia_smi;
mod own;
mod stormlog;
mod torch_change;
mod torch_snapshot;
mod torch_trace;

use std::any::Any;
use std::fmt::Display;
use std::sync::Arc;

use gpumem_readers::cell_files::CellFiles;
use gpumem_readers::container::Container;
use gpumem_readers::json_file::JsonError;
use gpumem_readers::nsight::Capture;
use gpumem_readers::read_error::ReadError;

pub use comparison::{FileComparison, FileFigure};
pub use file_kind::{FileKind, hint};
pub use torch_snapshot::{
    SNAPSHOT_TITLE, torch_snapshot_failure, torch_snapshot_headline, torch_snapshot_hint,
    torch_snapshot_line, torch_snapshot_sets, torch_snapshot_totals,
};
pub use torch_trace::{
    TRACE_TITLE, Workers, label as torch_trace_device, level as torch_trace_level, torch_trace,
    torch_trace_conclusion, torch_trace_owner, torch_trace_parts, torch_trace_worker, torch_traces,
};

use crate::process_page::ProcessPage;

/// Declares the formats. Of several that recognise a file the last one counts: it is the most particular.
macro_rules! formats {
    ($($Format:ident = $Entry:ty,)+) => {
        /// A format that is known by more than its container.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Format {
            $(#[doc = concat!("`", stringify!($Entry), "`.")] $Format,)+
        }

        impl Format {
            /// All of them.
            pub const ALL: [Self; [$(stringify!($Format)),+].len()] = [$(Self::$Format),+];

            /// What messages call a file that begins so, if not by its container.
            const fn name(self) -> Option<&'static str> {
                match self { $(Self::$Format => <$Entry>::NAME,)+ }
            }

            const fn listed(self) -> Option<&'static str> {
                match self { $(Self::$Format => <$Entry>::LISTED,)+ }
            }

            const fn may_be_packed(self) -> bool {
                match self { $(Self::$Format => <$Entry>::MAY_BE_PACKED,)+ }
            }

            const fn page(self) -> Option<PageKind> {
                match self { $(Self::$Format => <$Entry>::PAGE,)+ }
            }

            /// Whether it has lines of code, which may be those of cells.
            pub const fn names_cells(self) -> bool {
                match self { $(Self::$Format => <$Entry>::NAMES_CELLS,)+ }
            }

            /// How it is read.
            pub const fn reading(self) -> ReadMethod {
                match self { $(Self::$Format => <$Entry>::READING,)+ }
            }

            /// Whether gpumem reads it.
            pub const fn is_read(self) -> bool {
                match self {
                    $(Self::$Format => {
                        !matches!(<$Entry>::READING, ReadMethod::Elsewhere(_) | ReadMethod::Never)
                    })+
                }
            }

            fn recognises(self, container: Container, head: &[u8]) -> bool {
                match self { $(Self::$Format => <$Entry>::recognises(container, head),)+ }
            }
        }
    };
}

formats! {
    TorchSnapshot = torch_snapshot::TorchSnapshotFormat,
    TorchTrace = torch_trace::TorchTraceFormat,
    MemoryTimeline = memory_timeline::TimelineFormat,
    TimelinePicture = memory_timeline::TimelinePicture,
    Numbers = nvidia_smi::NumbersFormat,
    NvidiaSmi = nvidia_smi::NvidiaSmi,
    NsightExport = nsight::NsightSystems,
    NsightReport = nsight::NsightReport,
    DeviceProfile = device_profile::JaxProfile,
    Stormlog = stormlog::Stormlog,
    Memray = memray::Memray,
    Processes = own::ProcessesFormat,
    Recording = own::RecordingFormat,
}

/// What the registry knows of a format. Functions stand apart from each other, so that the page has no reader that
/// it does not show.
trait RegistryEntry {
    /// What messages call a file that begins so, if not by its container.
    const NAME: Option<&'static str> = None;

    /// In the list of what gpumem reads.
    const LISTED: Option<&'static str> = None;

    /// Whether it is read as it is in a gzip file, too.
    const MAY_BE_PACKED: bool = false;

    /// What explores it.
    const PAGE: Option<PageKind> = None;

    /// Whether it has lines of code, which may be those of cells.
    const NAMES_CELLS: bool = false;

    /// How it is read.
    const READING: ReadMethod = ReadMethod::Never;

    /// Whether a file in that container, with this beginning, may be one.
    fn recognises(container: Container, head: &[u8]) -> bool;
}

/// What explores a file in the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// Levels of a memory snapshot, who held what, and where.
    Snapshot,
    /// Memory, operators and ranges of a profiler's trace.
    Trace,
    /// Processes side by side.
    Processes,
}

/// How a file is read.
#[derive(Debug, Clone, Copy)]
pub enum ReadMethod {
    /// It is a recording of gpumem.
    Recording,
    /// All of it at once.
    Bytes(fn(&OtherFile<'_>) -> Result<Arc<dyn Content>, Refusal>),
    /// From rows of a database, which is read in place: it may be larger than memory.
    Rows(fn(Capture) -> Arc<dyn Content>),
    /// By other tools: which, of a file of that name.
    Elsewhere(fn(&str) -> String),
    /// Not at all.
    Never,
}

/// A file of another program.
#[derive(Debug, Clone, Copy)]
pub struct OtherFile<'a> {
    /// Without its folder.
    pub name: &'a str,
    /// All of it.
    pub bytes: &'a [u8],
    /// What names the cells in it.
    pub cells: &'a CellFiles,
}

/// What a file of another program has to say, or what was found of many processes.
pub trait Content: Any + Send + Sync {
    /// What messages call it.
    fn kind(&self) -> &'static str;

    /// The report; lines are at most `width` columns long.
    fn text(&self, width: usize) -> String;

    /// Everything; sizes are bytes, times are nanoseconds.
    fn json(&self) -> String;

    /// What Python's `repr` shows.
    fn repr(&self) -> String;

    /// Its figures that can be compared with those of another file of its kind.
    fn measures(&self) -> Option<Vec<FileFigure>> {
        None
    }

    /// The title of the page that explores it, if there is one.
    fn page_title(&self) -> Option<&'static str> {
        None
    }

    /// What the page shows, if not the file itself.
    fn page(&self) -> Option<ProcessPage> {
        None
    }
}

/// Why a file was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Offset at which reading stopped.
    pub offset: usize,
    /// For users; it names the offset, too.
    pub message: String,
}

impl<F: Display> From<ReadError<F>> for Refusal {
    fn from(error: ReadError<F>) -> Self {
        let (offset, message) = (error.offset, error.to_string());
        Self { offset, message }
    }
}

impl From<JsonError> for Refusal {
    fn from(error: JsonError) -> Self {
        let (offset, message) = (error.offset, error.to_string());
        Self { offset, message }
    }
}

fn into_content<C: Content, E: Into<Refusal>>(
    read: Result<C, E>,
) -> Result<Arc<dyn Content>, Refusal> {
    match read {
        Ok(content) => Ok(Arc::new(content)),
        Err(error) => Err(error.into()),
    }
}
