//! Families of processes in a line each: `pid parent facts… command`.

use super::*;

/// `20 10 session=9 server=10 python train.py`: a process as the system tells of it.
///
/// Facts: `session`, `group`, `server`, `notebook`, `user`, `name`, `zombie`, `gpu`; `20 gone` and
/// `20 hidden` are processes without details.
fn sight(line: &str) -> (u32, ProcessLookup) {
    let mut words = line.split_ascii_whitespace().peekable();
    let pid: u32 = words.next().unwrap().parse().unwrap();
    let parent = words.next().unwrap();
    match parent {
        "gone" => return (pid, ProcessLookup::Gone),
        "hidden" => return (pid, ProcessLookup::Hidden),
        _ => {}
    }
    let mut facts = ProcessFacts {
        parent: Some(parent.parse().unwrap()),
        session: Some(pid),
        group: Some(pid),
        user: Some("ann".to_owned()),
        ..ProcessFacts::default()
    };
    while let Some((name, value)) = words.peek().and_then(|it| it.split_once('=')) {
        let (text, number) = (Some(value.to_owned()), value.parse().ok());
        match name {
            "session" => facts.session = number,
            "group" => facts.group = number,
            "server" => facts.server_pid = number,
            "notebook" => facts.session_name = text,
            "user" => facts.user = text,
            "name" => value.clone_into(&mut facts.name),
            "zombie" => facts.is_zombie = true,
            "gpu" => facts.has_gpu_open = true,
            other => panic!("{other} is no fact"),
        }
        words.next();
    }
    facts.command = words.map(ToOwned::to_owned).collect();
    (pid, ProcessLookup::Found(Box::new(facts)))
}

/// Process `pid` as process 5 of this family sees it.
fn table(family: &str, pid: u32) -> ProcessTable {
    let common = "1 0 name=systemd /sbin/init\n3 1 name=zsh zsh\n5 3 session=3 ipython";
    let lines = common.lines().chain(family.lines());
    let lines = lines.filter(|line| !line.trim().is_empty());
    ProcessTable {
        own_pid: 5,
        devices: vec![Listing {
            device: "cuda:0".to_owned(),
            name: "Tesla T4".to_owned(),
            used: None,
            capacity: None,
            processes: Ok(vec![(pid, Bytes::mib(100).into())]),
        }],
        processes: lines.map(sight).collect(),
        are_ids_ours: true,
        notebooks: BTreeMap::from([("a".to_owned(), "/srv/books/train.ipynb".to_owned())]),
        servers: vec![Server {
            pid: 10,
            url: "http://localhost:8888/".to_owned(),
            root: "/srv/books".to_owned(),
        }],
        home: Some("/srv".to_owned()),
    }
}

#[track_caller]
fn check_seen(table: &ProcessTable, kind: ProcessKind, words: &str) {
    let found = gpu_processes(table);
    let member = &found.devices[0].members[0];
    assert_eq!((member.kind, member.words.as_str()), (kind, words));
}

/// Checks the process of the family's last line.
#[track_caller]
fn check(family: &str, kind: ProcessKind, words: &str) {
    let last = family.trim_end().lines().last().unwrap();
    let (pid, _) = sight(last);
    check_seen(&table(family, pid), kind, words);
}

const KERNEL: &str = "python -m ipykernel_launcher -f /run/kernel-a.json";

#[test]
fn this_process_and_its_children_are_known() {
    check("5 3 ipython", ProcessKind::Own, "this process");
    check(
        &format!("5 3 {KERNEL}"),
        ProcessKind::Own,
        "this kernel · ~/books/train.ipynb",
    );
    check(
        "20 5 python serve.py",
        ProcessKind::Child,
        "child of this process · python serve.py",
    );
    check(
        "20 5 sh\n21 20 nvcc",
        ProcessKind::Child,
        "child of this process · nvcc",
    );
    // A forked loader has the kernel's command line.
    check(
        &format!("5 3 {KERNEL}\n20 5 session=5 {KERNEL}"),
        ProcessKind::Child,
        "child of this kernel",
    );
}

#[test]
fn a_kernel_has_its_notebook_s_name() {
    let kernel = |id: &str| {
        format!(
            "10 1 jupyter-lab\n20 10 server=10 python -m ipykernel_launcher -f kernel-{id}.json"
        )
    };
    check(&kernel("a"), ProcessKind::Kernel, "kernel of train.ipynb");
    check(
        &kernel("b"),
        ProcessKind::Kernel,
        "kernel · started by jupyter-lab",
    );
    check(
        "10 1 jupyter-lab\n20 10 server=10 notebook=/srv/x.ipynb ipykernel_launcher --f=kernel-b.json",
        ProcessKind::Kernel,
        "kernel of ~/x.ipynb",
    );
    check(
        &format!(
            "{}\n30 20 notebook=/srv/books/x.ipynb server=10 python fit.py",
            kernel("b")
        ),
        ProcessKind::KernelsChild,
        "child of the kernel of x.ipynb · python fit.py",
    );
    check(
        &format!("10 1 jupyter-lab\n20 10 {KERNEL}\n30 20 session=20 {KERNEL}"),
        ProcessKind::KernelsChild,
        "child of the kernel of ~/books/train.ipynb",
    );
}

#[test]
fn a_kernel_whose_server_is_gone_is_orphaned() {
    check(
        &format!("20 1 server=10 {KERNEL}"),
        ProcessKind::OrphanedKernel,
        "orphaned kernel of train.ipynb: its Jupyter server (pid 10) is gone",
    );
    // Another process has the server's number now.
    check(
        &format!("10 3 vim\n20 1 server=10 {KERNEL}"),
        ProcessKind::OrphanedKernel,
        "orphaned kernel of train.ipynb: its Jupyter server (pid 10) is gone",
    );
    check(
        &format!("20 1 {KERNEL}"),
        ProcessKind::OrphanedKernel,
        "orphaned kernel of ~/books/train.ipynb: what started it is gone",
    );
}

#[test]
fn what_starts_a_kernel_by_its_file_is_not_the_kernel() {
    let starter = "10 3 jupyter kernel --KernelManager.connection_file=/run/kernel-a.json";
    check(
        &format!("{starter}\n20 10 server=10 {KERNEL}"),
        ProcessKind::Kernel,
        "kernel of train.ipynb",
    );
}

#[test]
fn a_kernel_is_no_orphan_where_that_is_not_sure() {
    // A wrapper stands between it and its server.
    check(
        &format!("10 1 jupyter-lab\n15 10 bash run.sh\n20 15 session=15 server=10 {KERNEL}"),
        ProcessKind::Kernel,
        "kernel of train.ipynb",
    );
    // The server is the container's first process.
    check(
        &format!("1 0 name=jupyter-lab python /opt/bin/jupyter-lab\n20 1 server=1 {KERNEL}"),
        ProcessKind::Kernel,
        "kernel of ~/books/train.ipynb",
    );
    check(
        &format!("1 0 name=python python main.py\n20 1 {KERNEL}"),
        ProcessKind::Kernel,
        "kernel of ~/books/train.ipynb",
    );
    // Its ancestors are hidden.
    check(
        &format!("15 hidden\n20 15 server=10 {KERNEL}"),
        ProcessKind::Kernel,
        "kernel of train.ipynb",
    );
}

#[test]
fn what_outlived_its_parent_is_left_over() {
    check(
        &format!("20 gone\n30 1 session=20 server=10 {KERNEL}"),
        ProcessKind::LeftOver,
        "left over by the kernel of train.ipynb: what started it is gone",
    );
    let spawned = "python -c from multiprocessing.spawn import spawn_main";
    check(
        &format!("30 1 {spawned}"),
        ProcessKind::LeftOver,
        "python -c … · left over: what started it is gone",
    );
    check(
        &format!("20 3 python main.py\n30 20 {spawned}"),
        ProcessKind::Process,
        "python -c …",
    );
    check(
        "30 1 name=pt_data_worker python main.py",
        ProcessKind::LeftOver,
        "python main.py · left over: what started it is gone",
    );
    check(
        "20 gone\n30 1 group=20 python main.py",
        ProcessKind::LeftOver,
        "python main.py · left over: what started it is gone",
    );
    // Sent to the background on purpose: it leads its group.
    check(
        "30 1 group=30 python main.py",
        ProcessKind::Process,
        "python main.py",
    );
}

#[test]
fn ended_processes_differ_from_hidden_ones() {
    check(
        "20 3 zombie=1 name=python",
        ProcessKind::Zombie,
        "python · has ended, but its parent (pid 3) has not taken note",
    );
    check(
        "20 gone",
        ProcessKind::Gone,
        "has ended: there is no process 20, but the driver still lists it",
    );
    check(
        "20 hidden",
        ProcessKind::Hidden,
        "of another user, hidden by this system",
    );
    check(
        "21 3 sh\n20 3 user=bob vllm serve org/model",
        ProcessKind::Process,
        "vllm …",
    );
}

#[test]
fn ids_of_another_machine_are_not_looked_up() {
    let from_container = |family: &str| ProcessTable {
        are_ids_ours: false,
        ..table(family, 20)
    };
    let words = "outside of this container: its id means nothing here";
    check_seen(
        &from_container("20 3 python train.py"),
        ProcessKind::Outside,
        words,
    );
    check_seen(&from_container("20 gone"), ProcessKind::Outside, words);
    check_seen(
        &from_container("20 3 gpu=1 python train.py"),
        ProcessKind::Process,
        "python train.py",
    );
    let unnamed = "a process that the driver does not name here";
    check_seen(&table("", 0), ProcessKind::Outside, unnamed);
}

#[test]
fn an_orphan_s_server_is_not_named() {
    let server = |family: &str| {
        gpu_processes(&table(family, 20)).devices[0].members[0]
            .server
            .clone()
    };
    let url = Some("http://localhost:8888/".to_owned());
    assert_eq!(
        server(&format!("10 1 jupyter-lab\n20 10 server=10 {KERNEL}")),
        url
    );
    assert_eq!(server(&format!("20 1 server=10 {KERNEL}")), None);
}

#[test]
fn parents_in_a_ring_are_not_followed_for_ever() {
    check(
        "20 21 python a.py\n21 20 python b.py",
        ProcessKind::Process,
        "python b.py",
    );
}

#[test]
fn much_memory_without_a_listed_process_is_shown() {
    let unattributed = |used| {
        let mut table = table("20 3 python a.py", 20);
        table.devices[0].used = Some(Bytes::mib(used));
        table.devices[0].capacity = Some(Bytes::gib(10));
        gpu_processes(&table).devices[0].unattributed
    };
    assert_eq!(unattributed(150), None);
    assert_eq!(unattributed(300), Some(Bytes::mib(200)));
}

#[test]
fn this_process_comes_first_then_its_children_then_the_largest() {
    let mut table = table("20 5 python a.py\n30 3 python b.py\n31 3 python c.py", 20);
    let used = [(31, 9), (20, 1), (30, 10), (5, 2)];
    table.devices[0].processes = Ok(used.map(|(pid, n)| (pid, Bytes::mib(n).into())).to_vec());
    let found = gpu_processes(&table);
    let pids: Vec<u32> = found.devices[0].members.iter().map(|it| it.pid).collect();
    assert_eq!(pids, [5, 20, 30, 31]);
}
