//! What is measured: each benchmark with its figures, and the budgets that they are held against.

/// One benchmark: a script that writes its figures as JSON, and what they may be.
pub(super) struct Bench {
    pub(super) name: &'static str,
    pub(super) script: &'static str,
    pub(super) rows: &'static [Row],
    /// What is measured beside gpumem, where it can be installed.
    pub(super) peers: &'static [&'static str],
}

impl Bench {
    /// Whether it needs the real torch, on a played CUDA.
    pub(super) fn is_on_cuda(&self) -> bool {
        self.script.starts_with("tests/cuda/")
    }
}

/// One figure of a benchmark.
pub(super) struct Row {
    pub(super) key: &'static str,
    pub(super) meaning: &'static str,
    pub(super) unit: &'static str,
    pub(super) budget: Option<f64>,
    /// It is there only where something else is installed.
    pub(super) is_optional: bool,
}

pub(super) const BENCHES: &[Bench] = &[
    Bench {
        name: "cell",
        script: "tests/python/bench_cell.py",
        rows: &[
            row("bare_us", "a trivial cell, without gpumem", "µs"),
            row("recorded_us", "the same cell, recorded", "µs"),
            row("added_us", "added by recording", "µs").within(100.0),
            row("line_us", "printing the line after it", "µs"),
            row("driven_added_us", "added, with CUDA and NVML", "µs")
                .within(100.0)
                .optional(),
            row("driven_line_us", "the line, with CUDA and NVML", "µs").optional(),
        ],
        peers: &[],
    },
    Bench {
        name: "line",
        script: "tests/python/bench_line.py",
        rows: &[
            row(
                "runs_500_ms",
                "the line's CPU time, 500 runs of a cell",
                "ms",
            )
            .within(1.0),
            row("runs_1e4_ms", "the same, 10,000 runs of a cell", "ms").within(5.0),
            row("cells_1e4_ms", "the same, 10,000 different cells", "ms").within(5.0),
            row("recorded_bytes", "a different cell takes, recorded", "B"),
            row("cell_bytes", "the same, with what lines keep", "B").within(5000.0),
        ],
        peers: &[],
    },
    Bench {
        name: "load",
        script: "tests/python/bench_load.py",
        rows: &[
            row("load_ms", "%load_ext gpumem, no driver", "ms"),
            row("no_library_more_ms", "more, a library that is none", "ms")
                .within(50.0)
                .optional(),
            row("broken_more_ms", "more, a driver that does not start", "ms")
                .within(50.0)
                .optional(),
            row("hanging_more_ms", "more, a driver that hangs", "ms")
                .within(50.0)
                .optional(),
            row("working_more_ms", "more, a driver that answers", "ms")
                .within(50.0)
                .optional(),
            row("first_cell_ms", "the first recorded cell, no driver", "ms"),
            row("hanging_cell_more_ms", "more, a driver that hangs", "ms")
                .within(50.0)
                .optional(),
        ],
        peers: &[],
    },
    Bench {
        name: "analyze",
        script: "tests/python/bench_analyze.py",
        rows: &[
            row("classic_1e3_ms", "classic rules, 1e3 results", "ms").within(1.0),
            row("classic_1e4_ms", "classic rules, 1e4 results", "ms"),
            row("classic_1e5_ms", "classic rules, 1e5 results", "ms"),
            row("classic_1e6_ms", "classic rules, 1e6 results", "ms").within(300.0),
            row("extra_mib", "memory beyond those results", "MiB").within(150.0),
            row("evidence_1e6_ms", "evidence, a series of 1e6 levels", "ms").within(150.0),
            row("peer_1e5_ms", "gpu-memory-profiler, 1e5 results", "ms").optional(),
            row("peer_1e5_ratio", "its time over ours", "×").optional(),
        ],
        peers: &["gpu-memory-profiler==0.2.3.post1", "numpy", "scipy"],
    },
    Bench {
        name: "trace",
        script: "tests/python/bench_trace.py",
        rows: &[
            row("plain_us", "a simulated allocation and its free", "µs"),
            row("traced_us", "the same, traced ten calls deep", "µs"),
            row("added_us", "added by tracing", "µs"),
            row("read_1e5_ms", "reading 1e5 events at a run's end", "ms").within(1000.0),
        ],
        peers: &[],
    },
    Bench {
        name: "snapshot",
        script: "tests/python/bench_snapshot.py",
        rows: &[
            row("file_mb", "a snapshot of 20,000 events", "MB"),
            row("read_ms", "reading it", "ms").within(30.0),
            row("report_ms", "reading it, and its report as text", "ms"),
            row("unpickle_ms", "unpickling it in Python", "ms"),
        ],
        peers: &[],
    },
    Bench {
        name: "profiler-trace",
        script: "tests/python/bench_profiler_trace.py",
        rows: &[
            row("file_mb", "a profiler's trace of 100,000 events", "MB"),
            row("read_ms", "reading it", "ms").within(500.0),
            row("read_packed_ms", "reading it, packed", "ms"),
            row("report_ms", "reading it, and its report as text", "ms"),
            row("json_ms", "reading it with Python's json", "ms"),
        ],
        peers: &[],
    },
    Bench {
        name: "torch",
        script: "tests/cuda/bench_torch.py",
        rows: &[
            row("bare_us", "a trivial cell, 1e5 CUDA tensors alive", "µs"),
            row("recorded_us", "the same cell, recorded", "µs"),
            row("added_us", "added by recording", "µs"),
            row("holders_ms", "holders of the 1e5 tensors", "ms"),
            row("plain_us", "an allocation by torch and its free", "µs"),
            row("traced_us", "the same, traced ten calls deep", "µs"),
            row("event_us", "added to each event by tracing", "µs"),
            row("end_ms", "reading 15,000 events at a run's end", "ms"),
            row(
                "flight_event_us",
                "added to each event by the flight recorder",
                "µs",
            ),
            row("flight_mib", "memory of a flight recorder of 64 MiB", "MiB").within(64.0),
            row(
                "named_ms",
                "a snapshot with the names of the 1e5 tensors",
                "ms",
            ),
        ],
        peers: &[],
    },
    Bench {
        name: "sampler",
        script: "tests/python/bench_sampler.py",
        rows: &[
            row("core_percent", "share of a core in a run", "%").within(1.0),
            row("samples_per_second", "at so many samples", "/s"),
            row("slowdown_percent", "slowdown of a Python loop", "%").within(0.5),
            row(
                "slowdown_noise_percent",
                "give or take, on this machine now",
                "%",
            ),
            row("loop_core_percent", "the loop's own time on a core", "%").within(0.5),
            row("driven_core_percent", "share, with CUDA and NVML", "%")
                .within(1.0)
                .optional(),
            row(
                "driven_slowdown_percent",
                "slowdown, with CUDA and NVML",
                "%",
            )
            .within(0.5)
            .optional(),
            row(
                "driven_slowdown_noise_percent",
                "give or take, on this machine now",
                "%",
            )
            .optional(),
            row("idle_core_percent", "share of a core between runs", "%").within(0.0),
            row("idle_wakings", "woken between runs", "times").within(0.0),
            row("idle_mib", "memory that resting takes", "MiB").within(0.0),
            row("spikes_seen", "of 100 spikes of 20 ms seen", ""),
            row("readings_of_a_day", "readings in a run of 24 h", ""),
            row("points_of_a_day", "points that are kept of them", "").within(512.0),
            row("recorder_mib", "memory of 10,000 cells, 1e6 marks", "MiB").within(128.0),
        ],
        peers: &[],
    },
    Bench {
        name: "holders",
        script: "tests/python/bench_holders.py",
        rows: &[
            row("ms_1e4", "found among 1e4 live objects", "ms"),
            row("ms_1e5", "found among 1e5 live objects", "ms"),
            row("ms_1e6", "found among 1e6 live objects", "ms"),
            row("collect_ms_1e6", "gc.collect() of those", "ms"),
            row("budget_share_1e6", "of 250 ms, or of 3 collections", "%").within(100.0),
            row("by_hand_ms_1e6", "isinstance and get_referrers", "ms"),
            row("by_hand_ratio_1e6", "its time over ours", "×"),
            row("unnamed_percent", "of the planted bytes not named", "%").within(1.0),
            row("told_ms_1e6", "asked and told, 1e6 nodes of a graph", "ms"),
            row("end_ms", "a run's end where nothing grew, 1e6", "ms").within(2.0),
            row("grown_end_ms", "a run that grew, 1e6 live objects", "ms"),
            row("grown_end_ms_2e5", "a run that grew, 2e5 storages", "ms"),
            row("oom_ms", "an out-of-memory error, caught, 1e6", "ms").within(250.0),
        ],
        peers: &[],
    },
    Bench {
        name: "widget",
        script: "tests/browser/bench_widget.py",
        rows: &[
            row("first_paint_ms", "first paint of 1e6 samples", "ms").within(150.0),
            row(
                "zoom_frame_ms",
                "script of a frame of zooming in them, p95",
                "ms",
            )
            .within(8.0),
            row("pan_frame_ms", "the same, panning", "ms").within(8.0),
            row(
                "cells_first_paint_ms",
                "first paint of 10,000 runs of 500 cells",
                "ms",
            )
            .within(150.0),
            row(
                "cells_point_ms",
                "script of a step to the next run, p95",
                "ms",
            )
            .within(8.0),
            row("cells_zoom_ms", "the same, zooming", "ms").within(8.0),
            row("cells_open_ms", "one of their rows opened, p95", "ms"),
            row("cells_all_ms", "all 500 rows shown", "ms"),
            row("slider_ms", "a threshold moved, 10,000 runs judged", "ms").within(100.0),
            row("readout_ms", "one run of 10,000 read out", "ms").within(50.0),
            row("rerun_kb", "left in the page by a re-run of the cell", "kB").within(50.0),
            row("module_kb", "the module, packed", "kB").within(400.0),
            row("picture_kb", "a saved report's picture", "kB").within(90.0),
            row("state_kb", "its state", "kB").within(20.0),
        ],
        peers: &[],
    },
    Bench {
        name: "leaks",
        script: "tests/python/bench_leaks.py",
        rows: &[
            row("leak_precision", "leak, nine runs and more: precision", ""),
            row("leak_recall", "recall", ""),
            row("leak_f1", "F1", ""),
            row("leak_false_positive_rate", "false-positive rate", ""),
            row(
                "leak_or_suspected_precision",
                "leak or suspected: precision",
                "",
            ),
            row("leak_or_suspected_recall", "recall", ""),
            row("leak_or_suspected_f1", "F1", ""),
            row(
                "leak_or_suspected_false_positive_rate",
                "false-positive rate",
                "",
            ),
        ],
        peers: &[],
    },
    Bench {
        name: "soak",
        script: "tests/harm/bench_soak.py",
        rows: &[
            row("cells", "cells that grew beside eight threads", ""),
            row("looks", "looks", ""),
            row("answered", "looks with an answer", ""),
            row("missed", "looks without one", ""),
            row("median_ms", "CPU of a cell, median", "ms"),
            row("longest_ms", "CPU of a cell, longest", "ms"),
            row("plain_median_ms", "without gpumem, median", "ms"),
            row("plain_longest_ms", "without gpumem, longest", "ms"),
            row("results_compared", "results, the same without gpumem", ""),
        ],
        peers: &[],
    },
    Bench {
        name: "store",
        script: "tests/python/bench_store.py",
        rows: &[
            row("handed_us", "a cell hands its run over", "µs").within(10.0),
            row(
                "handed_asleep_us",
                "the same, the store's thread asleep",
                "µs",
            )
            .within(10.0),
            row("waited_us", "a line waits for its run to be kept", "µs"),
            row("size_mib", "a session of 10,000 runs", "MiB"),
            row("size_ratio", "over the size of its recording", "×"),
            row("open_ms", "opening it", "ms").within(100.0),
        ],
        peers: &[],
    },
    Bench {
        name: "dask",
        script: "tests/python/bench_dask.py",
        rows: &[
            row("added_2_ms", "a cell's roll, 2 dask workers", "ms").within(4.0),
            row("run_twice_2_ms", "`client.run` twice, in turn", "ms"),
            row("ratio_2", "the roll over it", "×"),
            row("added_8_ms", "a cell's roll, 8 dask workers", "ms").within(8.0),
            row("run_twice_8_ms", "`client.run` twice, in turn", "ms"),
            row("ratio_8", "the roll over it", "×"),
            row("root_512_ms", "CPU of the scheduler, 512 workers", "ms").within(20.0),
            row("wall_512_ms", "until all 512 have answered", "ms"),
        ],
        peers: &[],
    },
];

const fn row(key: &'static str, meaning: &'static str, unit: &'static str) -> Row {
    Row {
        key,
        meaning,
        unit,
        budget: None,
        is_optional: false,
    }
}

impl Row {
    const fn within(self, budget: f64) -> Self {
        Self {
            budget: Some(budget),
            ..self
        }
    }

    const fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }
}
