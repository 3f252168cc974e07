//! Exports of every version and form, damage, and arbitrary bytes.

use gpumem_readers::level_log::LevelLog;
use gpumem_readers::stormlog::{is_export, read};

/// An event of version 2 of a process, with its figures in bytes.
fn event(second: u64, pid: u64, allocated: u64, used: &str) -> String {
    format!(
        r#"{{"schema_version": 2, "timestamp_ns": {second}000000000, "event_type": "sample",
        "collector": "stormlog.cuda_tracker", "pid": {pid}, "host": "a", "device_id": 0,
        "allocator_allocated_bytes": {allocated}, "allocator_reserved_bytes": {}, "device_used_bytes": {used},
        "device_total_bytes": 9000, "context": null, "metadata": {{"a": [1, {{}}]}}}}"#,
        allocated * 2
    )
}

fn array() -> String {
    format!(
        "[{},\n{}]",
        event(1, 7, 100, "700"),
        event(2, 7, 300, "null")
    )
}

fn lines() -> String {
    let line = |event: String| event.replace('\n', " ") + "\n";
    line(event(1, 7, 100, "700")) + &line(event(2, 7, 300, "null"))
}

const CSV: &str = "schema_version,timestamp_ns,event_type,pid,host,device_id,allocator_allocated_bytes,\
    allocator_reserved_bytes,device_used_bytes,device_total_bytes,context,metadata\n\
    2,1000000000,sample,7,a,0,100,200,700.0,9000,\"a, \"\"b\"\"\nc\",{}\n\
    2,2000000000,sample,7,a,0,300,600,,9000,,{}\n";

const OLD: &str = r#"{"events": [
    {"timestamp": 1.0, "event_type": "allocation", "memory_allocated": 100, "memory_reserved": 200, "device_id": 0},
    {"timestamp": 2.0, "event_type": "warning", "memory_allocated": 300, "memory_reserved": 600, "device_id": 0}]}"#;

/// Each level with its number of readings and its peak.
fn shown(log: &LevelLog) -> String {
    let levels = log.devices[0].levels.iter().map(|it| {
        let (name, series) = (it.kind.name(), &it.series);
        format!("{name} {} {}", series.n_readings, series.peak.get())
    });
    levels.collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check(text: &str) {
    assert!(is_export(text.as_bytes()));
    let log = read(text.as_bytes()).unwrap();
    assert_eq!(shown(&log), "used 1 700, reserved 2 600, allocated 2 300");
    assert_eq!(log.devices[0].capacity.unwrap().get(), 9000);
    assert_eq!((log.n_readings, log.notes.len()), (2, 0));
}

#[test]
fn every_form_of_an_export() {
    check(&array());
    check(&lines());
    check(CSV);
    check(&CSV.replace('\n', "\r\n"));
}

#[test]
fn the_first_version_has_other_names() {
    let log = read(OLD.as_bytes()).unwrap();
    assert_eq!(shown(&log), "reserved 2 600, allocated 2 300");
    assert_eq!(log.notes, ["1 warning or error is in the export"]);
}

#[test]
fn the_tracker_of_the_cpu_reads_the_host() {
    let text = array()
        .replace("\"device_id\": 0", "\"device_id\": -1")
        .replace("cuda_tracker", "cpu_tracker");
    let log = read(text.as_bytes()).unwrap();
    assert_eq!(log.devices[0].label, "host");
    assert_eq!(
        log.notes,
        [
            "levels of host are the process's resident memory (RSS), which the tracker of the CPU reads"
        ]
    );
}

#[test]
fn several_processes_have_a_level_each() {
    let text = format!("[{},{}]", event(1, 7, 100, "700"), event(2, 8, 300, "900"));
    let log = read(text.as_bytes()).unwrap();
    assert_eq!(shown(&log), "used 2 900");
    let pids: Vec<u64> = log.devices[0].processes.iter().map(|it| it.pid).collect();
    assert_eq!(pids, [8, 7]);
}

#[test]
fn a_cut_file_is_read_up_to_there() {
    for text in [array(), lines(), CSV.to_owned()] {
        let log = read(&text.as_bytes()[..text.len() - 40]).unwrap();
        assert_eq!(log.n_readings, 1, "{text}");
        assert!(
            log.notes[0].starts_with("reading stopped at byte "),
            "{:?}",
            log.notes
        );
    }
}

#[test]
fn nothing_to_read_is_an_error() {
    let message = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        message("[]"),
        "byte 2: an export of stormlog without a level of memory"
    );
    assert!(message("[1]").starts_with("byte 2: the export of stormlog is damaged: "));
}
