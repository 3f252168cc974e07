"""Exports of stormlog, memory profiles of JAX and captures of memray, against plain readings."""

from __future__ import annotations

import csv
import gzip
import json
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

from tests.support.programs import run_gpumem
from tests.support.reports import read_file as read

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MIB = 1 << 20
START = 1_700_000_000


def events() -> list[dict[str, Any]]:
    """Return 40 events of version 2 of two devices; the last of each has no level."""
    made = []
    for n in range(40):
        level = None if n >= 38 else (100 + 25 * n) * MIB
        made.append(
            {
                "schema_version": 2,
                "timestamp_ns": (START + n) * 1_000_000_000,
                "event_type": "warning" if n == 30 else "sample",
                "collector": "stormlog.cuda_tracker",
                "pid": 41,
                "host": "a",
                "device_id": n % 2,
                "allocator_allocated_bytes": level,
                "allocator_reserved_bytes": None if level is None else 2 * level,
                "device_used_bytes": None if level is None else 3 * level,
                "device_total_bytes": 80_000 * MIB,
                "context": 'a, "b"\nc',
                "metadata": {"backend": "cuda", "deep": [[1], {"allocator_allocated_bytes": 7}]},
            }
        )
    return made


def as_csv(rows: list[dict[str, Any]], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize("form", ["array", "object", "lines", "csv"])
def test_levels_of_stormlog_are_those_of_its_events(tmp_path: Path, form: str) -> None:
    path = tmp_path / "export"
    if form == "csv":
        as_csv(events(), path)
    elif form == "lines":
        path.write_text("".join(f"{json.dumps(event)}\n" for event in events()))
    else:
        content: Any = events() if form == "array" else {"events": events(), "pid": 41}
        path.write_text(json.dumps(content, indent=2))
    found = read(path)
    assert found["title"] == "stormlog export"
    assert [device["label"] for device in found["devices"]] == ["GPU 0", "GPU 1"]
    columns = {
        "used": "device_used_bytes",
        "reserved": "allocator_reserved_bytes",
        "allocated": "allocator_allocated_bytes",
    }
    for number, device in enumerate(found["devices"]):
        assert device["capacity_bytes"] == 80_000 * MIB
        assert [level["name"] for level in device["levels"]] == list(columns)
        for level in device["levels"]:
            column = columns[level["name"]]
            plain = [event[column] for event in events() if event["device_id"] == number]
            known = [value for value in plain if value is not None]
            assert (level["n_readings"], level["peak_bytes"]) == (len(known), max(known))
            assert (level["first_bytes"], level["last_bytes"]) == (known[0], known[-1])
    assert found["notes"] == ["1 warning or error is in the export"]


def test_the_first_version_of_gpu_memory_profiler(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    rows = [
        {
            "timestamp": START + n / 2,
            "event_type": "allocation",
            "memory_allocated": n * MIB,
            "memory_reserved": 2 * n * MIB,
            "memory_change": MIB,
            "device_id": 0,
        }
        for n in range(100)
    ]
    path.write_text(json.dumps(rows))
    (device,) = read(path)["devices"]
    peaks = {level["name"]: level["peak_bytes"] for level in device["levels"]}
    assert peaks == {"reserved": 198 * MIB, "allocated": 99 * MIB}


def varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(content)) + content


def packed(field: int, numbers: Iterable[int]) -> bytes:
    return message(field, *map(varint, numbers))


ALIVE = [
    ("cuda:0", "buffer", 30, 3 * MIB),
    ("cuda:0", "buffer", 31, 300),
    ("cuda:1", "buffer", 30, 5 * MIB),
    ("", "executable", 40, 77),
]


def profile() -> bytes:
    """Return a profile as JAX makes it: a sample for each line and device, then the texts."""
    texts = ["", "allocations", "count", "space", "bytes", "kind", "device", "step", "train.py"]
    texts += ["cuda:0", "cuda:1", "buffer", "executable", "jit", "site-packages/jax/api.py"]
    made = message(1, number(1, 1), number(2, 2)) + message(1, number(1, 3), number(2, 4))
    for device, kind, line, n_bytes in ALIVE:
        labels = [message(3, number(1, 5), number(2, texts.index(kind)))]
        if device:
            labels.append(message(3, number(1, 6), number(2, texts.index(device))))
        made += message(2, packed(1, [99, line]), packed(2, [1, n_bytes]), *labels)
    for line in (30, 31, 40):
        made += message(4, number(1, line), message(4, number(1, 1), number(2, line)))
    made += message(4, number(1, 99), message(4, number(1, 2), number(2, 5)))
    made += message(5, number(1, 1), number(2, 7), number(4, 8))
    made += message(5, number(1, 2), number(2, 13), number(4, 14))
    return made + b"".join(message(6, text.encode()) for text in texts)


@pytest.mark.parametrize("is_packed", [True, False])
def test_sums_of_a_profile_of_jax(tmp_path: Path, *, is_packed: bool) -> None:
    path = tmp_path / "memory.prof"
    path.write_bytes(gzip.compress(profile()) if is_packed else profile())
    found = read(path)
    assert isinstance(gpumem.load(path), gpumem.types.DeviceProfile)
    assert (found["bytes"], found["n_allocations"]) == (sum(row[3] for row in ALIVE), len(ALIVE))
    parts: dict[tuple[str | None, str], int] = {}
    owners: dict[int, int] = {}
    for device, kind, line, n_bytes in ALIVE:
        parts[device or None, kind] = parts.get((device or None, kind), 0) + n_bytes
        owners[line] = owners.get(line, 0) + n_bytes
    assert {(part["device"], part["kind"]): part["bytes"] for part in found["parts"]} == parts
    assert {owner["line"]["line"]: owner["bytes"] for owner in found["owners"]} == owners
    sizes = [owner["bytes"] for owner in found["owners"]]
    assert sizes == sorted(sizes, reverse=True)
    assert {owner["line"]["function"] for owner in found["owners"]} == {"step"}


def test_a_damaged_profile_says_where(tmp_path: Path) -> None:
    path = tmp_path / "memory.prof"
    path.write_bytes(gzip.compress(profile()[:-9]))
    with pytest.raises(gpumem.RecordingError, match=r"byte \d+: .* cut or damaged"):
        gpumem.load(path)
    path.write_bytes(gzip.compress(profile())[:-20])
    with pytest.raises(gpumem.RecordingError, match="the gzip file is damaged"):
        gpumem.load(path)


def test_the_command_line_refuses_memray_and_says_what_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "capture.bin"
    path.write_bytes(b"memray\0\x0b\0\0\0")
    refused = run_gpumem("report", path)
    assert refused.returncode == 2
    assert f"memray table {path}" in refused.stderr
