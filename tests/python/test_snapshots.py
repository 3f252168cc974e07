"""Memory snapshots of PyTorch, against CPython's own reading of them."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

from tests.python.snapshots import (
    GENERATIONS,
    course,
    newest,
    of_torch_2_0,
    sums,
    with_native_frames,
    with_settings,
)

if TYPE_CHECKING:
    from tests.python.conftest import Shell

MORE = os.environ.get("GPUMEM_SNAPSHOTS")


def written(folder: Path, snapshot: Any, protocol: int = 4) -> Path:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot, protocol))
    return path


def check(path: Path, snapshot: Any) -> None:
    """Compare what gpumem reads in a file with what CPython read."""
    read = json.loads(gpumem.load_snapshot(path).to_json())
    devices = {device["label"]: device for device in read["devices"]}
    expected = sums(snapshot)
    assert list(devices) == list(expected)
    for label, figures in expected.items():
        device = devices[label]
        owners = figures.pop("owners")
        assert {name: device[name] for name in figures} == figures
        assert not device["is_inconsistent"]
        assert sum(owner["bytes"] for owner in device["owners"]) == figures["allocated_bytes"]
        sizes = [owner["bytes"] for owner in device["owners"]]
        assert sizes == sorted(sizes, reverse=True)
        named: dict[tuple[str, int], int] = {}
        for owner in device["owners"]:
            line = owner["line"]
            if line is not None and line["file"].endswith(".py"):
                key = (line["file"], line["line"])
                named[key] = named.get(key, 0) + owner["bytes"]
        owners.pop(None, None)
        assert named == owners
    timeline = devices["cuda:0"]["timeline"]
    if timeline is not None:
        found = (timeline["start_bytes"], timeline["peak_bytes"], timeline["end_bytes"])
        assert found == course(snapshot)
        owned = sum(owner["bytes"] for owner in timeline["owners"])
        assert owned + timeline["from_before_bytes"] == timeline["peak_bytes"]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("generation", GENERATIONS)
def test_sums_are_those_of_cpython(generation: str, protocol: int, tmp_path: Path) -> None:
    snapshot = GENERATIONS[generation]()
    check(written(tmp_path, snapshot, protocol), snapshot)


@pytest.mark.skipif(not MORE, reason="GPUMEM_SNAPSHOTS names no folder with snapshots")
def test_sums_of_real_files_are_those_of_cpython() -> None:
    files = sorted(Path(str(MORE)).glob("*.pickle"))
    assert files, MORE
    for path in files:
        with path.open("rb") as file:
            check(path, pickle.load(file))  # noqa: S301 (files that the user has named)


def test_a_real_programs_snapshot_is_told_by_its_lines(tmp_path: Path) -> None:
    text = gpumem.load_snapshot(written(tmp_path, with_native_frames())).text(120)
    assert "MmBackward0 in a backward pass" in text
    assert "lm/model.py:" in text
    assert "unwind" not in text
    loaded = gpumem.load_snapshot(written(tmp_path, of_torch_2_0()))
    [device] = json.loads(loaded.to_json())["devices"]
    assert device["timeline"] is None
    assert any(owner["line"] for owner in device["owners"])


def test_a_failed_request_stands_against_the_largest_hole(tmp_path: Path) -> None:
    text = gpumem.load_snapshot(written(tmp_path, with_settings())).text(200)
    assert (
        "▲ out of memory: 25 MiB wanted · lm/train.py:33 in step · the driver had 4 MiB free"
        " · largest hole 20 MiB" in text
    )
    assert "fragmentation: 32 MiB is unused, in pieces that are too small" in text
    assert "peak 25 MiB · after event 5" in text


def test_expandable_segments_are_not_advised_twice(tmp_path: Path) -> None:
    text = gpumem.load_snapshot(written(tmp_path, newest())).text(200)
    assert "fragmentation" in text
    assert "PYTORCH_CUDA_ALLOC_CONF" not in text
    assert "host (pinned memory)\n  reserved 2 MiB" in text


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    class Call:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.mkdir, (str(tmp_path / "made"),)

    path = written(tmp_path, {"segments": [Call()]})
    with pytest.raises(gpumem.RecordingError, match="STACK_GLOBAL would import") as raised:
        gpumem.load_snapshot(path)
    assert raised.value.offset == path.read_bytes().index(b"\x93")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "byte 0: not a memory snapshot of PyTorch: it looks like an empty file"),
        (b"PK\x03\x04 and more", "it looks like a ZIP archive, as torch.save writes"),
        (b'{"traceEvents": []}', "it looks like JSON"),
        (pickle.dumps({"model": 1}), "not a memory snapshot of PyTorch: a pickled dict with model"),
        (pickle.dumps(with_settings())[:-40], "the file ends inside the pickle"),
    ],
    ids=["empty", "zip", "json", "other pickle", "cut"],
)
def test_another_file_says_what_it_looks_like(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(gpumem.RecordingError, match=r"byte \d+: ") as raised:
        gpumem.load_snapshot(path)
    assert words in str(raised.value)


def test_load_tells_how_to_read_a_snapshot(tmp_path: Path) -> None:
    with pytest.raises(gpumem.RecordingError, match=r"hint: `gpumem\.load_snapshot`"):
        gpumem.load(written(tmp_path, with_settings()))


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "gpumem", "report", *map(str, arguments)]
    return subprocess.run(line, check=False, capture_output=True, text=True)


def test_the_command_line_recognises_a_snapshot(tmp_path: Path) -> None:
    path = written(tmp_path, newest())
    shown = command(path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("PyTorch memory snapshot · 3 devices\n")
    as_json = command(path, "--json")
    assert json.loads(as_json.stdout)["devices"][0]["label"] == "cuda:0"
    page = tmp_path / "page.html"
    assert command(path, "--html", page).stdout == f"wrote {page}\n"
    refused = command(path, "--csv")
    assert refused.returncode == 2
    assert "a memory snapshot of PyTorch has no --csv" in refused.stderr
    path.write_bytes(path.read_bytes()[:100])
    cut = command(path)
    assert cut.returncode == 2
    assert "the file ends inside the pickle" in cut.stderr


def test_the_magic_recognises_a_file(shell: Shell, tmp_path: Path) -> None:
    path = written(tmp_path, with_settings())
    shell.run(f'%gpumem_report --text "{path}"')
    assert shell.lines[-1].startswith("PyTorch memory snapshot · 2 devices")
    shell.run(f'%gpumem_report "{path}"')
    shown = shell.shown[-1]["data"]
    assert shown["text/plain"].startswith("PyTorch memory snapshot · 2 devices")
    assert shown["text/html"].startswith("<iframe")
    page = tmp_path / "page.html"
    shell.run(f"%gpumem_report {path} --html {page}")
    assert shell.lines[-1] == f"wrote {page}"
    assert f'data-name="{path.name}"' in page.read_text()
    assert "end 'r.png' in .html" in shell.run(f"%gpumem_report {path} --html r.png").stderr
    assert "leave out --compare" in shell.run(f"%gpumem_report {path} --compare a").stderr
    assert "cannot read" in shell.run(f"%gpumem_report {tmp_path}/none").stderr
    recording = tmp_path / "saved"
    gpumem.recording().save(recording)
    shell.run(f"%gpumem_report --text {recording}")
    assert shell.lines[-1].startswith("GPU memory · ")
