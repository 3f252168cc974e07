"""Out of memory: torch's message, the arguments of its observer, and the driver's levels."""

from __future__ import annotations

import os
import time
from typing import Any

import gpumem
import pytest

from tests.support.in_process import forked_from

from .notebook import MIB, check, empty, findings, held, last, machine, names, run, started


def found() -> Any:
    """Return the report's one finding about it."""
    [finding] = findings("out_of_memory")
    return finding


def by_kind() -> dict[str, int]:
    """Return what holders of each kind keep."""
    return {it.kind: it.n_bytes for it in gpumem.holders().roots if it.device == "cuda:0"}


def parts(finding: Any) -> dict[str, int]:
    return {it.name: it.n_bytes for it in finding.details.parts}


@forked_from("torch")
def test_every_figure_is_what_torch_and_the_driver_had() -> None:
    torch = started()
    seen: list[tuple[int, int, int, int]] = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *a: seen.append(a))
    run(f"kept.append({empty(3000)})\nkept.append({empty(700)})\ndel kept[-1]")
    assert run(f"x = {empty(6000)}") == "OutOfMemoryError"
    row = check()
    stats, (free, total) = torch.cuda.memory_stats(), torch.cuda.mem_get_info()
    oom = row["oom"]
    [(_, wanted, device_total, device_free)] = seen
    assert (row["status"], oom["framework"], oom["survived"]) == ("out_of_memory", "torch", False)
    assert oom["wanted_bytes"] == wanted == 6000 * MIB, (oom, seen)
    assert oom["total_bytes"] == device_total == total, (oom, seen)
    # The cache was flushed before it gave up: the driver still has that free.
    assert oom["free_bytes"] == device_free == free, (oom, seen, free)
    assert oom["allocated_bytes"] == stats["allocated_bytes.all.current"], oom
    assert oom["reserved_bytes"] == stats["reserved_bytes.all.current"], oom
    assert row["reserved_after_bytes"] == stats["reserved_bytes.all.current"]
    assert oom["message"].startswith("CUDA out of memory. Tried to allocate 5.86 GiB. GPU 0 has a")
    assert [(it["name"], it["used_bytes"]) for it in oom["holders"]] == [("kept", 3000 * MIB + 4)]

    finding = found()
    details = finding.details
    assert finding.device == "cuda:0"
    assert details.missing_bytes == 6000 * MIB - free, details
    shown = parts(finding)
    assert shown["tensors"] == stats["allocated_bytes.all.current"], shown
    assert shown["free"] == free, shown
    assert shown["context"] == 300 * MIB, shown
    assert "other_processes" not in shown, shown
    assert sum(shown.values()) == total, shown

    # The next cell runs, and the card says that it had enough later.
    run("del kept[1:]")
    assert run(f"x = {empty(6000)}") is None
    assert check()["kept_bytes"] == 6000 * MIB


@forked_from("torch")
def test_what_other_processes_hold_is_named() -> None:
    # They live while this test runs.
    one, other = os.getppid(), 1
    machine().others(0, {one: 2000, other: 500})
    torch = started()
    run(f"kept.append({empty(2000)})")
    assert run(f"x = {empty(4000)}") == "OutOfMemoryError"
    row = check()
    others = {it["pid"]: it["used_bytes"] for it in row["oom"]["others"]}
    assert f"Process {one} has 1.95 GiB memory in use" in row["oom"]["message"], row["oom"]
    assert others.keys() == {one, other}, others
    # The message rounds.
    assert abs(others[one] - 2000 * MIB) < 10 * MIB, others
    finding = found()
    shown = parts(finding)
    assert abs(shown["other_processes"] - 2500 * MIB) < 10 * MIB, shown
    assert abs(shown["context"] - 300 * MIB) < 10 * MIB, shown
    free, total = torch.cuda.mem_get_info()
    assert finding.details.free_bytes == free
    assert abs(sum(shown.values()) - total) < 30 * MIB, shown
    # Without them there would have been enough.
    assert any(str(one) in it for it in finding.suggestions), finding.suggestions


@forked_from("torch")
def test_one_that_is_caught_is_seen_by_the_observer() -> None:
    torch = started()
    run(f"kept.append({empty(2000)})")
    assert run(f"try:\n    x = {empty(7000)}\nexcept torch.OutOfMemoryError:\n    x = 0") is None
    row = check()
    free, total = torch.cuda.mem_get_info()
    assert (row["status"], row["oom"]["survived"]) == ("ok", True), row
    assert row["oom"]["wanted_bytes"] == 7000 * MIB
    assert (row["oom"]["free_bytes"], row["oom"]["total_bytes"]) == (free, total), row["oom"]
    assert row["oom"]["allocated_bytes"] == torch.cuda.memory_allocated()
    finding = found()
    assert finding.details.survived
    assert finding.severity == "warning"
    shown = parts(finding)
    assert shown["tensors"] == torch.cuda.memory_allocated(), shown


@forked_from("torch")
def test_the_inner_one_of_two_leads_to_the_outer() -> None:
    started()
    cell = """
    def attempt(n):
        return torch.empty(n << 20, dtype=torch.uint8, device="cuda")
    try:
        try:
            x = attempt(9000)
        except torch.OutOfMemoryError:
            x = attempt(10_000)
    except torch.OutOfMemoryError as error:
        raise RuntimeError("the step failed") from error
    """
    assert run(cell) == "RuntimeError"
    row = check()
    # The last is the one that ended it.
    assert row["status"] == "out_of_memory", row
    assert row["oom"]["wanted_bytes"] == 10_000 * MIB, row["oom"]
    assert "Tried to allocate 9.77 GiB" in row["oom"]["message"]
    finding = found()
    assert "2 times" in finding.detail, finding.detail


@forked_from("torch")
def test_a_smaller_batch_after_emptying_the_cache_goes_through() -> None:
    started()
    cell = """
    for n in (9000, 4500, 2250):
        try:
            batch = torch.empty(n << 20, dtype=torch.uint8, device="cuda")
            break
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
    """
    run(f"kept.append({empty(4000)})")
    assert run(cell) is None
    row = check()
    assert (row["status"], row["kept_bytes"]) == ("ok", 2250 * MIB), row
    assert row["oom"]["survived"]
    assert row["oom"]["wanted_bytes"] == 4500 * MIB
    finding = found()
    assert finding.details.survived
    assert "2 times" in finding.detail, finding.detail


@forked_from("torch")
def test_one_in_a_thread_belongs_to_the_cell_that_waits() -> None:
    started()
    cell = """
    from concurrent.futures import ThreadPoolExecutor
    def work():
        mine = torch.empty(1000 << 20, dtype=torch.uint8, device="cuda")
        return mine, torch.empty(9000 << 20, dtype=torch.uint8, device="cuda")
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(work).result()
    """
    assert run(cell) == "OutOfMemoryError"
    row = check()
    assert (row["status"], row["oom"]["wanted_bytes"]) == ("out_of_memory", 9000 * MIB), row
    # The frame of the thread keeps its tensor, through the error.
    assert row["kept_bytes"] == 1000 * MIB, row
    assert by_kind()["traceback"] == 1000 * MIB, by_kind()
    released = gpumem.release("traceback")
    assert released.freed == {"cuda:0": 1000 * MIB}, released
    # One that nobody waits for.
    run("""
    import threading
    def work():
        try:
            torch.empty(9500 << 20, dtype=torch.uint8, device='cuda')
        except torch.OutOfMemoryError:
            pass
    t = threading.Thread(target=work)
    t.start()
    t.join()
    """)
    row = check()
    assert (row["oom"]["survived"], row["oom"]["wanted_bytes"]) == (True, 9500 * MIB), row


@forked_from("torch")
def test_one_of_a_data_loader_s_worker_is_understood() -> None:
    started()
    run("""
    class Large(torch.utils.data.Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, idx):
            return torch.empty(1 << 56, dtype=torch.uint8)
    loader = torch.utils.data.DataLoader(Large(), num_workers=1)
    """)
    assert run("next(iter(loader))") == "RuntimeError"
    failed = [it for it in gpumem.report().runs if it["oom"]]
    found = {(it["status"], it["oom"]["wanted_bytes"]) for it in failed}
    assert found == {("out_of_memory", 1 << 56)}, failed
    # A worker that touches the card is refused by torch itself, and that is no such error.
    run("""
    class OnCard(Large):
        def __getitem__(self, idx):
            return torch.empty(10, device="cuda")
    """)
    assert run("next(iter(torch.utils.data.DataLoader(OnCard(), num_workers=1)))") == "RuntimeError"
    row = last()
    assert (row["status"], row["oom"]) == ("error", None), row


@forked_from("torch")
def test_two_cards_and_the_one_that_was_full() -> None:
    machine().cards(2)
    torch = started()
    run(f"kept.append({empty(3000, 'cuda:1')})\nkept.append({empty(1000, 'cuda:0')})")
    assert run(f"x = {empty(6000, 'cuda:1')}") == "OutOfMemoryError"
    on_first, on_second = check(0), check(1)
    oom = on_second["oom"] or on_first["oom"]
    assert oom["free_bytes"] == torch.cuda.mem_get_info(1)[0], oom
    finding = found()
    assert finding.device == "cuda:1", finding
    assert parts(finding)["tensors"] == 3000 * MIB, finding.details
    assert [it.used_bytes for it in finding.details.holders] == [3000 * MIB]
    # The card that is current is still the user's.
    assert torch.cuda.current_device() == 0


@pytest.mark.any_card
@forked_from("torch")
def test_a_failed_step_is_held_by_its_error_until_it_is_released() -> None:
    torch = started()
    before, capacity = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[1]
    run(f"def step():\n    batch = {empty(512)}\n    return {empty(2 * capacity // MIB)}")
    assert run("step()") == "OutOfMemoryError"
    assert check()["kept_bytes"] == 512 * MIB
    finding = found()
    assert finding.device == "cuda:0", finding
    assert any("release traceback" in it for it in finding.suggestions), finding
    assert by_kind()["traceback"] == 512 * MIB, by_kind()
    released = gpumem.release("traceback")
    assert released.freed == {"cuda:0": 512 * MIB}, released
    assert torch.cuda.memory_allocated() == before
    run(f"batch = {empty(512)}")
    assert (last()["status"], last()["kept_bytes"]) == ("ok", 512 * MIB), last()


BACKWARD = {
    "one card": (1, "cuda:0"),
    "two cards": (2, "cuda:1"),
}


@pytest.mark.parametrize("cards", BACKWARD)
@forked_from("torch")
def test_one_inside_backward(cards: str) -> None:
    n_cards, device = BACKWARD[cards]
    machine().cards(n_cards)
    started()
    run(f"""
    class Grows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            return torch.empty(9000 << 20, dtype=torch.uint8, device={device!r}).float()

    weights = [torch.ones(1 << 20, device={device!r}, requires_grad=True) for _ in range(8)]
    def step():
        loss = sum(Grows.apply(it * it).sum() for it in weights)
        loss.backward()
    """)
    for _ in range(3):
        assert run("step()") == "OutOfMemoryError"
        row = check(int(device[-1]))
        assert row["status"] == "out_of_memory", row
        assert row["oom"]["wanted_bytes"] == 9000 * MIB, row["oom"]
        gpumem.holders()
    finding = found()
    assert finding.device == device, finding
    run("%gpumem release traceback")
    run("for it in weights:\n    it.grad = None\ndel it")
    assert held(device)["weights"] == 32 * MIB, held(device)
    gpumem.report().text()


@forked_from("torch")
def test_a_kernel_survives_it_on_one_of_two_cards_at_work() -> None:
    """Backward runs on both cards at once; in one of its threads memory runs out, again and again.

    This session crashed a kernel: a search for holders met autograd's engine at work.
    """
    machine().cards(2)
    started()
    run("""
    a = torch.ones(100, device="cuda:0", requires_grad=True)
    b = torch.ones(100, device="cuda:1", requires_grad=True)
    n_ooms = 0
    class Greedy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1
        @staticmethod
        def backward(ctx, grad):
            torch.empty(4 << 30, device=grad.device)
            return grad
    def step():
        global n_ooms
        s, t = a, b
        for _ in range(2000):
            s = s * 1.001 * a.detach()
        t = Greedy.apply(t)
        for _ in range(500):
            t = t * 1.001 * b.detach()
        loss = s.sum() + t.sum().to("cuda:0")
        try:
            loss.backward()
        except torch.cuda.OutOfMemoryError:
            n_ooms += 1
        a.grad = b.grad = None
    """)
    end, n = time.monotonic() + 8, 0
    while time.monotonic() < end or n < 4:
        assert run("step()") is None
        n += 1
        assert last("cuda:1")["oom"]["survived"], last("cuda:1")["oom"]
    assert names()["n_ooms"] == n, (n, names()["n_ooms"])
