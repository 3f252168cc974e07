//! Forms of nvidia-smi's figures other than its CSV: its table, lists and XML, and the lines of scripts and other
//! monitors.

use std::fmt::Write;

use gpumem_explorer::formats::{Content, FileKind, Format};
use gpumem_model::units::Bytes;
use gpumem_readers::level_log::{DeviceLog, LevelLog, LevelSeries};
use gpumem_readers::nvidia_smi::read;

#[track_caller]
fn log(text: &str) -> LevelLog {
    read(text.as_bytes()).unwrap()
}

/// Label, name, capacity, levels (first, last) and processes (first, last), all in MiB.
fn shown(device: &DeviceLog) -> String {
    let mib = |bytes: Bytes| bytes.get() >> 20;
    let levels = |of: &[LevelSeries]| -> String {
        let series = of.iter().map(|named| &named.series);
        let ends = series.map(|it| format!(" {} {}", mib(it.first), mib(it.last)));
        ends.collect()
    };
    let mut text = device.label.clone();
    write!(text, " {:?}", device.name.as_deref().unwrap_or_default()).unwrap();
    write!(text, " of {:?}:", device.capacity.map(mib)).unwrap();
    text += &levels(&device.levels);
    for (words, n) in &device.missing {
        write!(text, " {words} in {n}").unwrap();
    }
    for process in &device.processes {
        let name = process.name.as_deref().unwrap_or_default();
        write!(text, " · {} {name:?}", process.pid).unwrap();
        text += &levels(&process.levels);
    }
    text
}

/// The devices, and when the log began and how long it took.
#[track_caller]
fn check(text: &str, time: &str, expected: &[&str]) {
    assert_eq!(
        FileKind::recognise(text.as_bytes()).format,
        Some(Format::NvidiaSmi)
    );
    let log = log(text);
    let devices: Vec<String> = log.devices.iter().map(shown).collect();
    assert_eq!(devices, expected, "{:?}", log.notes);
    assert_eq!(log.notes, [""; 0]);
    let report = log.text(200);
    let title = report.lines().next().unwrap_or_default();
    assert!(title.ends_with(time), "{title}");
}

const NONE: &str =
    "|  No running processes found                                                             |";
const PYTHON: &str =
    "|    0   N/A  N/A   3794277      C   python -m train                               11942MiB |";

/// A table as driver 550 draws it.
fn table(clock: &str, used: u64, process: &str) -> String {
    format!(
        "Tue Oct 29 {clock} 2024       
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA L40S                    On  |   00000000:4A:00.0 Off |                    0 |
| N/A   53C    P0            305W /  350W | {used:>7}MiB /  46068MiB |     93%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA L40S                    On  |   00000000:4B:00.0 Off |                    0 |
| N/A   27C    P8             32W /  350W |       0MiB /  46068MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
                                                                                         
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
{process}
+-----------------------------------------------------------------------------------------+
"
    )
}

#[test]
fn tables_one_after_the_other_are_a_log() {
    let text = table("19:00:23", 0, NONE) + &table("19:01:23", 11_948, PYTHON);
    check(
        &text,
        "1 min 0 s from 2024-10-29 19:00:23",
        &[
            "GPU 0 \"NVIDIA L40S\" of Some(46068): 0 11948 · 3794277 \"python -m train\" 11942 11942",
            "GPU 1 \"NVIDIA L40S\" of Some(46068): 0 0",
        ],
    );
    // What `watch` and a script write above it.
    for time in [
        "Every 60.0s: nvidia-smi             gpu-node: Tue Oct 29 19:00:23 2024",
        "[2024-10-29 19:00:23]",
        "2024-10-29 19:00:23",
    ] {
        let headed = text.replacen("Tue Oct 29 19:00:23 2024       ", time, 1);
        assert_eq!(log(&headed), log(&text), "{time}");
    }
}

#[test]
fn a_table_that_is_cut_counts_up_to_its_last_whole_line() {
    let whole = table("19:01:23", 11_948, PYTHON);
    let before_process = whole.find("3794277").unwrap();
    let text = &whole[..before_process + 60];
    check(
        text,
        "at 2024-10-29 19:01:23",
        &[
            "GPU 0 \"NVIDIA L40S\" of Some(46068): 11948 11948",
            "GPU 1 \"NVIDIA L40S\" of Some(46068): 0 0",
        ],
    );
}

#[test]
fn tables_of_old_drivers_and_of_windows() {
    check(
        "Tue Sep 13 10:11:12 2016
+------------------------------------------------------+
| NVIDIA-SMI 352.79     Driver Version: 352.79         |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  GeForce GTX TIT...  Off  | 0000:01:00.0      On |                  N/A |
| 22%   38C    P8    15W / 250W |   7%   140MiB / 12287MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
|  GPU       PID  Type  Process name                               Usage      |
|=============================================================================|
|    0      1120    G   /usr/bin/X                                     130MiB |
+-----------------------------------------------------------------------------+
",
        "at 2016-09-13 10:11:12",
        &["GPU 0 \"GeForce GTX TIT...\" of Some(12287): 140 140 · 1120 \"/usr/bin/X\" 130 130"],
    );
    check(
        "| NVIDIA-SMI 537.70                 Driver Version: 537.70       CUDA Version: 12.2     |
| GPU  Name                     TCC/WDDM  | Bus-Id        Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA GeForce RTX 4090      WDDM  | 00000000:01:00.0  On |                  Off |
|  0%   38C    P8              12W / 450W |   1500MiB / 24564MiB |      5%      Default |
| Processes:                                                                            |
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |
|    0   N/A  N/A      2048    C+G   C:\\Program Files\\x y\\blender.exe               N/A      |
",
        "log · 1 device · 2 readings",
        &[
            "GPU 0 \"NVIDIA GeForce RTX 4090\" of Some(24564): 1500 1500 · 2048 \"C:\\\\Program Files\\\\x y\\\\blender.exe\"",
        ],
    );
}

#[test]
fn instances_and_memory_of_the_host_are_no_level_of_the_device() {
    check(
        "|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:00:04.0 Off |                   On |
| N/A   36C    P0              64W / 400W |     87MiB / 40960MiB |     N/A      Default |
|                                         |                      |              Enabled |
| MIG devices:                                                                            |
| GPU  GI  CI  MIG |                   Memory-Usage |        Vol|      Shared           |
|  0    7   0   0  |              12MiB /  4864MiB  | 14      0 |  1   0    0    0    0 |
|   1  NVIDIA GB10                    On  | 0000000F:01:00.0 Off |                  N/A |
| N/A   44C    P0              10W /  N/A |    Not Supported     |      0%      Default |
",
        "log · 2 devices · 2 readings",
        &[
            "GPU 0 \"NVIDIA A100-SXM4-40GB\" of Some(40960): 87 87",
            "GPU 1 \"NVIDIA GB10\" of None: Not Supported in 1",
        ],
    );
}

/// `-q` as drivers list it, with sections that have the same names deeper.
fn query(clock: &str, used: u64) -> String {
    format!(
        "
==============NVSMI LOG==============

Timestamp                                 : Thu Jan 30 {clock} 2025
Driver Version                            : 566.36

Attached GPUs                             : 2
GPU 00000000:01:00.0
    Product Name                          : NVIDIA A100
    MIG Mode
        Current                           : Enabled
    MIG Devices
        Index                             : 0
        FB Memory Usage
            Total                         : 4864 MiB
            Used                          : 13 MiB
    GPU UUID                              : GPU-1b724e78
    FB Memory Usage
        Total                             : 8188 MiB
        Reserved                          : 225 MiB
        Used                              : {used} MiB
        Free                              : 88 MiB
    BAR1 Memory Usage
        Total                             : 8192 MiB
        Used                              : 1 MiB
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 1234
            Type                          : C
            Name                          : python train.py
            Used GPU Memory               : {used} MiB
        Process ID                        : 1300
            Type                          : G
            Name                          : Xorg
            Used GPU Memory               : 4 MiB

GPU 00000000:02:00.0
    FB Memory Usage
        Total                             : 8188 MiB
        Used                              : 3 MiB
    Processes                             : None
"
    )
}

#[test]
fn listings_of_q_are_a_log() {
    let text = query("16:14:43", 100) + &query("16:14:53", 4100);
    check(
        &text,
        "10.0 s from 2025-01-30 16:14:43",
        &[
            "00000000:01:00.0 \"NVIDIA A100\" of Some(8188): 100 4100 · 1234 \"python train.py\" 100 4100 · 1300 \"Xorg\" 4 4",
            "00000000:02:00.0 \"\" of Some(8188): 3 3",
        ],
    );
    // Drivers before 320.
    check(
        "==============NVSMI LOG==============\n\nTimestamp : Wed Oct 24 10:00:00 2012\nGPU 0000:02:00.0\n    \
         Memory Usage\n        Total : 1535 MB\n        Used : 4 MB\n        Free : 1531 MB\n",
        "at 2012-10-24 10:00:00",
        &["0000:02:00.0 \"\" of Some(1535): 4 4"],
    );
}

/// `-q -x`.
fn xml(clock: &str, used: u64) -> String {
    format!(
        "<?xml version=\"1.0\" ?>
<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">
<nvidia_smi_log>
	<timestamp>Fri Oct  2 {clock} 2026</timestamp>
	<attached_gpus>1</attached_gpus>
	<gpu id=\"00000000:01:00.0\">
		<product_name>NVIDIA A30</product_name>
		<mig_devices>
			<mig_device><index>0</index><fb_memory_usage><total>64 MiB</total><used>9 MiB</used></fb_memory_usage></mig_device>
		</mig_devices>
		<uuid>GPU-22</uuid>
		<fb_memory_usage>
			<total>24258 MiB</total>
			<reserved>201 MiB</reserved>
			<used>{used} MiB</used>
			<free>20 MiB</free>
		</fb_memory_usage>
		<bar1_memory_usage>
			<used>5 MiB</used>
		</bar1_memory_usage>
		<processes>
			<process_info>
				<pid>42</pid>
				<process_name>python</process_name>
				<used_memory>{used} MiB</used_memory>
			</process_info>
			<process_info>
				<pid>43</pid>
				<process_name>C:\\x.exe</process_name>
				<used_memory>N/A</used_memory>
			</process_info>
		</processes>
	</gpu>
</nvidia_smi_log>
"
    )
}

#[test]
fn xml_documents_are_a_log() {
    let text = xml("19:30:00", 10) + &xml("19:30:05", 900);
    let expected = [
        "GPU-22 \"NVIDIA A30\" of Some(24258): 10 900 · 42 \"python\" 10 900 · 43 \"C:\\\\x.exe\"",
    ];
    check(&text, "5.0 s from 2026-10-02 19:30:00", &expected);
    // As a program makes it: one line.
    let in_a_line = text.replace(['\n', '\t'], "");
    check(&in_a_line, "5.0 s from 2026-10-02 19:30:00", &expected);
    // The whole elements of a truncated document count.
    let last = xml("19:30:05", 900);
    let cut = xml("19:30:00", 10) + &last[..last.find("42</pid>").unwrap()];
    check(
        &cut,
        "5.0 s from 2026-10-02 19:30:00",
        &[
            "GPU-22 \"NVIDIA A30\" of Some(24258): 10 900 · 42 \"python\" 10 10 · 43 \"C:\\\\x.exe\"",
        ],
    );
}

#[test]
fn columns_may_have_other_names() {
    check(
        "timestamp,index_gpu,name,gpu_utilization,gpu_memory_utilization,gpu_memory_used,gpu_memory_free,gpu_memory_total\n\
         2023-06-22 18:56:56, 0, NVIDIA GeForce RTX 2070,22,6,841,7140,8192\n\
         2023-06-22 18:56:57, 0, NVIDIA GeForce RTX 2070,24,13,869,7112,8192\n",
        "1.0 s from 2023-06-22 18:56:56",
        &["GPU 0 \"NVIDIA GeForce RTX 2070\" of Some(8192): 841 869"],
    );
    check(
        "Time;GPU ID;GPU Memory Used (GB);GPU Memory Total (GB);RAM Used (GB)\n12:00:01;cuda:1;1.5;24;60\n",
        "at 12:00:01",
        &["GPU 1 \"\" of Some(24576): 1536 1536"],
    );
    check(
        "time_s\tmem_used_pct\tvram_used_bytes\tcpu_mem_used_mb\n0.5\t60\t1048576\t900\n",
        "1 reading · 0 ns",
        &["GPU \"\" of None: 1 1"],
    );
    // One column for each device.
    check(
        "date,time,gpu0_mem_used_mb,gpu1_mem_used_mb,gpu0_util,gpu1_util\n\
         2024-01-17,12:00:00,10,500,3,4\n2024-01-17,12:00:09,30,400,3,4\n",
        "9.0 s from 2024-01-17 12:00:00",
        &["GPU 0 \"\" of None: 10 30", "GPU 1 \"\" of None: 500 400"],
    );
}

#[test]
fn a_share_is_no_level() {
    let text = "timestamp,gpu,memory_usage,gpu_memory_utilization\n2024-01-17 12:00:00,0,35,40\n";
    let error = read(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("not a log of nvidia-smi"), "{error}");
}

#[test]
fn quoted_fields_may_have_line_ends_and_separators() {
    let text = "elapsed_sec,gpu_util_pct,mem_used_mb,mem_total_mb,process_name,power_w\n\
        0.08,0,472,49140,\"python, -m\",\"26.11\n0\"\n0.34,2,502,49140,\"a \"\"b\"\"\",\"36.51\n0\"\n";
    check(
        text,
        "2 readings · 260 ms",
        &["GPU \"\" of Some(49140): 472 502"],
    );
    // A quote that does not end takes no line away.
    let text = "index,memory.used,name\n0,5 MiB,\"cut\n0,7 MiB,x\n0,9 MiB,y\n";
    check(text, "3 readings", &["GPU 0 \"y\" of None: 5 9"]);
}

#[test]
fn lines_for_people_have_levels() {
    check(
        "[04-03-2021 @ 13:32:39] >  Temp: 58C  Power: 1/250 W  Fan: 0%  Utilization: 0%  Memory: 0/11019 MiB\n\
         [04-03-2021 @ 13:32:49] >  Temp: 58C  Power: 1/250 W  Fan: 0%  Utilization: 0%  Memory: 9/11019 MiB\n",
        "10.0 s from 13:32:39",
        &["GPU \"\" of Some(11019): 0 9"],
    );
    check(
        "node7  Sun Oct 27 22:56:31 2019  440.33\n\
         [0] Tesla P100 | 48'C,  55 % | 15757 / 16280 MB | eham(15747M)\n\
         [1] Tesla P100 | 37'C,   9 % |     3 / 16280 MB |\n\
         node7  Sun Oct 27 22:57:31 2019  440.33\n\
         [0] Tesla P100 | 48'C,  55 % | 15800 / 16280 MB | eham(15747M)\n\
         [1] Tesla P100 | 37'C,   9 % |     4 / 16280 MB |\n",
        "1 min 0 s from 2019-10-27 22:56:31",
        &[
            "GPU 0 \"\" of Some(16280): 15757 15800",
            "GPU 1 \"\" of Some(16280): 3 4",
        ],
    );
    check(
        "2024-10-29 19:00:23,123 - INFO - GPU 2: 45 % load, memory used: 512 MiB, total: 8192 MiB, 12.5 GB/s\n",
        "at 2024-10-29 19:00:23",
        &["GPU 2 \"\" of Some(8192): 512 512"],
    );
    check(
        "[12:00:01] gpu: 45 % mem 1.5G/24G\n[12:00:02] gpu: 45 % mem 2.5G/24G\n",
        "1.0 s from 12:00:01",
        &["GPU \"\" of Some(24576): 1536 2560"],
    );
}

#[test]
fn other_lines_with_figures_are_no_levels() {
    for text in [
        "Downloading model: 10/24 MB/s\n",
        "disk used: 5 GB\nload 3/4\n",
        "memory clock: 405 MHz\n",
        "GPU memory usage over time\nof a model\n",
        "released on 29/10/2024\n",
        "epoch 1: loss 0.3, host memory used: 512 MiB\n",
    ] {
        assert_eq!(FileKind::recognise(text.as_bytes()).format, None, "{text}");
        assert!(read(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn an_output_without_levels_says_so() {
    for (text, words) in [
        (
            "==============NVSMI LOG==============\nTimestamp : Thu Jan 30 16:14:43 2025\nGPU 00000000:01:00.0\n    Clocks\n",
            "byte 0: the output of `-q` of nvidia-smi, without memory\nhint: log with",
        ),
        (
            "<nvidia_smi_log>\n</nvidia_smi_log>\n",
            "byte 0: the XML of `-q -x` of nvidia-smi, without memory",
        ),
    ] {
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
