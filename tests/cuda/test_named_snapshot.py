"""torch's own snapshot with what holds each block: read by torch's viewer, and by gpumem."""

from __future__ import annotations

import gc
import json
import pickle
import sys
import textwrap
from pathlib import Path
from typing import Any

import gpumem
import pytest
from IPython.core.error import UsageError

from tests.support.in_process import forked_from, in_process

from .notebook import configure, empty, machine, names, printed, run, shell, started, trace

FILE = Path("named.pickle")
NO_OBJECT = "no Python object: a library, a backward pass under way, or C++"


def setting(name: str, value: str) -> None:
    run(f"%config GpuMem.{name} = {value!r}")


def blocks(snapshot: Any) -> list[Any]:
    return [it for one in snapshot["segments"] for it in one["blocks"]]


def saved(path: Path = FILE) -> Any:
    return pickle.loads(path.read_bytes())  # noqa: S301 (torch wrote it)


def named() -> dict[int, str]:
    """Write a snapshot, and return the label of each live block by its address."""
    printed(f"%gpumem snapshot {FILE}")
    return {it["address"]: label(it) for it in blocks(saved()) if it["state"] != "inactive"}


def label(block: Any) -> str:
    frames = block["frames"]
    if frames and frames[0]["filename"] == "held by":
        [frame] = frames
        assert frame["line"] == 0, block
        assert "user_metadata" not in block, block
        return str(frame["name"])
    return str(block.get("user_metadata", "").splitlines()[-1].removeprefix("held by "))


def address(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def is_recording() -> bool:
    return bool(sys.modules["torch"]._C._cuda_isHistoryEnabled())


def n_events() -> int:
    """Return how many events torch's own history has."""
    return len(sys.modules["torch"].cuda.memory._snapshot()["device_traces"][0])


def train() -> None:
    """Train a model, and keep losses, a gradient and a view."""
    run("""
    model = torch.nn.Sequential(torch.nn.Linear(300, 700), torch.nn.ReLU()).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for _ in range(3):
        out = model(torch.ones(64, 300, device="cuda"))
        losses.append((out * out).sum())
    losses[0].backward(retain_graph=True)
    optimizer.step()
    view = kept[0][3:5]
    del out, _
    """)


@forked_from("torch")
def test_every_block_has_the_path_that_holds_it() -> None:
    torch = started()
    train()
    found = named()
    assert found, found
    paths = [name for name in found.values() if not name.startswith(("no Python", "a cuBLAS"))]
    assert len(paths) > 15, found
    for at, path in found.items():
        if path not in paths or "…" in path:
            continue
        # The path is Python: it leads to the block.
        value = eval(path, dict(names()))  # noqa: S307 (a path reads as Python)
        assert address(value) == at, (path, hex(at))
    assert found[address(names()["model"][0].weight)].startswith("model"), found
    assert any(path.startswith("losses[2].grad_fn") for path in paths), paths
    # A view is no other block than the tensor's.
    assert found[address(names()["view"])] in {"view", "kept[0]"}, found
    # Sums and states are torch's.
    bare, written = torch.cuda.memory._snapshot(), saved()

    def figures(snapshot: Any) -> list[Any]:
        return [(it["address"], it["size"], it["state"]) for it in blocks(snapshot)]

    assert figures(bare) == figures(written)
    assert all(not it["frames"] for it in blocks(written) if it["state"] == "inactive")
    assert set(written) == set(bare)


@forked_from("torch")
def test_where_stacks_were_recorded_they_stay() -> None:
    torch = started()
    torch.cuda.memory._record_memory_history(context="alloc", stacks="python")
    run("losses = [torch.empty(1 << 20, device='cuda') for _ in range(3)]")
    tells = hasattr(torch.cuda.memory, "_set_memory_metadata")
    if tells:
        torch.cuda.memory._set_memory_metadata("step 7")
        run("more = torch.empty(1 << 20, device='cuda')")
        torch.cuda.memory._set_memory_metadata("")
    run("gone = torch.empty(1 << 20, device='cuda')\ndel gone")
    named()
    at = {address(it): f"losses[{idx}]" for idx, it in enumerate(names()["losses"])}
    written = saved()
    for block in blocks(written):
        if block["address"] in at and block["state"] != "inactive":
            assert block["user_metadata"] == f"held by {at[block['address']]}", block
            assert all(it["filename"] != "held by" for it in block["frames"]), block
        elif block["address"] == address(names()["kept"][0]):
            # Allocated before the history began.
            assert [it["name"] for it in block["frames"]] == ["kept[0]"], block
    events = written["device_traces"][0]
    allocs = {it["addr"]: it for it in events if it["action"] == "alloc"}
    for where, name in at.items():
        assert allocs[where]["user_metadata"] == f"held by {name}", allocs[where]
    if tells:
        own = allocs[address(names()["more"])]
        assert own["user_metadata"] == "step 7\nheld by more", own
    labelled = [it for it in events if "held by" in it.get("user_metadata", "")]
    assert len(labelled) == 3 + tells, labelled
    assert is_recording()


@forked_from("torch")
def test_why_names_the_allocating_line() -> None:
    memory = started().cuda.memory
    memory._record_memory_history(context="alloc", stacks="python")
    run("n = 3\nlosses = [torch.empty(1 << 20, device='cuda') for _ in range(n)]")
    count = shell().execution_count - 1
    tells = hasattr(memory, "_allocation_traceback")
    line = f"In [{count}], line 2"
    assert f" · allocated in {line}" in gpumem.holders().text("losses", width=99) or not tells
    [found] = [it for it in gpumem.holders() if it.name == "losses"]
    assert found.allocated_in == (line if tells else None), found
    memory._record_memory_history(None)
    [found] = [it for it in gpumem.holders() if it.name == "losses"]
    assert found.allocated_in is None, found


@forked_from("torch")
def test_torchs_own_viewer_and_gpumem_read_it() -> None:
    torch = started()
    from torch.cuda import _memory_viz

    run("kept = [torch.empty(100, 1000, device='cuda')]")
    train()
    named()
    written = saved()
    for view in (_memory_viz.segments, _memory_viz.memory):
        text = view(written, format_flamegraph=str)
        assert "held by:0:losses[2].grad_fn" in text, text
        assert "held by:0:view 400000" in text, text
    assert "segments" in _memory_viz.segsum(written)
    _memory_viz.trace(written)
    for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert "snapshot.pickle" in plot(written)
    shown = gpumem.load(FILE).text()
    assert "allocated at the snapshot, held by" in shown, shown
    assert "by line" not in shown, shown
    [device] = json.loads(gpumem.load(FILE).to_json())["devices"]
    listed = {it["name"]: it["bytes"] for it in device["holders"]}
    assert listed["view"] == 400384, listed
    assert sum(listed.values()) == torch.cuda.memory_allocated(), listed
    assert any(name.startswith("losses[0 … 2].grad_fn") for name in listed), listed
    shell().run_line_magic("gpumem_report", str(FILE))
    assert "model[0].weight" in str(shell().display_pub.outputs[-1])


@forked_from("torch")
def test_what_no_object_holds_is_not_guessed() -> None:
    torch = started()
    pointer = torch.cuda.caching_allocator_alloc(3 << 20)
    workspace = torch.cuda.caching_allocator_alloc(8_519_680)
    run("late = torch.empty(5 << 20, dtype=torch.uint8, device='cuda')")
    at = address(names()["late"])
    run("cycle = [torch.empty(7 << 20, dtype=torch.uint8, device='cuda')]\ncycle.append(cycle)")
    in_cycle = address(names()["cycle"][0])
    gc.disable()
    run("del cycle")
    names()["late"].record_stream(torch.cuda.Stream())
    run("del late")
    found = named()
    assert found[pointer] == NO_OBJECT, found
    assert found[workspace] == "a cuBLAS workspace, by its size", found
    assert found[at] == "a stream that still uses it, though it was freed", found
    assert "a cycle that `gc.collect()` frees" in found[in_cycle], found


@forked_from("torch")
def test_two_cards_and_expandable_segments() -> None:
    machine().cards(2)
    configure("expandable_segments:True")
    started()
    run("pair = [torch.empty(9 << 20, device=f'cuda:{idx}') for idx in range(2)]")
    found = named()
    for idx in range(2):
        assert found[address(names()["pair"][idx])] == f"pair[{idx}]", found


@in_process
def test_a_clear_line_says_what_is_missing() -> None:
    def refused(cell: str) -> str:
        with pytest.raises(UsageError) as error:
            shell().run_line_magic("gpumem", cell)
        return str(error.value)

    assert "torch is not imported" in refused("snapshot a.pickle")
    import torch

    said = refused("snapshot a.pickle")
    assert "has not started CUDA" in said, said
    assert not torch.cuda.is_initialized()
    names()["one"] = torch.empty(1, device="cuda")
    assert "needs the name of one file" in refused("snapshot")
    assert "No such file or directory" in refused("snapshot none/a.pickle")
    assert not list(Path().glob("*.pickle"))
    written = gpumem.snapshot("b.pickle")
    assert (written.path, written.n_blocks, written.note) == (Path("b.pickle"), 1, None), written
    assert str(written).startswith("wrote b.pickle: 1 of 1 blocks"), written


@in_process
def test_an_allocator_without_snapshots_is_named() -> None:
    configure("backend:cudaMallocAsync")
    started()
    with pytest.raises(gpumem.GpuMemError, match="cudaMallocAsync, which has no memory snapshot"):
        gpumem.snapshot("a.pickle")


STEP = f"def step():\n    batch = {empty(512)}\n    return {empty(9000)}"


def fails(cell: str = "step()") -> list[str]:
    """Run a cell in which memory runs out; return all lines so far that name a file."""
    printed(cell)
    return [line for text in shell().lines for line in text.splitlines() if "pickle" in line]


@forked_from("torch")
def test_memory_that_runs_out_is_written() -> None:
    started()
    run(STEP)
    assert fails() == []
    folder = Path("ooms").absolute()
    setting("snapshot_on_oom", "ooms")
    setting("flight_recorder", "8MiB")
    lines = fails("step()")
    [line] = lines
    assert "out-of-memory.pickle: memory as it ran out" in line, lines
    written = saved(folder / "out-of-memory.pickle")
    batch = [it for it in blocks(written) if it["requested_size"] == 512 << 20]
    labels = [label(it) for it in batch if it["state"] == "active_allocated"]
    # Of the error before this one, and of the function that runs.
    assert any("batch" in it for it in labels), labels
    [*_, event] = [it for it in written["device_traces"][0] if it["action"] == "oom"]
    assert event["size"] == 9000 << 20, event
    assert event["frames"], event
    read = gpumem.load(folder / "out-of-memory.pickle").text(200)
    assert "out of memory: 8.79 GiB wanted" in read, read
    assert "batch" in read, read
    # Nothing is replaced, and an error that is caught counts, once for each run.
    run("from contextlib import suppress")
    fails("for _ in range(3):\n    with suppress(RuntimeError):\n        step()")
    assert sorted(it.name for it in folder.iterdir()) == [
        "out-of-memory-2.pickle",
        "out-of-memory.pickle",
    ]
    setting("snapshot_on_oom", str(folder / "mine.pickle"))
    fails()
    assert (folder / "mine.pickle").exists()
    # A failure of ours is said below the cell.
    setting("snapshot_on_oom", str(folder / "mine.pickle" / "not a folder"))
    line = fails()[-1]
    assert "no memory snapshot:" in line, line
    assert "Not a directory" in line, line


@forked_from("torch")
def test_a_session_writes_no_more_than_eight() -> None:
    started()
    run(STEP)
    setting("snapshot_on_oom", ".")
    for _ in range(9):
        lines = fails()
    assert "this session has written 8" in str(shell().display_pub.outputs[-1]), lines
    assert len(list(Path().glob("*.pickle"))) == 8


@in_process
def test_a_cell_that_starts_cuda_and_fails() -> None:
    run("%gpumem on\n")
    run("%config GpuMem.snapshot_on_oom = 'first.pickle'")
    assert run("import torch\ntorch.empty(9 << 40, device='cuda')") == "OutOfMemoryError"
    assert Path("first.pickle").exists()


@forked_from("torch")
def test_the_flight_recorder_stands_by_while_cells_are_recorded() -> None:
    torch = started()
    assert not is_recording()
    setting("flight_recorder", "1MiB")
    seen: list[bool] = []
    names()["seen"] = seen
    names()["is_recording"] = is_recording
    run("seen.append(is_recording())")
    assert (seen.pop(), is_recording()) == (True, True)
    run("for _ in range(5000):\n    torch.empty(1000, device='cuda')")
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    assert 400 < len(events) <= 512, len(events)
    assert events[-1]["frames"], events[-1]
    # `--trace` has a history of its own, exact from the run's begin.
    assert run("%%gpumem --trace\ntraced = torch.empty(3 << 20, device='cuda')") is None
    assert trace()["peak"]["low_bytes"] == trace()["peak"]["high_bytes"]
    run("seen.append(is_recording())")
    assert seen.pop()
    run("%gpumem off")
    assert not is_recording()
    run("%%gpumem\nseen.append(is_recording())")
    assert (seen.pop(), is_recording()) == (True, False)
    run("%gpumem on")
    run("x = 1")
    assert is_recording()
    setting("flight_recorder", "")
    assert not is_recording()
    setting("flight_recorder", "1MiB")
    run("x = 1")
    assert is_recording()
    shell().run_line_magic("unload_ext", "gpumem")
    assert not is_recording()


@forked_from("torch")
def test_a_history_of_the_users_is_left_alone() -> None:
    torch = started()
    record = torch.cuda.memory._record_memory_history

    record(max_entries=50)
    setting("flight_recorder", "1MiB")
    run("for _ in range(100):\n    torch.empty(1000, device='cuda')")
    run("%gpumem off")
    assert (is_recording(), n_events()) == (True, 50)
    record(None)
    run("%gpumem on")
    run("x = 1")
    assert (is_recording(), n_events()) == (True, 0)
    # In a cell: ours makes room for it.
    run(
        "torch.cuda.memory._record_memory_history(max_entries=60)\n"
        "for _ in range(100):\n    torch.empty(1000, device='cuda')"
    )
    run("x = 1")
    assert n_events() == 60
    run("%gpumem off")
    setting("flight_recorder", "")
    shell().run_line_magic("unload_ext", "gpumem")
    assert (is_recording(), n_events()) == (True, 60)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python does not tell of calls")
@forked_from("torch")
def test_a_history_that_a_library_begins_is_left_alone() -> None:
    library = """
        import torch
        def begin():
            torch.cuda.memory._record_memory_history(max_entries=70)
        def end():
            torch.cuda.memory._record_memory_history(None)
    """
    Path("library.py").write_text(textwrap.dedent(library), encoding="utf-8")
    started()
    setting("flight_recorder", "1MiB")
    run("import library")
    run("x = 1")
    assert is_recording()
    run("library.begin()")
    run("x = 2")
    run("%gpumem off")
    assert is_recording()
    setting("flight_recorder", "")
    assert is_recording()
    setting("flight_recorder", "1MiB")
    run("%gpumem on")
    run("library.end()")
    assert not is_recording()
    run("x = 3")
    assert is_recording()
    setting("flight_recorder", "")
    assert not is_recording()
    monitoring = vars(sys)["monitoring"]
    assert all(monitoring.get_tool(it) is None for it in range(6))
