"""The source distribution and the wheel hold what they must and no more."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from os.path import normpath
from pathlib import Path

import pytest

PACKAGES = "pybind/python/"
STATIC = ["files.html", "provider.js", "standalone.html", "thin.js"]
TESTING = {"GPUMEM_TESTING": "1"}
LICENSES = {"LICENSE-APACHE", "LICENSE-MIT", "LICENSE-THIRD-PARTY"}


def package_files(tracked: frozenset[str]) -> set[str]:
    """Return the packages' files as a wheel names them."""
    static = {f"gpumem/static/{name}" for name in STATIC}
    return {path.removeprefix(PACKAGES) for path in tracked if path.startswith(PACKAGES)} | static


def test_wheel_holds_the_package_the_page_and_the_licenses(
    wheel: Path, tracked: frozenset[str]
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = next(name.split("/")[0] for name in names if ".dist-info/" in name)
    described = {f"{about}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")}
    described |= {f"{about}/licenses/{name}" for name in LICENSES}
    bill_of_materials = {name for name in names if name.startswith(f"{about}/sboms/")}
    extension = {name for name in names if name.startswith("gpumem/_gpumem.abi3.")}
    extension -= {"gpumem/_gpumem.pyi"}
    assert len(extension) == 1
    assert names - bill_of_materials == package_files(tracked) | described | extension


def test_one_wheel_serves_every_python(wheel: Path) -> None:
    assert re.fullmatch(r"jupyter_gpumem-[\d.]+-cp310-abi3-\w+\.whl", wheel.name)


def test_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        about = Parser().parsestr(archive.read(name).decode())
    assert about["Name"] == "jupyter-gpumem"
    assert about["Requires-Python"] == ">=3.10"
    assert about["License-Expression"] == "MIT OR Apache-2.0"
    needs = [need for need in about.get_all("Requires-Dist", []) if "extra ==" not in need]
    required = {re.split(r"\W", need)[0] for need in needs}
    assert required == {"anywidget", "ipython", "traitlets"}
    assert about["Description-Content-Type"].startswith("text/markdown")
    assert "%load_ext gpumem" in about.get_payload()


def test_wheel_names_no_folder_of_the_machine_that_built_it(wheel: Path) -> None:
    home = re.compile(rb"/(?:home|root|Users)/[\w.-]+/")
    with zipfile.ZipFile(wheel) as archive:
        found = {name: sorted(set(home.findall(archive.read(name)))) for name in archive.namelist()}
    assert {name: places for name, places in found.items() if places} == {}


@pytest.mark.parametrize(("page", "most"), [("files.html", 400_000), ("provider.js", 560_000)])
def test_the_modules_of_the_pages_are_small(wheel: Path, page: str, most: int) -> None:
    """Each is sent once for a kernel, or once for a file."""
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"gpumem/static/{page}").decode()
    modules = re.findall(r'MODULE = "([^"]+)"', text)
    assert [len(it) * 3 // 4 <= most for it in modules] == [True], [len(it) for it in modules]


@pytest.mark.parametrize(("variables", "expected"), [({}, "False"), (TESTING, "True")])
def test_hooks_of_tests_are_there_only_for_tests(
    wheel: Path, tmp_path: Path, variables: dict[str, str], expected: str
) -> None:
    shutil.unpack_archive(wheel, tmp_path, "zip")
    around = {name: value for name, value in os.environ.items() if name not in TESTING}
    program = "from gpumem import _gpumem; print(_gpumem.__file__, hasattr(_gpumem, '_testing'))"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=around | variables | {"PYTHONPATH": str(tmp_path)},
    )
    file, has_hooks = ran.stdout.split()
    assert file.startswith(str(tmp_path))
    assert has_hooks == expected


def test_sdist_holds_the_sources_of_all_it_builds(sdist: Path, tracked: frozenset[str]) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    crates = {path for path in tracked if path.startswith("core/")}
    # Only docs and tests include these.
    crates -= {path for path in crates if path.startswith("core/examples/")}
    crates |= {path for path in tracked if path.startswith("pybind/")}
    packages = {f"{PACKAGES}{path}" for path in package_files(tracked)}
    root = {"Cargo.lock", "Cargo.toml", "PKG-INFO", "pyproject.toml"}
    assert names == crates | packages | root | LICENSES | {"README.md"}


def test_what_is_compiled_includes_only_what_is_in_the_sdist(sdist: Path) -> None:
    included = {}
    with tarfile.open(sdist) as archive:
        files = {file.name.partition("/")[2]: file for file in archive if file.isfile()}
        sources = [name for name in files if re.match(r".+/src/.+\.rs$", name)]
        for name in sources:
            text = archive.extractfile(files[name]).read().decode()
            for path in re.findall(r'^[^/\n]*\binclude\w*!\((?:"(.+?)"\))?', text, re.MULTILINE):
                included[f"{name}: {path}"] = normpath(Path(name).parent / path)
    assert included
    assert {where: file for where, file in included.items() if file not in files} == {}
