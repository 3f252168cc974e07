"""Memory snapshots of PyTorch of each generation, and what CPython reads in them.

The sums here are independent of gpumem's reader: plain loops over what `pickle` gives.
"""

from __future__ import annotations

import copy
import random
from typing import Any

MIB = 1 << 20
UNKNOWN_LINE = 2**64 - 1


def frames(line: int) -> list[dict[str, Any]]:
    """Return a stack, innermost first."""
    return [
        {"name": "malloc", "filename": "CUDACachingAllocator.cpp", "line": UNKNOWN_LINE},
        {"name": "linear", "filename": "/lib/python3.12/site-packages/torch/nn.py", "line": 9},
        {"name": "step", "filename": "/srv/ada/lm/train.py", "line": line},
    ]


def segment(device: int, address: int, blocks: list[tuple[int, str, int]]) -> dict[str, Any]:
    """Return a segment of today's torch; a block is (MiB, state, line)."""
    at = address
    made: list[dict[str, Any]] = []
    for mib, state, line in blocks:
        made.append(
            {
                "address": at,
                "size": mib * MIB,
                "requested_size": mib * MIB - 12,
                "state": state,
                "frames": frames(line),
            }
        )
        at += mib * MIB
    active = [block["size"] for block in made if block["state"] != "inactive"]
    allocated = [block["size"] for block in made if block["state"] == "active_allocated"]
    return {
        "device": device,
        "address": address,
        "total_size": at - address,
        "allocated_size": sum(allocated),
        "active_size": sum(active),
        "requested_size": sum(size - 12 for size in active),
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": frames(1),
        "blocks": made,
    }


def segments() -> list[dict[str, Any]]:
    """Return segments of two devices, with holes and a block that awaits a stream."""
    return [
        segment(0, 1 << 40, [(6, "active_allocated", 7), (12, "inactive", 0)]),
        segment(0, 2 << 40, [(20, "inactive", 0)]),
        segment(
            1,
            3 << 40,
            [(3, "active_pending_free", 8), (2, "active_allocated", 9), (5, "inactive", 0)],
        ),
    ]


def trace() -> list[dict[str, Any]]:
    """Return events of device 0 with a peak, ending in a failed request."""
    live = 1 << 40
    rows = [
        ("free_requested", 9 << 40, 3000, 1),
        ("free_completed", 9 << 40, 3000, 1),
        ("segment_alloc", live, 18 * MIB, 7),
        ("alloc", live, 6 * MIB - 12, 7),
        ("alloc", 2 << 40, 19 * MIB, 21),
        ("free_requested", 2 << 40, 19 * MIB, 22),
        ("free_completed", 2 << 40, 19 * MIB, 22),
        ("oom", 4 * MIB, 25 * MIB, 33),
    ]
    return [
        {
            "action": action,
            "device_free" if action == "oom" else "addr": address,
            "size": size,
            "stream": 0,
            "time_us": 1_700_000_000_000_000 + at,
            "frames": frames(line),
        }
        for at, (action, address, size, line) in enumerate(rows)
    ]


def oldest() -> list[dict[str, Any]]:
    """Return a list of segments, as `memory_snapshot()` gave before torch 1.13."""
    old = segments()
    for held in old:
        for name in ("requested_size", "segment_pool_id", "is_expandable", "frames"):
            del held[name]
        for block in held["blocks"]:
            for name in ("address", "requested_size", "frames"):
                del block[name]
    return old


def with_history() -> dict[str, Any]:
    """Return what torch 1.13 and 2.0 wrote: blocks have a history instead of frames."""
    old = segments()
    for held in old:
        for block in held["blocks"]:
            stack, size = block.pop("frames"), block["requested_size"]
            history = {"addr": block.pop("address"), "real_size": size, "frames": stack}
            if block["state"] == "active_allocated":
                block["history"] = [history]
    return {"segments": old, "device_traces": [trace(), []]}


def with_settings() -> dict[str, Any]:
    """Return what torch 2.1 to 2.3 wrote."""
    return {
        "segments": segments(),
        "device_traces": [trace(), []],
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": "",
            "max_split_size": -1,
            "garbage_collection_threshold": 0.5,
            "expandable_segments": False,
            "roundup_power2_divisions": {"1": 0, "2": 0},
        },
    }


def with_annotations() -> dict[str, Any]:
    """Return what torch 2.5 and later write, with expandable segments."""
    snapshot = with_settings()
    for held in snapshot["segments"]:
        held["is_expandable"] = True
    for event in snapshot["device_traces"][0]:
        event["action"] = event["action"].replace("segment_alloc", "segment_map")
        event["compile_context"] = "N/A"
        event["user_metadata"] = ""
    stage = {"stage": "START", "name": "step", "device": 0, "time_us": 1}
    snapshot["external_annotations"] = [stage]
    return snapshot


def newest() -> dict[str, Any]:
    """Return a snapshot that has the host's pinned memory, too, and a key of the future."""
    snapshot = with_annotations()
    snapshot["host_segments"] = [segment(0, 5 << 40, [(2, "active_allocated", 40)])]
    snapshot["host_traces"] = []
    snapshot["of_the_future"] = {"level": (1, 2.5, None)}
    return snapshot


def shared() -> dict[str, Any]:
    """Return a snapshot in which one stack stands at many places."""
    snapshot = copy.deepcopy(with_settings())
    stack = frames(77)
    for event in snapshot["device_traces"][0]:
        event["frames"] = stack
    return snapshot


def native_frames(line: int) -> list[dict[str, Any]]:
    """Return a stack with frames of C++ around those of Python, as `stacks="all"` records it."""
    unwind = [
        ("torch::unwind::unwind()", "??", 0),
        ("torch::CapturedTraceback::gather(bool, bool, bool)", "??", 0),
        ("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc()", "??", 0),
        ("at::_ops::empty_memory_format::call(c10::ArrayRef<c10::SymInt>)", "??", 0),
    ]
    if line % 7 == 0:
        # A backward pass has no line of the user's.
        operator = "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)"
        return [_frame(*it) for it in [*unwind, (operator, "??", 0), ("clone", "??", 0)]]
    python = [
        ("forward", "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", 134),
        ("block", "/srv/ada/lm/model.py", line),
        ("<module>", "/srv/ada/lm/train.py", 12),
    ]
    start = [("_PyEval_EvalFrameDefault", "/opt/python/ceval.c", 5265), ("_start", "??", 0)]
    return [_frame(*it) for it in [*unwind, *python, *start]]


def _frame(name: str, filename: str, line: int) -> dict[str, Any]:
    return {"name": name, "filename": filename, "line": line}


def played(n_events: int, seed: int = 7) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return segments and the trace of a random program that allocates and frees in them."""
    rng = random.Random(seed)  # noqa: S311 (the same program each time)
    n_slots, base = 64, 1 << 41
    stacks = [native_frames(line) for line in range(1, 40)]
    live: dict[int, tuple[int, list[dict[str, Any]]]] = {}
    trace: list[dict[str, Any]] = []

    def happen(action: str, slot: int, size: int, stack: list[dict[str, Any]]) -> None:
        event = {"action": action, "addr": base + slot * MIB, "size": size, "stream": 0}
        trace.append({**event, "time_us": 1_700_000_000_000_000 + len(trace), "frames": stack})

    happen("segment_alloc", 0, n_slots * MIB, stacks[0])
    while len(trace) < n_events:
        slot, stack = rng.randrange(n_slots), rng.choice(stacks)
        if slot in live:
            size, _ = live.pop(slot)
            happen("free_requested", slot, size, stack)
            happen("free_completed", slot, size, stack)
        else:
            live[slot] = rng.randrange(1, MIB), stack
            happen("alloc", slot, live[slot][0], stack)
    held = segment(0, base, [(1, "inactive", 0)] * n_slots)
    for slot, block in enumerate(held["blocks"]):
        size, block["frames"] = live.get(slot, (MIB, []))
        block["requested_size"] = size
        block["state"] = "active_allocated" if slot in live else "inactive"
    used = len(live) * MIB
    held |= {"allocated_size": used, "active_size": used, "frames": stacks[0]}
    return [held], trace


def with_native_frames() -> dict[str, Any]:
    """Return what torch 2.1 to 2.4 wrote of a program that ran for a while, with C++ frames."""
    held, trace = played(600)
    return {
        **with_settings(),
        "segments": held,
        "device_traces": [trace],
        "external_annotations": [],
    }


def of_torch_2_0() -> dict[str, Any]:
    """Return what torch 2.0 wrote without a trace: free blocks have a history, too."""
    held = played(900, seed=3)[0]
    for number, one in enumerate(held):
        del one["is_expandable"], one["segment_pool_id"], one["frames"]
        for block in one["blocks"]:
            size, stack = block["requested_size"], block.pop("frames")
            address = block.pop("address")
            past = {"addr": address, "real_size": size, "frames": stack or frames(number)}
            block["history"] = [past]
    snapshot_taken = {"action": "snapshot", "addr": 0, "size": 11_840_159_744, "stream": 0}
    return {"segments": held, "device_traces": [[snapshot_taken]]}


def with_names() -> dict[str, Any]:
    """Return what gpumem writes: what holds a block, in place of its stack or beside it."""
    snapshot = with_annotations()
    for number, held in enumerate(snapshot["segments"]):
        for block in held["blocks"]:
            if block["state"] == "inactive":
                continue
            name = f"losses[{number}]"
            if number == 0:
                frame = {"name": name, "filename": "held by", "line": 0}
                block["frames"] = [frame]
            else:
                block["user_metadata"] = f"step 7\nheld by {name}"
    return snapshot


GENERATIONS = {
    make.__name__: make
    for make in (
        oldest,
        with_history,
        with_settings,
        with_annotations,
        newest,
        shared,
        with_native_frames,
        of_torch_2_0,
        with_names,
    )
}


def sums(snapshot: Any) -> dict[str, dict[str, Any]]:
    """Return each device's figures by their names in gpumem's JSON."""
    is_old = isinstance(snapshot, list)
    groups: dict[str, list[dict[str, Any]]] = {}
    for held in snapshot if is_old else snapshot["segments"]:
        groups.setdefault(f"cuda:{held['device']}", []).append(held)
    if not is_old and snapshot.get("host_segments"):
        groups["host (pinned memory)"] = snapshot["host_segments"]
    return {label: _figures(held) for label, held in groups.items()}


def _figures(held: list[dict[str, Any]]) -> dict[str, Any]:
    blocks = [block for one in held for block in one["blocks"]]
    holes = [block["size"] for block in blocks if block["state"] == "inactive"]
    allocated = [block for block in blocks if block["state"] == "active_allocated"]
    by_line: dict[Any, int] = {}
    for block in allocated:
        line = user_line(block)
        by_line[line] = by_line.get(line, 0) + block["size"]
    return {
        "reserved_bytes": sum(one["total_size"] for one in held),
        "allocated_bytes": sum(one["allocated_size"] for one in held),
        "active_bytes": sum(one["active_size"] for one in held),
        "requested_bytes": sum(requested(block) for block in allocated),
        "inactive_bytes": sum(holes),
        "releasable_bytes": sum(one["total_size"] for one in held if not one["active_size"]),
        "largest_hole_bytes": max(holes, default=0),
        "n_segments": len(held),
        "n_blocks": len(blocks),
        "n_allocated_blocks": len(allocated),
        "n_expandable_segments": len([one for one in held if one.get("is_expandable")]),
        "owners": by_line,
    }


def requested(block: dict[str, Any]) -> int:
    """Return the requested size, if this generation of snapshots has it."""
    history = block.get("history") or [{}]
    size: int = block.get("requested_size", history[0].get("real_size", block["size"]))
    return size


def user_line(block: dict[str, Any]) -> tuple[str, int] | None:
    """Return the innermost line in the user's code, if the stack has one."""
    history = block.get("history") or [{}]
    stack = block.get("frames") or history[0].get("frames") or []
    for frame in stack:
        name = frame["filename"]
        is_own = "site-packages" not in name and "/lib/python3" not in name
        if name.endswith(".py") and is_own:
            return name, frame["line"]
    return None


def course(snapshot: dict[str, Any]) -> tuple[int, int, int]:
    """Return the trace's level before it, its peak and its end, of device 0, in bytes."""
    level = highest = 0
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            level += event["size"]
        elif event["action"] == "free_requested":
            level -= event["size"]
        highest = max(highest, level)
    blocks = [b for one in snapshot["segments"] if one["device"] == 0 for b in one["blocks"]]
    end = sum(requested(block) for block in blocks if block["state"] == "active_allocated")
    return end - level, end - level + highest, end
