"""Write the notices of what the wheel contains and others wrote: crates, fonts, SQLite."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# In the folder whose `LICENSE-*` the wheel and the sources carry.
FILE = ROOT / "LICENSE-THIRD-PARTY"
# What is compiled into the wheel: the extension, and the modules of the pages.
PACKAGES = ["gpumem-pybind", "gpumem-widget", "gpumem-files-page"]
FONTS = "DejaVu Sans, DejaVu Sans Bold, DejaVu Sans Mono"
SQLITE = "The authors of SQLite disclaim copyright: its source is in the public domain.\n"
INTRODUCTION = """\
gpumem's wheel contains the following works, compiled into the extension module or into the
report's WebAssembly module. The list covers every platform; a wheel contains those of its own.
`cargo xtask licenses` writes this file.
"""


def cargo(*arguments: str) -> str:
    """Return what cargo prints."""
    command = ["cargo", *arguments, "--locked", "--all-features"]
    ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 (a fixed command)
    return ran.stdout


def linked() -> set[tuple[str, ...]]:
    """Return names and versions of what is linked, without what runs only in the compiler."""
    options = ["--target=all", "--edges=normal,no-proc-macro", "--prefix=none"]
    tree = cargo("tree", *options, *(f"--package={name}" for name in PACKAGES))
    return {tuple(line.replace(" v", " ").split()[:2]) for line in tree.splitlines() if line}


def tidy(file: Path) -> str:
    """Return a text with one kind of line end, and without blanks at the ends of lines."""
    lines = file.read_text(encoding="utf-8").strip().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def texts(package: dict[str, Any]) -> str:
    """Return a package's licence, the MIT license if there is a choice, and its notices."""
    files = sorted(Path(package["manifest_path"]).parent.iterdir())

    def by_start(*starts: str) -> list[Path]:
        return [it for it in files if it.name.upper().startswith(starts)]

    licenses = sorted(by_start("LICENSE", "LICENCE"), key=lambda it: "MIT" not in it.name.upper())
    # A link that was packed as a file holds a path.
    found = [text for text in map(tidy, licenses) if text.count("\n") > 1]
    if not found:
        by = ", ".join(package["authors"]) or "its authors"
        return (
            f"{package['license']}, by {by}.\n"
            f"The package does not contain the text. Its repository does: {package['repository']}\n"
        )
    return "\n".join([found[0], *map(tidy, by_start("NOTICE", "COPYRIGHT"))])


def wrapped(names: set[str]) -> str:
    """Return names in lines of 79 characters."""
    # A name and its version stay on one line.
    one_word = ", ".join(sorted(names)).replace(" ", "\0").replace(",\0", ", ")
    return textwrap.fill(one_word, 79, break_on_hyphens=False).replace("\0", " ")


def main() -> None:
    """Write the file; works with the same text share a section."""
    sections: dict[str, set[str]] = defaultdict(set)
    sections[tidy(ROOT / "core/scene/src/fonts/LICENSE")].add(FONTS)
    sections[SQLITE].add("SQLite")
    wanted = linked()
    for package in json.loads(cargo("metadata", "--format-version=1"))["packages"]:
        if package["source"] and (package["name"], package["version"]) in wanted:
            sections[texts(package)].add(f"{package['name']} {package['version']}")
    listed = sorted((", ".join(sorted(names)), names, text) for text, names in sections.items())
    parts = [f"{'-' * 80}\n{wrapped(names)}\n\n{text}" for _, names, text in listed]
    FILE.write_text(f"{INTRODUCTION}\n" + "\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
