//! What touches the machine; translates, decides nothing.
//!
//! Its wings, of which each may use those before it: `recording` (makes a recording of the levels), `python` (hands it
//! to Python), `ipython` (feeds it from `IPython`'s events).

/// A Python dict of these names and values, for all wings: it stands before them.
macro_rules! dict {
    ($py:expr, { $($name:literal: $value:expr),+ $(,)? }) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item($name, $value)?;)+
        dict
    }};
}

mod ipython;
mod python;
mod recording;
mod testing;

use pyo3::prelude::*;

// Without a GIL nothing walks the heap (`gpumem_base::gil`), so loading this need not switch it on.
#[pymodule(gil_used = false)]
mod _gpumem {
    #[pymodule_export]
    use super::ipython::extension::{
        Extension, check_interval, load_ipython_extension, stopped, unload_ipython_extension,
    };
    #[pymodule_export]
    use super::python::api::{PyRecording, SessionProcesses, recording_now};
    #[pymodule_export]
    use super::python::arrow::PyTable;
    #[pymodule_export]
    use super::python::blocks::{PyBlock, block_of, record};
    #[pymodule_export]
    use super::python::cells::telling_line;
    #[pymodule_export]
    use super::python::children::{ChildScan, find_children};
    #[pymodule_export]
    use super::python::classic::{
        Judge, MemorySnapshot, Probe, ProfileResult, classic_gaps, classic_snapshot,
        classic_thresholds,
    };
    #[pymodule_export]
    use super::python::footprint::{PyFootprint, PyFootprintRow, of_model};
    #[pymodule_export]
    use super::python::gpu_processes::{ProcessScan, scan_gpu_processes};
    #[pymodule_export]
    use super::python::growth::classify_growth_json;
    #[pymodule_export]
    use super::python::holders::{HolderSearch, find_holders};
    #[pymodule_export]
    use super::python::levels::{bytes_text, device_levels, device_scalars, levels_text};
    #[pymodule_export]
    use super::python::marks::{Steps, StepsIterator, mark};
    #[pymodule_export]
    use super::python::opened::{load, open};
    #[pymodule_export]
    use super::python::other_file::{
        DeviceProfile, LevelLog, MemoryTimeline, NsightExport, PyOtherFile, TorchSnapshot,
        TorchTrace,
    };
    #[pymodule_export]
    use super::python::outlived::{LettingGo, outlived};
    #[pymodule_export]
    use super::python::ranks::{JobRanks, ranks_of};
    #[pymodule_export]
    use super::python::rules::{_check_rules, _default_rules};
    #[pymodule_export]
    use super::recording::child::{begin_named, ended, may_record, read_place};
    #[pymodule_export]
    use super::recording::loops::count_loops;
    #[pymodule_export]
    use super::recording::named_snapshot::on_oom::snapshot_on_oom;
    #[pymodule_export]
    use super::recording::named_snapshot::save_snapshot;
    #[pymodule_export]
    use super::recording::run_end::on_run_end;
    #[pymodule_export]
    use super::recording::session::{
        BegunTask, Subscription, begin_interval, close_store, device_labels, expect, expected,
        fetch, follow, is_disabled, is_owner, look_after, note_missing, note_outside,
        record_blocks, reset, roll, source_states, sources_text, use_sources,
    };
    #[pymodule_export]
    use gpumem_base::errors::{DeviceError, GpuMemError, RecordingError, RecordingWarning};
    #[pymodule_export]
    use gpumem_base::files::write_file;
    #[pymodule_export]
    use gpumem_base::gil::why_no_looks;
    #[pymodule_export]
    use gpumem_base::guard::log_from_python;
    #[pymodule_export]
    use gpumem_base::text::{markdown_code, markdown_text, printable_text, report_text};
    #[pymodule_export]
    use gpumem_objects::adapters::registered::register_adapter;
    #[pymodule_export]
    use gpumem_objects::look::{_looks, _set_look_patience};

    #[pymodule_export]
    use super::python::stored::{
        StoreError, baseline_names, keep_in, save_baseline, sessions_json, sessions_text,
        store_status, stored_recording,
    };
    #[pymodule_export]
    use super::python::torch_snapshot::TorchChange;
    #[pymodule_export]
    use super::recording::trace::flight::flight_recorder;

    #[pymodule_export]
    use super::python::workers::{
        delete_sessions, is_further, left_behind, worker_recording, workers,
    };

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        if gpumem_base::gil::resolve(module.py())? {
            gpumem_objects::still::resolve(module.py())?;
            gpumem_objects::walk::resolve(module.py())?;
        }
        super::recording::loops::resolve(module.py(), super::ipython::extension::say_inside)?;
        super::recording::oom::observer::begin();
        gpumem_machine::sim::register(module)?;
        gpumem_base::threads::watch_forks(module)?;
        if std::env::var_os("GPUMEM_TESTING").is_some_and(|it| it == "1") {
            super::testing::register(module)?;
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
