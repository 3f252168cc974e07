"""Memory snapshots of PyTorch, against CPython's own reading of them."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import re
from base64 import b64decode
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _file_page, _gpumem, cli

from tests.python.snapshots import (
    GENERATIONS,
    course,
    newest,
    of_torch_2_0,
    sums,
    with_annotations,
    with_names,
    with_native_frames,
    with_settings,
)
from tests.support.programs import run_gpumem

if TYPE_CHECKING:
    from tests.python.conftest import Shell

MORE = os.environ.get("GPUMEM_SNAPSHOTS")


def written(folder: Path, snapshot: Any, protocol: int = 4) -> Path:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot, protocol))
    return path


def opened(path: Path) -> gpumem.types.TorchSnapshot:
    snapshot = gpumem.load(path)
    assert isinstance(snapshot, gpumem.types.TorchSnapshot)
    return snapshot


def check(path: Path, snapshot: Any) -> None:
    """Compare what gpumem reads in a file with what CPython read."""
    read = json.loads(opened(path).to_json())
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


def test_what_holds_a_block_is_shown_beside_its_line(tmp_path: Path) -> None:
    snapshot = gpumem.load(written(tmp_path, with_names()))
    first, second = json.loads(snapshot.to_json())["devices"]
    assert first["holders"] == [{"name": "losses[0]", "bytes": 6 << 20, "n_blocks": 1}]
    # What stands in place of a stack is none.
    assert first["owners"] == [{"line": None, "bytes": 6 << 20, "n_blocks": 1}]
    assert second["holders"] == [{"name": "losses[2]", "bytes": 2 << 20, "n_blocks": 1}]
    assert second["owners"][0]["line"]["line"] == 9
    assert "held by\n        6 MiB       1 block  losses[0]" in snapshot.text()


def test_a_real_snapshot_is_listed_by_line(tmp_path: Path) -> None:
    text = gpumem.load(written(tmp_path, with_native_frames())).text(120)
    assert "MmBackward0 in a backward pass" in text
    assert "lm/model.py:" in text
    assert "unwind" not in text
    loaded = gpumem.load(written(tmp_path, of_torch_2_0()))
    [device] = json.loads(loaded.to_json())["devices"]
    assert device["timeline"] is None
    assert any(owner["line"] for owner in device["owners"])


def test_a_failed_request_stands_against_the_largest_hole(tmp_path: Path) -> None:
    text = opened(written(tmp_path, with_settings())).text(200)
    assert (
        "▲ out of memory: 25 MiB wanted · lm/train.py:33 in step · the driver had 4 MiB free"
        " · largest hole 20 MiB" in text
    )
    assert "fragmentation: 32 MiB is unused, in pieces that are too small" in text
    assert "peak 25 MiB · after event 5" in text


def test_the_device_that_ran_out_of_memory_is_first(tmp_path: Path) -> None:
    snapshot = with_settings()
    snapshot["device_traces"].reverse()
    lines = opened(written(tmp_path, snapshot)).text(200).splitlines()
    assert lines.index("cuda:1") < lines.index("cuda:0")


def test_what_has_no_stack_among_others_was_there_before(tmp_path: Path) -> None:
    snapshot = with_settings()
    held = snapshot["segments"][0]["blocks"]
    held.append(held[0] | {"frames": []})
    assert "1 block  before recording began" in opened(written(tmp_path, snapshot)).text(200)
    for block in held:
        block["frames"] = []
    assert "2 blocks  no stack was recorded" in opened(written(tmp_path, snapshot)).text(200)


def test_expandable_segments_are_not_advised_twice(tmp_path: Path) -> None:
    text = opened(written(tmp_path, newest())).text(200)
    assert "fragmentation" in text
    assert "PYTORCH_CUDA_ALLOC_CONF" not in text
    assert "host (pinned memory)\n  reserved 2 MiB" in text


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    class Call:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.mkdir, (str(tmp_path / "made"),)

    path = written(tmp_path, {"segments": [Call()]})
    with pytest.raises(gpumem.RecordingError, match="STACK_GLOBAL would import") as raised:
        gpumem.load(path)
    assert raised.value.offset == path.read_bytes().index(b"\x93")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04 and more", "a ZIP archive, as torch.save writes, which gpumem does not read"),
        (pickle.dumps({"model": 1}), "not a memory snapshot of PyTorch: a pickled dict with model"),
        (pickle.dumps(with_settings())[:-40], "the file ends inside the pickle"),
    ],
    ids=["zip", "other pickle", "cut"],
)
def test_another_file_says_what_it_looks_like(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(gpumem.RecordingError, match=r"byte \d+: ") as raised:
        gpumem.load(path)
    assert words in str(raised.value)


command = partial(run_gpumem, "report")


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
    assert "cannot read 'a'" in shell.run(f"%gpumem_report {path} --compare a").stderr
    assert "cannot read" in shell.run(f"%gpumem_report {tmp_path}/none").stderr
    recording = tmp_path / "saved"
    gpumem.recording().save(recording)
    shell.run(f"%gpumem_report --text {recording}")
    assert shell.lines[-1].startswith("GPU memory · ")


def test_a_page_has_the_bytes_that_were_read(tmp_path: Path) -> None:
    path = written(tmp_path, newest())
    found, content = _gpumem._open(path), path.read_bytes()
    path.write_bytes(b"another file")
    packed = re.search(r'class="file"[^>]*>([^<]*)<', _file_page.html(found, path))
    assert packed is not None
    assert gzip.decompress(b64decode(packed[1])) == content


def test_a_snapshot_without_torch_says_what_is_missing(shell: Shell, tmp_path: Path) -> None:
    said = shell.run(f"%gpumem snapshot {tmp_path}/memory.pickle").stderr
    assert "snapshot: a snapshot is of PyTorch's CUDA memory, and torch is not imported" in said
    assert "needs the name of one file" in shell.run("%gpumem snapshot").stderr
    assert "needs the name of one file" in shell.run("%gpumem snapshot a b").stderr
    with pytest.raises(gpumem.GpuMemError, match="torch is not imported"):
        gpumem.snapshot(tmp_path / "memory.pickle")
    assert not list(tmp_path.glob("*.pickle"))


def test_the_flight_recorders_size_is_checked(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    shell.run("%config GpuMem.flight_recorder = 'much'")
    said = caplog.messages[-1]
    assert "GpuMem.flight_recorder: 'much' is not a size: write 6GiB or 512MiB" in said
    shell.run("%config GpuMem.flight_recorder = '64MiB'")
    shell.run("%%gpumem\nx = 1")
    assert shell.run("%config GpuMem.flight_recorder").result == "'64MiB'"
    shell.run("%config GpuMem.flight_recorder = ''")


CELL = "import torch\n\nlosses = []\n"
CELL_FILE = "/srv/tmp/ipykernel_4711/3190537452.py"


def in_a_cell() -> dict[str, Any]:
    """Return a snapshot of which one block was allocated in a cell."""
    snapshot: dict[str, Any] = with_annotations()
    [block, *_] = snapshot["segments"][0]["blocks"]
    frame = {"name": "<module>", "filename": CELL_FILE, "line": 3}
    block.update(state="active_allocated", frames=[frame])
    return snapshot


def test_cells_of_this_session_are_named(shell: Shell, tmp_path: Path) -> None:
    path = written(tmp_path, in_a_cell())
    shell.run(CELL.removeprefix("import torch"))
    shell.run(f"%gpumem_report {path} --text")
    assert "ipykernel_4711/3190537452.py:3" in shell.lines[-1], "another cell"
    shell.run(CELL)
    number = shell.execution_count - 1
    shell.run(f"%gpumem_report {path} --text")
    assert f"In [{number}]:3" in shell.lines[-1]


@pytest.mark.parametrize(("count", "name"), [(12, "In [12]"), (None, "cell 2")])
def test_cells_of_a_notebooks_file_are_named(
    count: int | None, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, notebook = written(tmp_path, in_a_cell()), tmp_path / "train.ipynb"
    code = {"cell_type": "code", "source": CELL.splitlines(keepends=True)}
    cells = [
        {"cell_type": "markdown", "source": CELL},
        {"cell_type": "code", "source": "1", "execution_count": 11},
        {**code, "execution_count": count},
    ]
    notebook.write_text(json.dumps({"cells": cells}))
    assert f"{name}:3" in gpumem.load(path, notebook=notebook).text()
    assert cli.main(["report", str(path), "--notebook", str(notebook)]) == 0
    assert f"{name}:3" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "[]", '{"cells": 1}', '{"cells": [{}]}'])
def test_what_is_no_notebook_is_said(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, notebook = written(tmp_path, in_a_cell()), tmp_path / "other.ipynb"
    notebook.write_text(text)
    with pytest.raises(gpumem.GpuMemError, match=r"other\.ipynb is no notebook"):
        gpumem.load(path, notebook=notebook)
    assert cli.main(["report", str(path), "--notebook", str(tmp_path / "gone.ipynb")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_two_snapshots_are_compared(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = tmp_path / "before.pickle", tmp_path / "after.pickle"
    written(tmp_path, with_annotations()).rename(before)
    written(tmp_path, in_a_cell()).rename(after)
    change = gpumem.load(after).compare(gpumem.load(before))
    [device, *_] = json.loads(change.to_json())["devices"]
    new = [it for it in device["stacks"] if it["frames"] and it["frames"][0]["file"] == CELL_FILE]
    assert [it["n_blocks"] for it in new] == [[0, 1]]
    assert new[0]["bytes"][0] == 0 < new[0]["bytes"][1]
    text = change.text(120)
    assert "0 → 1  ipykernel_4711/3190537452.py:3" in text
    assert cli.main(["compare", str(before), str(after)]) == 0
    assert "ipykernel_4711/3190537452.py:3" in capsys.readouterr().out
    assert cli.main(["compare", str(before), str(after), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(change.to_json())
    assert cli.main(["compare", str(before), str(after), "--html", str(tmp_path / "a.html")]) == 2
    shell.run(f"%gpumem_report {after} --compare {before}")
    assert shell.lines[-1].startswith("Two PyTorch memory snapshots")
    refused = shell.run(f"%gpumem_report {after} --compare {tmp_path / 'gone.pickle'}")
    assert "cannot read" in refused.stderr
    (tmp_path / "other").write_text("no snapshot")
    refused = shell.run(f"%gpumem_report {after} --compare {tmp_path / 'other'}")
    assert refused.stderr


def test_a_snapshot_says_how_long_blocks_lived(tmp_path: Path) -> None:
    snapshot = opened(written(tmp_path, with_native_frames()))
    [device] = json.loads(snapshot.to_json())["devices"]
    [timeline, lifetimes] = device["timeline"], device["lifetimes"]
    assert lifetimes
    for lived in lifetimes:
        assert 0 < lived["n_blocks"] >= lived["n_left"]
        assert lived["median"]["micros"] <= lived["longest"]["micros"]
        assert lived["longest"]["n_events"] < timeline["n_events"]
        # The next event completes each free.
        assert lived["longest_wait"] is None
    left = sum(lived["left_bytes"] for lived in lifetimes)
    assert left == timeline["end_bytes"] - timeline["start_bytes"]
    assert "what took most memory for longest first" in snapshot.text()
