//! Logs of every form, damage, and arbitrary bytes.

use std::fmt::Write;

use gpumem_explorer::formats::{Content, FileKind, Format};
use gpumem_model::units::{Bytes, Nanos};
use gpumem_readers::level_log::{DeviceLog, LevelLog, LogShape};
use gpumem_readers::nvidia_smi::read;

const QUERY: &str = "timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n\
    2024/01/17 12:34:56.100, 0, NVIDIA A100, 10 MiB, 1000 MiB, 5 %\n\
    2024/01/17 12:34:56.103, 1, NVIDIA A100, 500 MiB, 1000 MiB, 5 %\n\
    2024/01/17 12:35:56.100, 0, NVIDIA A100, 700 MiB, 1000 MiB, 5 %\n\
    2024/01/17 12:35:56.103, 1, NVIDIA A100, [N/A], 1000 MiB, [N/A]\n\
    2024/01/17 12:36:56.100, 0, NVIDIA A100, 12 MiB, 1000 MiB, 5 %\n\
    2024/01/17 12:36:56.103, 1, NVIDIA A100, 400 MiB, 1000 MiB, 5 %\n";

const APPS: &str = "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n\
    2024/01/17 12:34:56.100, GPU-1, 41, /opt/a, b/python, 10 MiB\n\
    2024/01/17 12:34:56.100, GPU-1, 42, C:\\x\\blender.exe, [N/A]\n\
    2024/01/17 12:34:57.100, GPU-1, 41, /opt/a, b/python, 30 MiB\n";

const DMON: &str = "#Date       Time        gpu    fb  bar1    sm\n\
    #YYYYMMDD   HH:MM:SS    Idx    MB    MB     %\n \
    20240117   23:59:59      0   100     2     5\n \
    20240117   23:59:59      1     -     -     -\n\
    #Date       Time        gpu    fb  bar1    sm\n\
    #YYYYMMDD   HH:MM:SS    Idx    MB    MB     %\n \
    20240118   00:00:04      0   300     2     5\n";

const PMON: &str = "#Time        gpu        pid  type    fb  ccpm   command\n\
    #HH:MM:SS    Idx          #   C/G    MB    MB   name\n \
    23:59:58      0       4211     C   800     0   python3 -m train \n \
    23:59:58      1          -     -     -     -   -\n \
    00:00:01      0       4211     C   900     0   python3 -m train \n";

#[track_caller]
fn log(text: &str) -> LevelLog {
    read(text.as_bytes()).unwrap()
}

/// Label, levels in MiB (first, peak, last) and pids with their peaks in MiB.
fn shown(device: &DeviceLog) -> String {
    let mib = |bytes: Bytes| bytes.get() >> 20;
    let mut text = device.label.clone();
    for named in &device.levels {
        let it = &named.series;
        let [first, peak, last] = [it.first, it.peak, it.last].map(mib);
        write!(text, " {first} {peak} {last}").unwrap();
    }
    for process in &device.processes {
        let peak = process.levels.first().map(|named| mib(named.series.peak));
        write!(text, " · {} {peak:?}", process.pid).unwrap();
    }
    text
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let log = log(text);
    let devices: Vec<String> = log.devices.iter().map(shown).collect();
    assert_eq!(devices, expected, "{:?}", log.notes);
    assert_eq!(
        FileKind::recognise(text.as_bytes()).format,
        Some(Format::NvidiaSmi)
    );
    let report = log.text(80);
    assert!(
        report.lines().all(|line| line.chars().count() <= 80),
        "{report}"
    );
}

#[test]
fn a_query_of_devices() {
    check(QUERY, &["GPU 0 10 700 12", "GPU 1 500 500 400"]);
    let log = log(QUERY);
    assert_eq!(log.duration, Some(Nanos::millis(120_003)));
    assert_eq!(log.devices[0].capacity, Some(Bytes::mib(1000)));
    assert_eq!(log.devices[0].name.as_deref(), Some("NVIDIA A100"));
    let peak_at = log.devices[0].levels[0].series.peak_at.unwrap();
    assert_eq!(peak_at.to_string(), "2024-01-17 12:35:56");
    assert_eq!(log.devices[1].missing, [("[N/A]".to_owned(), 1)]);
    assert_eq!(log.notes, [""; 0]);
}

#[test]
fn a_query_of_processes() {
    check(APPS, &["GPU-1 · 41 Some(30) · 42 None"]);
    let log = log(APPS);
    let [python, blender] = &log.devices[0].processes[..] else {
        panic!("{log:?}");
    };
    assert_eq!(python.name.as_deref(), Some("/opt/a, b/python"));
    assert_eq!(blender.missing, [("[N/A]".to_owned(), 1)]);
}

#[test]
fn dmon_and_pmon() {
    check(DMON, &["GPU 0 100 300 300", "GPU 1"]);
    assert_eq!(log(DMON).duration, Some(Nanos::millis(5000)));
    check(PMON, &["GPU 0 · 4211 Some(900)", "GPU 1"]);
    let log = log(PMON);
    assert_eq!(log.duration, Some(Nanos::millis(3000)));
    let name = log.devices[0].processes[0].name.as_deref();
    assert_eq!(name, Some("python3 -m train"));
    check(
        "#gpu, fb, bar1\n#Idx, MB, MB\n0, 20, 1\n0, 30, 1\n",
        &["GPU 0 20 30 30"],
    );
}

#[test]
fn every_encoding_of_a_shell() {
    let crlf = QUERY.replace('\n', "\r\n");
    let units = || crlf.encode_utf16();
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    let marked = |mark: &[u8], bytes: &[u8]| [mark, bytes].concat();
    for bytes in [
        crlf.clone().into_bytes(),
        QUERY.replace('\n', "\r").into_bytes(),
        marked(b"\xef\xbb\xbf", QUERY.as_bytes()),
        marked(b"\xff\xfe", &little),
        marked(b"\xfe\xff", &big),
    ] {
        assert_eq!(FileKind::recognise(&bytes).format, Some(Format::NvidiaSmi));
        assert_eq!(read(&bytes).unwrap(), log(QUERY));
    }
}

#[test]
fn a_log_without_header_is_recognised_by_its_numbers() {
    let bare = |n_skipped: usize| {
        let rows = QUERY.lines().skip(1);
        let rows = rows.map(|row| {
            row.split(", ")
                .skip(n_skipped)
                .collect::<Vec<_>>()
                .join(", ")
        });
        rows.collect::<Vec<_>>().join("\n") + "\n"
    };
    check(&bare(0), &["GPU 0 10 700 12", "GPU 1 500 500 400"]);
    check(&bare(1), &["GPU 0 10 700 12", "GPU 1 500 500 400"]);
    let without_units = bare(0)
        .replace(" MiB", "")
        .replace(", 5 %", "")
        .replace(", [N/A]\n", "\n");
    check(&without_units, &["GPU 0 10 700 12", "GPU 1 500 500 400"]);
    check(
        "1705494896, 512 MiB\n1705494897, 700 MiB\n",
        &["GPU 512 700 700"],
    );
    check("433, 40536\n500, 40536\n", &["GPU 433 500 500"]);
    check(
        "0, 433, 40536\n1, 500, 24564\n",
        &["GPU 0 433 433 433", "GPU 1 500 500 500"],
    );
    check(
        "4211, /usr/bin/python3, 512 MiB\n4211, /usr/bin/python3, 600 MiB\n",
        &["GPU · 4211 Some(600)"],
    );
    let words =
        "the log has no header: column 2 was taken as used memory, column 3 as the capacity";
    assert_eq!(log("0, 512 MiB, 8000 MiB\n").notes, [words]);
    assert_eq!(
        log("512 MiB\n").notes,
        ["the log has no header: column 1 was taken as used memory"]
    );
}

#[test]
fn without_a_header_nothing_is_guessed() {
    for (text, kind) in [
        // memory.used, utilization.gpu
        ("433, 0\n433, 1\n433, 2\n", Format::Numbers),
        // index, utilization.gpu
        ("0, 35\n1, 20\n0, 36\n", Format::Numbers),
        // memory.total, utilization.gpu
        ("40536, 35\n40536, 20\n", Format::Numbers),
        // timestamp, temperature.gpu
        (
            "2024/01/05 12:30:00.123, 45\n2024/01/05 12:30:01.123, 46\n",
            Format::Numbers,
        ),
        // memory.free, memory.total
        ("900 MiB, 1000 MiB\n800 MiB, 1000 MiB\n", Format::NvidiaSmi),
        ("39000, 40536\n38000, 40536\n", Format::Numbers),
        ("10 MiB, 20 MiB, 30 MiB\n", Format::NvidiaSmi),
        ("512\n700\n600\n", Format::Numbers),
        ("0,0.9\n1,0.8\n2,0.7\n", Format::Numbers),
        ("3", Format::Numbers),
    ] {
        assert_eq!(
            FileKind::recognise(text.as_bytes()).format,
            Some(kind),
            "{text}"
        );
        check_error(text, "byte 0: numbers without a header: ");
        check_error(text, "without `noheader`");
    }
}

#[test]
fn a_number_that_is_not_mib_is_refused() {
    check_error(
        "timestamp,memory_used\n2024-01-01 00:00:00,5368709120\n",
        "byte 22: 5368709120 MiB of memory is more than any device has\nhint: name the unit",
    );
    let named = "timestamp,memory_used [B]\n2024-01-01 00:00:00,5368709120\n";
    check(named, &["GPU 5120 5120 5120"]);
    let notes = log("memory.used\n500\n5368709120\n600\n").notes;
    assert_eq!(notes, ["line 3 is not a reading: 5368709120"]);
}

#[test]
fn the_index_of_pandas_has_no_name() {
    check(
        ",timestamp,index,memory.used [MiB]\n0,2024/01/05 12:00:00.000,3,100 MiB\n1,2024/01/05 12:00:01.000,3,200 MiB\n",
        &["GPU 3 100 200 200"],
    );
}

#[test]
fn rows_of_one_time_are_one_of_each_device() {
    let text = "timestamp, memory.used [MiB]\n\
        2024/01/17 12:34:56.100, 10 MiB\n2024/01/17 12:34:56.104, 500 MiB\n\
        2024/01/17 12:34:57.100, 20 MiB\n2024/01/17 12:34:57.104, 600 MiB\n\
        2024/01/17 12:34:58.100, 30 MiB\n";
    check(
        text,
        &[
            "line 1 of each reading 10 30 30",
            "line 2 of each reading 500 600 600",
        ],
    );
    let text = text.replace(".104", ".600");
    check(&text, &["GPU 10 600 30"]);
}

#[test]
fn the_number_that_differs_names_the_device() {
    let text = "timestamp,gpu,index,memory.used,memory.total\n1705494896,0, 0, 4, 80\n1705494896,1, 0, 5, 80\n";
    check(text, &["GPU 0 4 4 4", "GPU 1 5 5 5"]);
}

#[test]
fn used_is_capacity_minus_free() {
    let text = "index, memory.free [MiB], memory.total [MiB]\n0, 900 MiB, 1000 MiB\n";
    check(text, &["GPU 0 100 100 100"]);
}

#[test]
fn headers_may_repeat_and_change() {
    let text = format!("{QUERY}{QUERY}index, memory.used [MiB]\n1, 900 MiB\n");
    check(&text, &["GPU 0 10 700 12", "GPU 1 500 900 900"]);
}

#[test]
fn lines_without_a_reading_are_noted() {
    let text =
        format!("{QUERY}NVIDIA-SMI has failed because it lost the GPU\nUnable to determine\n");
    let notes = log(&text).notes;
    let words =
        "2 lines are not readings, first line 8: NVIDIA-SMI has failed because it lost the GPU";
    assert_eq!(notes, [words]);
}

#[test]
fn a_cut_line_is_left_out() {
    for (cut, n_readings) in [(0, 6), (1, 6), (2, 6), (20, 5), (24, 5), (26, 5), (50, 5)] {
        let text = &QUERY[..QUERY.len() - cut];
        let log = log(text);
        assert_eq!(log.n_readings, n_readings, "{cut}: {text}");
    }
    let bare = "index, memory.used\n0, 4000\n0, 4100\n0, 41";
    assert_eq!(log(bare).notes, ["the last line was cut off, and left out"]);
    check(bare, &["GPU 0 4000 4100 4100"]);
    // `199` of `1999`.
    check(
        "memory.used [MiB]\n1000\n1000\n199",
        &["GPU 1000 1000 1000"],
    );
    check(
        "memory.used, index\n4000, 1\n4100, 1",
        &["GPU 1 4000 4000 4000"],
    );
    // A certainly whole row counts.
    check(
        "memory.used [MiB]\n1000 MiB\n199 MiB",
        &["GPU 1000 1000 199"],
    );
    check(
        "memory.used, utilization.gpu\n1000, 5 %\n199, 1",
        &["GPU 1000 1000 199"],
    );
    check("memory.used\n1000", &["GPU 1000 1000 1000"]);
    assert_eq!(
        log("memory.used\n1000").notes,
        ["the only reading has no line end: it may be cut"]
    );
    let with_unit = "index, memory.used [MiB]\n0, 4000 MiB\n0, 4100";
    check(with_unit, &["GPU 0 4000 4000 4000"]);
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let error = read(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_log_without_memory_says_what_to_log() {
    check_error(
        "# gpu   sm   mem\n# Idx    %     %\n  0   5    3\n",
        "nvidia-smi dmon -s m -o DT",
    );
    check_error(
        "# gpu   pid type  sm   mem command\n  0   5    C 3 4 python\n",
        "nvidia-smi pmon -s m -o DT",
    );
    check_error(
        "timestamp, utilization.gpu [%]\n2024/01/17 12:34:56.100, 4 %\n",
        "byte 0: a log of nvidia-smi without memory: its columns are timestamp, utilization.gpu [%]\nhint: log",
    );
    check_error(
        "1, 5, 7, 12\n2, 3, 5, 600\n",
        "which of its 4 columns is memory?",
    );
    check_error(
        "index, memory.used [MiB]\n",
        "byte 24: a log of nvidia-smi without a reading",
    );
    check_error(
        "Mon Jan 15\n+-----+\n| NVIDIA-SMI 535.1 |\n",
        "byte 19: the table of nvidia-smi",
    );
    check_error("hello\nworld\n", "not a log of nvidia-smi");
}

#[test]
fn other_texts_are_no_logs() {
    for text in [
        "hello",
        "import os\nprint(1, 2)\n",
        "a,b\nc,d\n",
        "0.5,0.7\n0.1,0.2\n",
        "{\"NVSMI LOG\": 1}",
    ] {
        let format = FileKind::recognise(text.as_bytes()).format;
        assert!(matches!(format, None | Some(Format::TorchTrace)), "{text}");
    }
}

#[track_caller]
fn check_shape(levels: &[u64], expected: LogShape) {
    let mut text = "memory.used [MiB]\n".to_owned();
    for level in levels {
        writeln!(text, "{level} MiB").unwrap();
    }
    assert_eq!(log(&text).devices[0].levels[0].series.shape(None), expected);
}

#[test]
fn shapes_are_described_in_plain_words() {
    check_shape(&[500], LogShape::Flat);
    check_shape(&[500, 510, 505], LogShape::Flat);
    check_shape(
        &[0, 100, 200, 300, 400, 500, 600, 700, 800],
        LogShape::RoseThroughout,
    );
    check_shape(
        &[0, 100, 90, 200, 190, 300, 290, 400, 390],
        LogShape::RoseThroughout,
    );
    check_shape(
        &[0, 900, 900, 900, 900, 900, 901, 900, 900],
        LogShape::RoseAndStayed,
    );
    check_shape(&[0, 900, 500], LogShape::Rose);
    check_shape(&[0, 900, 3], LogShape::FellBack);
    check_shape(&[900, 950, 3], LogShape::Fell);
}

/// The shape of readings in MiB on a device of 80 GiB, and the conclusion on it.
fn judged(levels: impl Iterator<Item = u64>) -> (LogShape, String) {
    let mut text = "memory.used [MiB], memory.total [MiB]\n".to_owned();
    for level in levels {
        writeln!(text, "{level} MiB, 81559 MiB").unwrap();
    }
    let log = log(&text);
    let device = &log.devices[0];
    let shape = device.levels[0].series.shape(device.capacity);
    let report = log.text(200);
    (shape, report.lines().nth(1).unwrap().to_owned())
}

#[test]
fn a_slow_rise_counts_below_a_hundredth_of_the_capacity() {
    let (shape, words) = judged((0..160).map(|n| 1000 + 5 * n));
    assert_eq!(shape, LogShape::RoseThroughout);
    assert_eq!(
        words,
        "▲ GPU rose throughout: +795 MiB, from 1000 MiB to 1.75 GiB"
    );
    let (shape, _) = judged((0..5000).map(|n| 1000 + n / 10 + 40 * (n % 3)));
    assert_eq!(shape, LogShape::RoseThroughout);
}

#[test]
fn a_level_that_returns_or_settles_is_no_slow_rise() {
    let sawtooth = (0..160).map(|n| 1000 + 30 * (n % 20) + n % 3);
    let warm_up = (0..160).map(|n| 1000 + 700 * n.min(20) / 20 + n % 3);
    let settling = (0..160_u32).map(|n| 1700 - (700.0 * 0.97_f64.powf(n.into())) as u64);
    let step = (0..160).map(|n| if n < 80 { 1000 } else { 1500 + n % 3 });
    for (name, levels) in [
        ("sawtooth", sawtooth.collect::<Vec<u64>>()),
        ("warm-up", warm_up.collect()),
        ("settling", settling.collect()),
        ("step", step.collect()),
    ] {
        let (shape, words) = judged(levels.into_iter());
        assert_eq!(shape, LogShape::Flat, "{name}");
        assert!(
            words.starts_with("no device's memory rose clearly: GPU by "),
            "{name}: {words}"
        );
        assert!(
            words.ends_with(", and less than 816 MiB does not count"),
            "{name}: {words}"
        );
    }
    let (_, words) = judged([500, 400, 500].into_iter());
    assert_eq!(
        words,
        "no device's memory rose from the log's start to its end"
    );
}

#[test]
fn each_word_in_place_of_a_level_is_counted() {
    let log = log("index, memory.used\n0, 5\n0, [N/A]\n0, [GPU is lost]\n0, [N/A]\n");
    let expected = [("[N/A]", 2), ("[GPU is lost]", 1)].map(|(words, n)| (words.to_owned(), n));
    assert_eq!(log.devices[0].missing, expected);
    let report = log.text(80);
    let line = "  no figure in 3 readings: [N/A] in 2, [GPU is lost] in 1";
    assert!(report.lines().any(|it| it == line), "{report}");
}

#[test]
fn a_clock_that_goes_back_is_noted() {
    let log = log("timestamp, index, memory.used [MiB]\n\
        2024/01/06 12:00:00.000, 0, 500 MiB\n\
        2024/01/05 12:00:00.000, 0, 100 MiB\n\
        2024/01/05 12:00:01.000, 0, 600 MiB\n\
        2024/01/05 12:00:00.000, 1, 600 MiB\n");
    let words = "the log's clock goes back 1 time: first and last are in the order of its lines";
    assert_eq!(log.notes, [words]);
}

#[test]
fn a_long_log_keeps_its_extremes() {
    let mut text = "memory.used\n".to_owned();
    for n in 0..100_000_u64 {
        let level = if n == 77_777 { 9000 } else { 1000 + n / 500 };
        writeln!(text, "{level}").unwrap();
    }
    let log = log(&text);
    let series = &log.devices[0].levels[0].series;
    assert_eq!((series.peak_ordinal, series.n_readings), (77_777, 100_000));
    assert!(series.points().len() <= 512);
    assert!(
        series
            .points()
            .iter()
            .any(|point| point.level == Bytes::mib(9000))
    );
    assert_eq!(series.shape(None), LogShape::RoseThroughout);
}
