"""Who is on the GPUs: real processes, on a driver that `tests/played-cuda` plays."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import gpumem
from gpumem import sim
from jupyter_client.manager import KernelManager

from tests.python.machine import A100, MIG, T4, Machine, needs_driver

if TYPE_CHECKING:
    from pathlib import Path

    from tests.python.conftest import Shell

# Every process of these waits until the script that started it ends, or for nothing.
ROLES = """
import os, subprocess, sys
role, *words = sys.argv[1:]

def start(*words, **options):
    words = [sys.executable, __file__, *words]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **options)
    # Without its end: whoever passes it on writes nothing more behind that.
    return started.stdout.readline().rstrip()

if role == "launcher":
    # Ends at once, so that what it starts is no child of the test's.
    print(start("server", words[0]))
elif role == "server":
    words = os.environ["KERNEL"].split()
    env = {**os.environ, "JPY_PARENT_PID": str(os.getpid())}
    print(os.getpid(), start("kernel", *words, env=env, start_new_session=True), flush=True)
    sys.argv[2] == "waits" and sys.stdin.read()
elif role == "kernel":
    kernel_then, *_ = words
    worker = os.fork()
    if worker:
        print(os.getpid(), worker, flush=True)
    if worker == 0 or kernel_then == "waits":
        sys.stdin.read()
else:
    sys.stdin.read()
"""

# What a script finds beside what `machine` gives it.
FAMILY = f"""
from tests.support.programs import until
here = Path(os.environ["PLAYED_CUDA_STATE"]).parent
os.environ["JUPYTER_RUNTIME_DIR"] = str(here)
(here / "roles.py").write_text({ROLES!r})
started = []

def child(*words, **env):
    words = [sys.executable, str(here / "roles.py"), *words]
    started.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True, env={{**os.environ, **env}}))
    return started[-1]

def parent(pid):
    return int(Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[1])

def family(server, kernel, *words, **env):
    "Start a server, its kernel and the kernel's worker; return their ids."
    env["KERNEL"] = " ".join((kernel, *words))
    found = child("launcher", server, **env).stdout.readline().split()
    ids = [int(it) for it in found]
    started[-1].wait()
    if server == "ends":
        until(lambda: parent(ids[1]) != ids[0])
    if kernel == "ends":
        until(lambda: parent(ids[2]) != ids[1])
    return ids

def leave_word(kernel, notebook):
    text = json.dumps({{"key": "secret", "jupyter_session": notebook}})
    (here / f"kernel-{{kernel}}.json").write_text(text)

def listed(*pids):
    put(gpu0__computing=" ".join(f"{{pid}}:{{100 - n}}" for n, pid in enumerate(("self", *pids))))

def seen(*fields):
    return [[getattr(it, field) for field in fields] for it in gpumem.who()][1:]
"""


def check(machine: Machine, script: str, *expected: list[Any]) -> None:
    """Compare what that script tells of the other processes on a machine with one GPU."""
    assert machine.ask(T4, f"{FAMILY}\n{script}") == list(expected)


@needs_driver
def test_this_process_its_children_and_others_are_apart(machine: Machine) -> None:
    script = """
listed(child("waits", "--token", "hush").pid, 1)
first = gpumem.who()[0]
assert first.pid == os.getpid() and first.kind == "own" and first.used_bytes == 100 << 20, first
assert first.user and first.age_nanos > 0 and first.words == "this process"
found = gpumem.who()
assert len(found) == 3 and found[1:] == list(found)[1:]
assert "hush" not in str(gpumem.who()) + repr(list(gpumem.who()))
tell(seen("kind", "device", "used_bytes", "why_unknown", "is_suspect"))
"""
    check(
        machine,
        script,
        ["child", "cuda:0", 99 << 20, None, False],
        ["process", "cuda:0", 98 << 20, None, False],
    )


@needs_driver
def test_a_kernel_and_its_worker_are_named_by_the_notebook(machine: Machine) -> None:
    script = """
leave_word("k1", "/data/books/old.ipynb")
server, kernel, worker = family("waits", "waits", "-f", str(here / "kernel-k1.json"))
info = {"pid": server, "url": "http://localhost:8888/", "root_dir": "/data", "token": "hush"}
(here / f"jpserver-{server}.json").write_text(json.dumps(info))
listed(kernel, worker)
assert "hush" not in repr(list(gpumem.who()))
tell(seen("kind", "kernel_id", "notebook", "server", "words"))
"""
    path, server = "/data/books/old.ipynb", "http://localhost:8888/"
    check(
        machine,
        script,
        ["kernel", "k1", path, server, "kernel of books/old.ipynb"],
        ["kernels_child", "k1", path, server, "child of the kernel of books/old.ipynb"],
    )


@needs_driver
def test_a_notebook_is_known_by_the_environment_too(machine: Machine) -> None:
    script = """
_, kernel, _ = family("waits", "waits", "-f", "kernel-k2.json", JPY_SESSION_NAME="/data/a.ipynb")
listed(kernel)
tell(seen("kind", "kernel_id", "notebook", "server"))
"""
    check(machine, script, ["kernel", "k2", "/data/a.ipynb", None])


@needs_driver
def test_a_kernel_without_its_server_is_an_orphan(machine: Machine) -> None:
    script = """
leave_word("k1", "/data/old.ipynb")
server, kernel, worker = family("ends", "waits", "-f", "kernel-k1.json")
listed(kernel, worker)
found = gpumem.who()
assert [it.pid for it in found.suspects] == [kernel]
assert f"`kill {kernel}` ends what nobody seems to use any more: 99 MiB" in str(found)
tell([[*it[:2], it[2].replace(str(server), "N")] for it in seen("kind", "is_suspect", "words")])
"""
    words = "orphaned kernel of /data/old.ipynb: its Jupyter server (pid N) is gone"
    check(
        machine,
        script,
        ["orphaned_kernel", True, words],
        ["kernels_child", False, "child of the kernel of /data/old.ipynb"],
    )


@needs_driver
def test_a_worker_that_outlived_its_kernel_is_left_over(machine: Machine) -> None:
    script = """
leave_word("k1", "/data/old.ipynb")
_, _, worker = family("waits", "ends", "-f", "kernel-k1.json")
listed(worker)
tell(seen("kind", "is_suspect", "words"))
"""
    words = "left over by the kernel of /data/old.ipynb: what started it is gone"
    check(machine, script, ["left_over", True, words])


@needs_driver
def test_what_has_ended_is_marked(machine: Machine) -> None:
    script = """
ended = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
until(lambda: ") Z " in Path(f"/proc/{ended.pid}/stat").read_text())
listed(ended.pid, 4242424)
tell(seen("kind", "user", "command", "words"))
"""
    [zombie, gone] = machine.ask(T4, FAMILY + script)
    assert zombie[0] == "zombie"
    assert zombie[1]
    assert re.search(r"has ended, but its parent \(pid \d+\) has not taken note", zombie[3])
    words = "has ended: there is no process 4242424, but the driver still lists it"
    assert gone == ["gone", None, None, words]


@needs_driver
def test_one_that_ended_while_it_was_looked_for_is_no_remnant(machine: Machine) -> None:
    script = """
import threading
put(gpu0__computing="self:1 4242424:1", delay_millis=20)
levels()
n_calls_before = n_calls("nvmlDeviceGetMPSComputeRunningProcesses_v3")
def leave():
    until(lambda: n_calls("nvmlDeviceGetMPSComputeRunningProcesses_v3") > n_calls_before)
    put(gpu0__computing="self:1")
leaving = threading.Thread(target=leave)
leaving.start()
found = seen("kind")
leaving.join()
tell(found)
"""
    check(machine, script)


@needs_driver
def test_each_list_of_the_driver_counts_and_none_twice(machine: Machine) -> None:
    script = """
put(gpu0__computing="self:100 1:30", gpu0__drawing="1:30", gpu0__served=f"{os.getppid()}:20")
tell([it.used_bytes >> 20 for it in gpumem.who()])
"""
    assert machine.ask(T4, FAMILY + script) == [100, 30, 20]


@needs_driver
def test_an_unknown_figure_has_its_reason(machine: Machine) -> None:
    script = """
put(gpu0__computing="self:all 1:all")
tell(seen("used_bytes", "why_unknown"))
"""
    why = "the driver does not tell what a process uses, as without the right to see it"
    check(machine, script, [None, why])


@needs_driver
def test_every_device_that_is_shown_has_its_own_list(machine: Machine) -> None:
    state = {**T4, **A100, "cuda.order": "0,1", "gpu1.computing": "self:7", "gpu0.computing": ""}
    refused = {"gpu0.nvmlDeviceGetComputeRunningProcesses_v3": "no_permission"}
    script = """
start_cuda()
found = gpumem.who()
tell([[[it.device, it.used_bytes >> 20] for it in found], found.unlisted, found.unattributed_bytes])
"""
    expected = [[["cuda:1", 7]], {"cuda:0": "no permission to read it"}, {"cuda:1": 2041 << 20}]
    assert machine.ask({**state, **refused}, script) == expected


@needs_driver
def test_each_part_of_a_gpu_has_its_own_list(machine: Machine) -> None:
    lists = {"gpu0.mig0.computing": "self:300", "gpu0.mig2.computing": "self:200 1:100"}
    script = "tell([[it.device, it.kind, it.used_bytes >> 20] for it in gpumem.who()])"
    assert machine.ask({**MIG, **lists}, script) == [
        ["nvml:0.0", "own", 300],
        ["nvml:0.1", "own", 200],
        ["nvml:0.1", "process", 100],
    ]


@needs_driver
def test_the_magic_shows_a_table(machine: Machine) -> None:
    script = """
from IPython.core.displaypub import CapturingDisplayPublisher
ip = shell()
ip.display_pub = CapturingDisplayPublisher()
put(gpu0__computing=f"self:1000 {child('waits').pid}:24")
ip.run_line_magic("gpumem", "who")
tell(ip.display_pub.outputs[-1]["data"]["text/plain"].splitlines())
"""
    title, heading, own, child = machine.ask(T4, FAMILY + script)
    assert title == "cuda:0  Tesla T4 · 1 GiB of 15.6 GiB used"
    assert heading.split() == ["memory", "pid", "user", "age", "what", "it", "is"]
    assert re.fullmatch(r" +1000 MiB +\d+  \S+ +\d+ (s|min)  this process", own)
    assert re.fullmatch(r" +24 MiB .*  child of this process · \S+ roles.py waits", child)


@needs_driver
def test_a_driver_that_hangs_is_waited_for_a_moment_only(machine: Machine) -> None:
    script = """
levels()
put(nvmlDeviceGetComputeRunningProcesses_v3="hang")
tell(gpumem.who().unlisted)
"""
    assert machine.ask(T4, script) == {"cuda:0": "the driver does not answer"}


@needs_driver
def test_a_source_that_is_left_out_is_not_read(machine: Machine) -> None:
    script = """
start_cuda(0)
_gpumem.use_sources(["cuda"])
tell(gpumem.who().unlisted)
"""
    why = "left out by `%gpumem use`; `%gpumem use auto` reads every source that answers"
    assert machine.ask(T4, script) == {"cuda:0": why}


@needs_driver
def test_a_real_kernel_knows_its_notebook(machine: Machine, tmp_path: Path) -> None:
    lines = [f"{key} = {value}" for key, value in {**T4, "gpu0.computing": "self:1024"}.items()]
    machine.state_file.write_text("\n".join(lines), encoding="utf-8")
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(machine.libraries),
        "PLAYED_CUDA_STATE": str(machine.state_file),
        "JUPYTER_RUNTIME_DIR": str(tmp_path),
        "JPY_SESSION_NAME": str(tmp_path / "train.ipynb"),
    }
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=environment)
    try:
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        texts: list[str] = []

        def note(message: dict[str, Any]) -> None:
            if message["msg_type"] == "display_data":
                texts.append(message["content"]["data"]["text/plain"])

        cell = "%load_ext gpumem\n%gpumem who"
        client.execute_interactive(cell, timeout=60, output_hook=note)
        client.stop_channels()
    finally:
        manager.shutdown_kernel(now=True)
    shown = " ".join(texts[0].split())
    assert shown.endswith(f"this kernel · {tmp_path}/train.ipynb")


def test_a_simulated_device_is_this_process_s_own(shell: Shell) -> None:
    shell.run("%gpumem use sim")
    kept = sim.tensor(64 << 20)
    [process] = [it for it in gpumem.who() if it.device == "sim:0"]
    assert (process.kind, process.pid) == ("own", os.getpid())
    assert process.used_bytes is not None
    assert process.used_bytes >= kept.nbytes
    shell.run("%gpumem who")
    assert "this process" in shell.lines[-1]
