//! What `gpumem.load` read that is no recording, for Python: one class, with a subclass for some contents.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpumem_explorer::formats::{Content, FileComparison, Workers};
use gpumem_readers::cell_files::CellFiles;
use gpumem_readers::{device_profile, level_log, memory_timeline, nsight, torch_snapshot};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::PyBytes;

use crate::python::api::read_file;
use gpumem_base::errors::{GpuMemError, raised};
use gpumem_objects::look;

/// How wide a text is by default.
const DEFAULT_COLUMNS: usize = 100;

/// What `gpumem.load` read in a file that is not a recording.
#[pyclass(frozen, subclass, name = "OtherFile", module = "gpumem._gpumem")]
pub(crate) struct PyOtherFile {
    content: Arc<dyn Content>,
    source: PageSource,
}

/// What a page is made from, if not from the content.
#[derive(Default)]
pub(crate) struct PageSource {
    pub(crate) files: Vec<PageFile>,
    pub(crate) cells: CellFiles,
}

/// A file that a page shows.
pub(crate) struct PageFile {
    pub(crate) name: String,
    /// The label of its button, if there are several.
    pub(crate) label: String,
    pub(crate) bytes: FileBytes,
}

pub(crate) enum FileBytes {
    /// As they were read.
    Kept(Vec<u8>),
    /// Still in the file.
    In(PathBuf),
}

#[pymethods]
impl PyOtherFile {
    #[getter]
    fn _kind(&self) -> &'static str {
        self.content.kind()
    }

    /// The report as text; lines are at most `width` columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, py: Python<'_>, width: usize) -> PyResult<String> {
        look::with_room(py, || self.content.text(width))
    }

    /// Everything as JSON: sizes are bytes, times are nanoseconds.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        look::with_room(py, || self.content.json())
    }

    /// What is other than in an earlier file of the same kind.
    fn compare(&self, py: Python<'_>, before: &Bound<'_, Self>) -> PyResult<Self> {
        let before = before.get();
        let between = || FileComparison::between(&*before.content, &*self.content);
        let change = py.detach(between).ok_or_else(|| {
            let [one, other] = [&self.content, &before.content].map(|it| it.kind());
            GpuMemError::new_err(format!(
                "{one} cannot be compared with {other}\nhint: two recordings can, two memory snapshots or traces of \
                 PyTorch, two logs, and two memory profiles of JAX"
            ))
        })?;
        let content: Arc<dyn Content> = Arc::new(change);
        let source = PageSource::default();
        Ok(Self { content, source })
    }

    #[getter]
    fn _page_title(&self) -> Option<&'static str> {
        self.content.page_title()
    }

    fn _page<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let page = py.detach(|| Some(self.content.page()?.to_bytes()))?;
        Some(PyBytes::new(py, &page))
    }

    /// Name and label of each file that the page shows.
    fn _page_files(&self) -> Vec<(&str, &str)> {
        let files = self.source.files.iter();
        files.map(|it| (&*it.name, &*it.label)).collect()
    }

    /// One of these files.
    fn _page_file<'py>(&self, py: Python<'py>, idx: usize) -> PyResult<Bound<'py, PyBytes>> {
        match self.source.files.get(idx).map(|file| &file.bytes) {
            Some(FileBytes::Kept(bytes)) => Ok(PyBytes::new(py, bytes)),
            Some(FileBytes::In(path)) => {
                let (_, bytes) = read_file(py, path.clone())?;
                Ok(PyBytes::new(py, &bytes))
            }
            None => Ok(PyBytes::new(py, b"")),
        }
    }

    /// The names of cells, for the page.
    fn _page_cells(&self) -> String {
        self.source.cells.to_text()
    }

    fn __repr__(&self) -> String {
        self.content.repr()
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py, DEFAULT_COLUMNS)
    }

    /// What `IPython` prints.
    fn _repr_pretty_(&self, printer: &Bound<'_, PyAny>, _is_cycle: bool) -> PyResult<()> {
        let text = self.text(printer.py(), DEFAULT_COLUMNS)?;
        printer.call_method1("text", (text,)).map(drop)
    }

    /// The text for a notebook.
    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = self.text(py, DEFAULT_COLUMNS)?;
        py.import("gpumem._table")?
            .call_method1("preformatted", (text,))
    }
}

impl PyOtherFile {
    /// The content of a subclass.
    pub(crate) fn content<C: Content>(&self) -> &C {
        let content: &dyn Any = &*self.content;
        content.downcast_ref().expect("a class has one content")
    }
}

/// Declares subclasses, and what makes an object of a file's content.
macro_rules! classes {
    ($($(#[$doc:meta])+ $Class:ident = $Content:ty,)+) => {
        $(
            $(#[$doc])+
            #[pyclass(frozen, extends = PyOtherFile, module = "gpumem._gpumem")]
            pub(crate) struct $Class;
        )+

        /// An object of what was read in files.
        pub(crate) fn file_object(
            py: Python<'_>,
            content: Arc<dyn Content>,
            source: PageSource,
        ) -> PyResult<Py<PyAny>> {
            let read: &dyn Any = &*content;
            $(
                if read.is::<$Content>() {
                    return object_of_class(py, content, source, $Class).map(Py::into_any);
                }
            )+
            Py::new(py, PyOtherFile { content, source }).map(Py::into_any)
        }
    };
}

classes! {
    /// A memory snapshot of `PyTorch`: who holds what on each device, and who did at the peak.
    TorchSnapshot = torch_snapshot::TorchSnapshotSummary,
    /// A Chrome trace of PyTorch's profiler, or those of several workers.
    TorchTrace = Workers,
    /// Bytes by category over time, as PyTorch's `export_memory_timeline` writes them.
    MemoryTimeline = memory_timeline::MemoryTimeline,
    /// A log of memory levels over time: of nvidia-smi or stormlog.
    LevelLog = level_log::LevelLog,
    /// An export of Nsight Systems: memory levels, failed calls, and what NVTX ranges kept.
    NsightExport = nsight::NsightExport,
    /// A device memory profile of JAX: what is alive on each device, and which lines allocated it.
    DeviceProfile = device_profile::DeviceProfile,
}

/// An object of a subclass without a file.
pub(crate) fn object<S>(py: Python<'_>, content: impl Content, class: S) -> PyResult<Py<S>>
where
    S: PyClass<BaseType = PyOtherFile>,
{
    object_of_class(py, Arc::new(content), PageSource::default(), class)
}

fn object_of_class<S>(
    py: Python<'_>,
    content: Arc<dyn Content>,
    source: PageSource,
    class: S,
) -> PyResult<Py<S>>
where
    S: PyClass<BaseType = PyOtherFile>,
{
    let base = PyClassInitializer::from(PyOtherFile { content, source });
    Py::new(py, base.add_subclass(class))
}

/// The error for a file whose content is not as it has to be; `offset` says where.
pub(crate) fn refused(
    py: Python<'_>,
    path: &Path,
    offset: usize,
    error: impl std::fmt::Display,
) -> PyErr {
    raised(py, &format!("{}: {error}", path.display()), offset)
}
