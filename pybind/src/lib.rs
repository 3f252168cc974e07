//! What touches the machine; translates, decides nothing.
//!
//! The way of the data: `sources` read levels, `recorder` makes a recording of
//! them, `session` is the one that this process has, `extension` feeds it from
//! `IPython`'s events, `api` hands it to Python.

mod adapters;
mod api;
mod arrow;
mod blocks;
mod call_stacks;
mod cells;
mod child;
mod classic;
mod clock;
mod company;
mod cpu_time;
mod device_profile;
mod ending;
mod errors;
mod extension;
mod files;
mod footprint;
mod gpu_processes;
mod growth;
mod guard;
mod holders;
mod interrupt;
mod late_line;
mod level_log;
mod levels;
mod look;
mod loops;
mod marks;
mod modules;
mod named_snapshot;
mod nsight;
mod oom;
mod opened;
mod other_file;
mod out_of_memory;
#[cfg(target_os = "linux")]
mod own_memory;
#[cfg(target_os = "linux")]
mod process_status;
mod ranks;
mod recorder;
mod rules;
mod run_end;
mod sampler;
mod session;
mod shells;
mod sim;
mod slots;
mod sources;
mod still;
mod store;
mod stored;
mod strand;
#[cfg(feature = "testing")]
mod testing;
mod text;
mod threads;
mod torch_snapshot;
mod torch_trace;
mod trace;
mod trainers;
mod walk;
mod workers;

use pyo3::prelude::*;

// The walk reads objects without running Python, which only the GIL makes safe.
#[pymodule(gil_used = true)]
mod _gpumem {
    #[pymodule_export]
    use super::adapters::own::register_adapter;
    #[pymodule_export]
    use super::api::{Recording, SessionProcesses, recording_now};
    #[pymodule_export]
    use super::arrow::Table;
    #[pymodule_export]
    use super::blocks::{Block, record};
    #[pymodule_export]
    use super::child::{begin_named, ended, forked, read_place};
    #[pymodule_export]
    use super::classic::{
        Judge, MemorySnapshot, Probe, ProfileResult, classic_gaps, classic_snapshot,
        classic_thresholds,
    };
    #[pymodule_export]
    use super::device_profile::DeviceProfile;
    #[pymodule_export]
    use super::errors::{DeviceError, GpuMemError, RecordingError, RecordingWarning};
    #[pymodule_export]
    use super::extension::{
        Extension, check_interval, load_ipython_extension, stopped, unload_ipython_extension,
    };
    #[pymodule_export]
    use super::files::write_file;
    #[pymodule_export]
    use super::footprint::{Footprint, FootprintRow, of_model};
    #[pymodule_export]
    use super::gpu_processes::{GpuProcesses, find_company};
    #[pymodule_export]
    use super::growth::classify_growth_json;
    #[pymodule_export]
    use super::guard::log_from_python;
    #[pymodule_export]
    use super::holders::{Holders, find_holders};
    #[pymodule_export]
    use super::level_log::LevelLog;
    #[pymodule_export]
    use super::levels::{bytes_text, device_levels, device_scalars, levels_text};
    #[pymodule_export]
    use super::look::_looks;
    #[pymodule_export]
    use super::loops::count_loops;
    #[pymodule_export]
    use super::marks::{Steps, StepsIterator, mark};
    #[pymodule_export]
    use super::named_snapshot::on_oom::snapshot_on_oom;
    #[pymodule_export]
    use super::named_snapshot::save_snapshot;
    #[pymodule_export]
    use super::nsight::NsightExport;
    #[pymodule_export]
    use super::opened::load;
    #[pymodule_export]
    use super::other_file::OtherFile;
    #[pymodule_export]
    use super::ranks::{JobRanks, ranks_of};
    #[pymodule_export]
    use super::rules::{_check_rules, _default_rules};
    #[pymodule_export]
    use super::run_end::on_run_end;
    #[pymodule_export]
    use super::session::{
        BegunTask, Subscription, begin_interval, close_store, device_labels, fetch, follow,
        is_owner, look_after, note_missing, record_blocks, reset, roll, source_states,
        sources_text, use_sources,
    };
    #[pymodule_export]
    use super::text::{markdown_code, markdown_text, printable_text, report_text};

    #[pymodule_export]
    use super::stored::{
        StoreError, baseline_names, is_disabled, keep_in, save_baseline, sessions_json,
        sessions_text, store_status, stored_recording,
    };
    #[pymodule_export]
    use super::torch_snapshot::{TorchChange, TorchSnapshot};
    #[pymodule_export]
    use super::torch_trace::{MemoryTimeline, TorchTrace};
    #[pymodule_export]
    use super::trace::flight::flight_recorder;

    #[pymodule_export]
    use super::workers::{delete_sessions, is_further, left_behind, worker_recording, workers};

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::still::resolve(module.py())?;
        super::walk::resolve(module.py())?;
        super::loops::resolve(module.py(), super::extension::say_inside)?;
        super::oom::observer::begin();
        super::sim::register(module)?;
        super::threads::watch_forks(module)?;
        #[cfg(feature = "testing")]
        if std::env::var_os("GPUMEM_TESTING").is_some_and(|it| it == "1") {
            super::testing::register(module)?;
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
