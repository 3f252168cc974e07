"""Logs of nvidia-smi, against a plain reading of them."""

from __future__ import annotations

import csv
import json
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

from tests.support.programs import run_gpumem
from tests.support.reports import read_file as read

if TYPE_CHECKING:
    from tests.python.conftest import Shell

REAL_DATA = Path(os.environ.get("GPUMEM_REAL_DATA", Path(__file__).parents[3] / "shared/data"))
REAL_LOGS = sorted((REAL_DATA / "nvidia_smi_csv").glob("*.csv"))
MIB = 1 << 20

HEADER = "timestamp, index, name, memory.used [MiB], memory.total [MiB]"


def rows() -> list[tuple[str, int, int]]:
    """Return the time, the device and the MiB of 60 readings of two devices."""
    made = []
    for second in range(30):
        for device in (0, 1):
            used = 1000 + 200 * second if device else 500 + 7000 * (second == 12)
            made.append((f"2024/01/17 12:34:{second:02}.{device:03}", device, used))
    return made


def log() -> str:
    lines = [f"{at}, {n}, NVIDIA A100, {used} MiB, 40000 MiB" for at, n, used in rows()]
    return "\n".join([HEADER, *lines]) + "\n"


def opened(path: Path) -> gpumem.types.LevelLog:
    found = gpumem.load(path)
    assert isinstance(found, gpumem.types.LevelLog)
    return found


def course(levels: list[int]) -> dict[str, int]:
    """Return the figures of a series in MiB, by plain Python."""
    return {
        "n_readings": len(levels),
        "first_bytes": levels[0] * MIB,
        "last_bytes": levels[-1] * MIB,
        "lowest_bytes": min(levels) * MIB,
        "peak_bytes": max(levels) * MIB,
        "peak_reading": levels.index(max(levels)),
    }


def check(found: dict[str, Any], expected: dict[str, list[int]]) -> None:
    """Compare each device's level with a plain reading of its MiB."""
    assert [device["label"] for device in found["devices"]] == list(expected)
    for device, levels in zip(found["devices"], expected.values(), strict=True):
        (level,) = device["levels"]
        figures = course(levels)
        assert {name: level[name] for name in figures} == figures
        assert max(level["bytes"]) == figures["peak_bytes"]
        assert len(level["bytes"]) == len(level["at_nanos"]) == len(level["readings"])


def test_levels_of_a_query_are_those_of_python(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(log(), encoding="utf-16")
    found = read(path)
    of_device = {n: [used for _, device, used in rows() if device == n] for n in (0, 1)}
    check(found, {"GPU 0": of_device[0], "GPU 1": of_device[1]})
    assert found["duration_nanos"] == 29_001_000_000
    assert found["devices"][0]["capacity_bytes"] == 40000 * MIB
    assert found["devices"][0]["levels"][0]["peak_at"] == "2024-01-17 12:34:12"
    shapes = [device["levels"][0]["shape"] for device in found["devices"]]
    assert shapes == ["fell_back", "rose_throughout"]


@pytest.mark.skipif(not REAL_LOGS, reason=f"no real logs in {REAL_DATA}")
@pytest.mark.parametrize("path", REAL_LOGS, ids=lambda path: path.stem)
def test_a_real_log_of_several_devices(path: Path) -> None:
    with path.open(newline="") as file:
        plain = list(csv.DictReader(file, skipinitialspace=True))
    expected: dict[str, list[int]] = {}
    for row in plain:
        expected.setdefault(f"GPU {row['gpu']}", []).append(int(row["memory.used"]))
    found = read(path)
    check(found, expected)
    times = [datetime.fromisoformat(row["timestamp"]) for row in plain]
    assert found["duration_nanos"] == (max(times) - min(times)).total_seconds() * 1e9
    capacities = {device["capacity_bytes"] for device in found["devices"]}
    assert capacities == {int(plain[0]["memory.total"]) * MIB}


def test_processes_and_what_was_not_permitted(tmp_path: Path) -> None:
    path = tmp_path / "apps.csv"
    lines = ["timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]"]
    for second in range(10):
        at = f"2024/01/17 12:34:{second:02}.000"
        lines.append(f"{at}, GPU-a, 41, /usr/bin/python3, {100 + 50 * second} MiB")
        lines.append(f"{at}, GPU-a, 42, C:\\Games\\a, b.exe, [Insufficient Permissions]")
    path.write_text("\n".join(lines) + "\n")
    found = read(path)
    (device,) = found["devices"]
    python, game = device["processes"]
    assert {name: python["levels"][0][name] for name in course([0])} == course(
        [100 + 50 * second for second in range(10)]
    )
    assert (game["pid"], game["name"], game["levels"]) == (42, "C:\\Games\\a, b.exe", [])
    assert game["missing"] == [{"words": "[Insufficient Permissions]", "n_readings": 10}]
    text = opened(path).text(100)
    assert "▲ process 41 (python3) rose throughout: +450 MiB in 9.0 s" in text


def test_the_conclusion_is_first_and_passes_no_verdict(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(log())
    first, second, third = opened(path).text(200).splitlines()[:3]
    assert first == "nvidia-smi log · 2 devices · 60 readings · 29.0 s from 2024-01-17 12:34:00"
    assert second == "▲ GPU 1 rose throughout: +5.66 GiB in 29.0 s, from 1000 MiB to 6.64 GiB"
    assert "Whether it is a leak" in third
    assert "leak" not in second


def test_the_command_and_the_magic_show_a_log(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(log())
    shown = run_gpumem("report", path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("nvidia-smi log · 2 devices")
    refused = run_gpumem("report", path, "--csv")
    assert refused.returncode == 2
    assert "a log of memory levels has no --csv" in refused.stderr
    as_json = run_gpumem("report", path, "--json")
    assert json.loads(as_json.stdout)["n_readings"] == 60
    shell.run(f"%gpumem_report {path}")
    assert shell.lines[-1].startswith("nvidia-smi log · 2 devices")
