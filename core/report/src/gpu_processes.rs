//! The processes on each device as a table: one line per process, problems marked, and what to do.

use super::columns::or_else;
use super::text_table::{self, left, right, wrapped_table};
use super::{to_text, wrapped};
use gpumem_jobs::gpu_processes::{DeviceProcesses, GpuProcess, GpuProcesses, ProcessKind};
use gpumem_model::recording::Level;
use gpumem_model::units::{Bytes, Nanos};

/// Longer user names are cut.
const LONGEST_USER: usize = 12;

/// A table of processes for each device; lines are at most `width` columns long.
///
/// ```text
/// cuda:0  Tesla T4 · 10.4 GiB of 15.6 GiB used
///       memory   pid  user    age  what it is
///      5.3 GiB  4711  ann     2 h  this kernel · train.ipynb
///   !  3.1 GiB  4100  ann     3 d  orphaned kernel of old.ipynb: its Jupyter server (pid 3990) is gone
///      2.0 GiB  5120  bob   5 min  vllm …
/// → `kill 4100` ends what nobody seems to use any more: 3.1 GiB
/// ```
pub fn gpu_process_table(processes: &GpuProcesses, width: usize) -> String {
    let devices = processes.devices.iter();
    let rows: Vec<Vec<String>> = devices.flat_map(rows).collect();
    let columns = [
        left().min(3),
        right(),
        right().gap(2),
        left().max(LONGEST_USER).gap(2),
        right().gap(2),
        left().gap(2),
    ];
    // The columns are the same for all devices.
    let mut rows = wrapped_table(&columns, &rows, width).into_iter();
    let devices = processes.devices.iter();
    let lines: Vec<String> = devices
        .flat_map(|it| on_device(it, &mut rows, width))
        .collect();
    if lines.is_empty() {
        return "no GPU is read: `%gpumem status` says why".to_owned();
    }
    to_text(&lines)
}

/// The lines of a device; `rows` are those of its table, and of the tables of later devices.
fn on_device(
    device: &DeviceProcesses,
    rows: &mut impl Iterator<Item = String>,
    width: usize,
) -> Vec<String> {
    let mut lines = vec![wrapped(&heading(device), width)];
    if let Some(why) = &device.unlisted {
        let words = format!("  its processes are not known: {why}");
        lines.push(wrapped(&words, width));
        return lines;
    }
    let n_rows = self::rows(device).len();
    if n_rows == 0 {
        lines.push("  no process uses it".to_owned());
        return lines;
    }
    lines.extend(rows.take(n_rows));
    let notes = why_unknown(&device.members)
        .into_iter()
        .chain(remedies(&device.members));
    lines.extend(notes.map(|note| wrapped(&note, width)));
    lines
}

/// The table of a device with its heading; empty if there is none.
fn rows(device: &DeviceProcesses) -> Vec<Vec<String>> {
    let is_empty = device.members.is_empty() && device.unattributed.is_none();
    if is_empty || device.unlisted.is_some() {
        return Vec::new();
    }
    let heading = ["", "memory", "pid", "user", "age", "what it is"];
    let mut rows = vec![text_table::row(heading)];
    rows.extend(device.members.iter().map(member_row));
    rows.extend(device.unattributed.map(|unattributed| {
        let words = "used by what the driver does not list here";
        text_table::row(["", &unattributed.to_string(), "–", "–", "–", words])
    }));
    rows
}

fn heading(device: &DeviceProcesses) -> String {
    let name = format!("{}  {}", device.device, device.name);
    let used = match (device.used, device.capacity) {
        (Some(used), Some(capacity)) => format!(" · {used} of {capacity} used"),
        (Some(used), None) => format!(" · {used} used"),
        (None, _) => String::new(),
    };
    format!("{}{used}", name.trim_end())
}

fn member_row(member: &GpuProcess) -> Vec<String> {
    let mark = if member.kind.is_suspect() {
        "  !"
    } else {
        "   "
    };
    vec![
        mark.to_owned(),
        or_else(member.used.known(), "unavailable"),
        or_else(Some(member.pid).filter(|pid| *pid != 0), "–"),
        or_else(member.user.as_ref(), "–"),
        or_else(member.age.map(age), "–"),
        member.words.clone(),
    ]
}

/// Each reason once.
fn why_unknown(members: &[GpuProcess]) -> Vec<String> {
    let mut reasons: Vec<&str> = members
        .iter()
        .filter_map(|it| match &it.used {
            Level::Known(_) => None,
            Level::Unknown(why) => Some(why.message()),
        })
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    let notes = reasons.into_iter();
    notes.map(|why| format!("  unavailable: {why}")).collect()
}

/// What to do about processes that nobody uses any more.
fn remedies(members: &[GpuProcess]) -> Vec<String> {
    let ended: Vec<&GpuProcess> = members.iter().filter(|it| it.kind.can_be_ended()).collect();
    let (own, of_others): (Vec<&GpuProcess>, Vec<&GpuProcess>) =
        ended.into_iter().partition(|it| it.is_own_users);
    let mut remedies = Vec::new();
    if !own.is_empty() {
        let pids: Vec<String> = own.iter().map(|it| it.pid.to_string()).collect();
        let freed = own.iter().map(|it| it.used.known()).sum::<Option<Bytes>>();
        let freed = freed.map_or_else(String::new, |it| format!(": {it}"));
        let pids = pids.join(" ");
        remedies.push(format!(
            "→ `kill {pids}` ends what nobody seems to use any more{freed}"
        ));
    }
    if !of_others.is_empty() {
        let mut users: Vec<&str> = of_others
            .iter()
            .filter_map(|it| it.user.as_deref())
            .collect();
        users.sort_unstable();
        users.dedup();
        let whose = if users.is_empty() {
            "whose they are".to_owned()
        } else {
            users.join(", ")
        };
        remedies.push(format!(
            "→ what others left over is theirs to end: ask {whose}"
        ));
    }
    if members.iter().any(|it| it.kind == ProcessKind::Gone) {
        let words = "→ what has ended is held by a process that it started, or by its parent: `fuser -v \
                     /dev/nvidia*` as root tells which";
        remedies.push(words.to_owned());
    }
    if members.iter().any(|it| it.kind == ProcessKind::Zombie) {
        remedies.push(
            "→ what has ended and was not taken note of goes when its parent does".to_owned(),
        );
    }
    remedies
}

/// In one unit: `12 s`, `5 min`, `2 h`, `3 d`.
pub(super) fn age(age: Nanos) -> String {
    let seconds = age.get() / 1_000_000_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::n_columns;
    use gpumem_model::recording::Unknown;

    fn member(pid: u32, used: Level, kind: ProcessKind, user: &str, words: &str) -> GpuProcess {
        GpuProcess {
            pid,
            used,
            kind,
            user: Some(user.to_owned()),
            is_own_users: user == "ann",
            command: None,
            age: Some(Nanos::new(u64::from(pid) * 1_000_000_000)),
            notebook: None,
            kernel_id: None,
            server: None,
            words: words.to_owned(),
        }
    }

    fn device(members: Vec<GpuProcess>) -> DeviceProcesses {
        DeviceProcesses {
            device: "cuda:0".to_owned(),
            name: "Tesla T4".to_owned(),
            used: Some(Bytes::gib(10)),
            capacity: Some(Bytes::gib(15)),
            members,
            unlisted: None,
            unattributed: None,
        }
    }

    #[track_caller]
    fn check(device: DeviceProcesses, expected: &[&str]) {
        let devices = vec![device];
        let table = gpu_process_table(&GpuProcesses { devices }, 80);
        assert_eq!(table.lines().collect::<Vec<_>>(), expected);
        assert!(table.lines().all(|line| n_columns(line) <= 80), "{table}");
    }

    #[test]
    fn each_process_has_a_line_and_what_is_wrong_a_remedy() {
        let withheld = Level::Unknown(Unknown::Withheld("WSL 2 does not tell".into()));
        let orphan = "orphaned kernel of old.ipynb: its Jupyter server (pid 3990) is gone";
        check(
            device(vec![
                member(
                    4711,
                    Bytes::mib(5300).into(),
                    ProcessKind::Own,
                    "ann",
                    "this kernel · train.ipynb",
                ),
                member(
                    270_000,
                    Bytes::gib(3).into(),
                    ProcessKind::OrphanedKernel,
                    "ann",
                    orphan,
                ),
                member(
                    300,
                    Bytes::gib(1).into(),
                    ProcessKind::LeftOver,
                    "bob",
                    "python a.py · left over",
                ),
                member(30, withheld, ProcessKind::Process, "carl", "vllm …"),
            ]),
            &[
                "cuda:0  Tesla T4 · 10 GiB of 15 GiB used",
                "         memory     pid  user    age  what it is",
                "       5.18 GiB    4711  ann     1 h  this kernel · train.ipynb",
                "  !       3 GiB  270000  ann     3 d  orphaned kernel of old.ipynb: its Jupyter",
                "                                        server (pid 3990) is gone",
                "  !       1 GiB     300  bob   5 min  python a.py · left over",
                "    unavailable      30  carl   30 s  vllm …",
                "  unavailable: WSL 2 does not tell",
                "→ `kill 270000` ends what nobody seems to use any more: 3 GiB",
                "→ what others left over is theirs to end: ask bob",
            ],
        );
    }

    #[test]
    fn what_nothing_is_known_of_says_so() {
        let unattributed = DeviceProcesses {
            unattributed: Some(Bytes::gib(2)),
            ..device(vec![GpuProcess {
                age: None,
                user: None,
                ..member(7, Bytes::mib(1).into(), ProcessKind::Gone, "", "has ended")
            }])
        };
        check(
            unattributed,
            &[
                "cuda:0  Tesla T4 · 10 GiB of 15 GiB used",
                "    memory  pid  user  age  what it is",
                "  !  1 MiB    7  –       –  has ended",
                "     2 GiB    –  –       –  used by what the driver does not list here",
                "→ what has ended is held by a process that it started, or by its parent:",
                "  `fuser -v /dev/nvidia*` as root tells which",
            ],
        );
        let unlisted = DeviceProcesses {
            unlisted: Some("no NVIDIA driver on this machine".to_owned()),
            used: None,
            ..device(Vec::new())
        };
        check(
            unlisted,
            &[
                "cuda:0  Tesla T4",
                "  its processes are not known: no NVIDIA driver on this machine",
            ],
        );
        check(
            device(Vec::new()),
            &[
                "cuda:0  Tesla T4 · 10 GiB of 15 GiB used",
                "  no process uses it",
            ],
        );
        assert_eq!(
            gpu_process_table(&GpuProcesses::default(), 80),
            "no GPU is read: `%gpumem status` says why"
        );
    }
}
