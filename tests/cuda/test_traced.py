"""What `--trace` leaves alone in torch, what it cannot trace, and what it makes of labels."""

from __future__ import annotations

from typing import Any

from tests.support.in_process import forked_from

from .notebook import MIB, configure, empty, last, rows, run, shell, started, trace

TRACED = f"%%gpumem --trace\na = {empty(64)}\nb = {empty(8)}\ndel a"


def said() -> str:
    """Return gpumem's line below the latest cell."""
    return shell().lines[-1]


@forked_from("torch")
def test_earlier_allocations_are_listed_apart() -> None:
    torch = started()
    run(f"old, other = {empty(100)}, {empty(30)}")
    before = torch.cuda.memory_allocated()
    run(f"{TRACED}\ndel old")
    found = trace()
    # Nothing of C++, and nothing of the kernel around the cell.
    assert [it["frames"] for it in found["stacks"]] == [["line 3"], ["line 2"]], found["stacks"]
    assert found["peak"]["from_before_bytes"] == before, found["peak"]
    assert found["total"]["retained_bytes"] == 8 * MIB, found["total"]
    assert (last()["peak_bytes"], last()["peak_exact"]) == (before + 72 * MIB, True), last()


@forked_from("torch")
def test_rounding_of_the_users_own_leaves_the_peak_in_bounds() -> None:
    configure("roundup_power2_divisions:4")
    torch = started()
    sized = "torch.empty({}, dtype=torch.uint8, device='cuda')".format
    run(f"%%gpumem --trace\na = {sized(70_000_001)}\nb = {sized(9_000_001)}\ndel a")
    row, truth = last(), torch.cuda.max_memory_allocated()
    low, high = row["peak_bytes"], row["peak_high_bytes"]
    assert low <= truth <= high, (row, truth)
    assert not row["peak_exact"] or low == truth, (row, truth)


@forked_from("torch")
def test_what_cannot_be_traced_is_said_and_nothing_stays_on() -> None:
    torch = started()
    memory, snapshot = torch.cuda.memory, torch.cuda.memory._snapshot

    def still_holds(*_: object, **__: object) -> dict[str, Any]:
        return {**snapshot(), "device_traces": [[{"action": "alloc"}]]}

    def broken(*_: object, **__: object) -> dict[str, Any]:
        if torch._C._cuda_isHistoryEnabled():
            raise RuntimeError("the snapshot broke")
        return dict(snapshot())

    for instead, words in (
        (still_holds, "! torch is not traced: it still holds a memory history"),
        (broken, "! the trace could not be read: RuntimeError: the snapshot broke"),
    ):
        memory._snapshot = instead
        assert run(f"{TRACED}\nb") is None
        assert words in said(), said()
        assert not torch._C._cuda_isHistoryEnabled()
    memory._snapshot = snapshot
    for leaving in ("%unload_ext gpumem", "%gpumem reset"):
        run(f"{TRACED}\n{leaving}")
        assert not torch._C._cuda_isHistoryEnabled(), leaving
        run("%reload_ext gpumem")
    run("%%gpumem --trace\ntorch.cuda.memory._record_memory_history('all')")
    assert "this cell sets its memory history itself" in said(), said()
    assert torch._C._cuda_isHistoryEnabled()
    del torch._C._cuda_isHistoryEnabled
    run(TRACED)
    assert "2.1 and later do" in said(), said()


@forked_from("torch")
def test_labels_become_runs_with_their_own_peaks() -> None:
    started()
    run(f"""
    %%gpumem --trace
    import gpumem
    label = torch.profiler.record_function
    for _ in range(2):
        with label("step"):
            with label("forward"):
                a = {empty(64)}
            kept.append({empty(8)})
            del a
    with gpumem.record("block"), label("nested"):
        pass
    label("unfinished").__enter__()
    """)

    shown = [
        (it["label"], it["parent"], it["kept_bytes"] // MIB, it["peak_bytes"] // MIB)
        for it in rows()
    ]
    assert shown == [
        (None, None, 16, 80),
        ("block", 0, 0, 16),
        ("step", 0, 8, 72),
        ("forward", 2, 64, 64),
        ("step", 0, 8, 80),
        ("forward", 4, 64, 72),
        ("nested", 1, 0, 16),
    ], shown
    assert all(it["peak_exact"] for it in rows()), rows()


@forked_from("torch")
def test_modules_are_named_by_the_class_with_forward() -> None:
    started()
    run("""
    class Nosy(type):
        def __getattribute__(cls, name):
            raise AssertionError("code of the user ran: " + name)
    class Linear(torch.nn.Module):
        def forward(self):
            return torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
    class Net(torch.nn.Module):
        def forward(self):
            kept.append(torch.empty(2 << 20, dtype=torch.uint8, device="cuda"))
            return Linear.forward(self)
    class Odd(torch.nn.Module, metaclass=Nosy):
        def forward(self):
            pass
    class Free:
        def forward(self):
            return torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    """)
    run("%%gpumem --trace\na = Net().forward()\nb = Free().forward()")
    modules = {it["path"]: it["retained_bytes"] // MIB for it in trace()["modules"]}
    assert modules == {"Net › Linear": 8, "Net": 2}, modules  # noqa: RUF001 (as people see a path)
