"""Both ways to build from source work by themselves, without the network.

pip's isolated build would fetch maturin; here it uses the one that is
installed. The builds are not optimised: they show that everything is there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from .unpacked import STATIC, output_of

ROOT = Path(__file__).parents[2]
QUICK = {
    "CARGO_NET_OFFLINE": "true",
    "CARGO_PROFILE_RELEASE_DEBUG": "false",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "0",
    "CARGO_PROFILE_WASM_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_WASM_LTO": "off",
    "CARGO_PROFILE_WASM_OPT_LEVEL": "0",
    "CARGO_TARGET_DIR": str(ROOT / "target" / "packaging"),
}


def make_new(folder: Path) -> None:
    """Give every file the present time: cargo takes old ones for built."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.touch()


def install(source: Path, into: Path) -> None:
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--target", str(into)]
    command = [sys.executable, "-m", "pip", "install", *options, str(source)]
    subprocess.run(command, check=True, env=os.environ | QUICK)


def check(installed: Path) -> None:
    """Import what was installed, and not what this environment has."""
    program = "import gpumem, pathlib; print(pathlib.Path(gpumem.__file__).parent)"
    assert Path(output_of(program, installed).strip()) == installed / "gpumem"
    static = (installed / "gpumem" / "static").iterdir()
    assert sorted(path.name for path in static) == STATIC


def test_a_fresh_checkout_installs(tmp_path: Path, tracked: frozenset[str]) -> None:
    checkout = tmp_path / "checkout"
    for path in tracked:
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, checkout / path)
    install(checkout / "pybind", tmp_path / "installed")
    check(tmp_path / "installed")


def test_the_sdist_installs(tmp_path: Path, sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    make_new(source)
    install(source, tmp_path / "installed")
    check(tmp_path / "installed")
