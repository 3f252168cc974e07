"""Files that commands write: whole or not at all, and never over another by accident."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpumem import _gpumem
from gpumem.cli import terminal
from gpumem.cli.exits import CommandError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_force(parser: ArgumentParser) -> None:
    """Add ``--force``."""
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")


def check_targets(options: Namespace, *names: str) -> None:
    """Refuse files that exist or whose folder is missing, before any work is done."""
    for name in names:
        given = getattr(options, name)
        if given is None:
            continue
        path = Path(given)
        if path.exists() and not options.force:
            raise CommandError(f"{path} exists\nhint: --force overwrites it")
        if path.is_dir():
            raise CommandError(f"{path} is a folder")
        if not path.parent.is_dir():
            raise CommandError(f"there is no folder {path.parent}")


def write(path: str, content: bytes | str) -> None:
    """Write a file atomically; only its owner can read it, since it may contain source."""
    data = content.encode() if isinstance(content, str) else content
    try:
        _gpumem._write_file(Path(path), data)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from None


def put(text: str, path: str | None) -> None:
    """Write a text to a file, and print that; without a path, print the text."""
    if path is None:
        print(text)
    else:
        write(path, f"{text}\n")
        print(wrote(path))


def wrote(path: str) -> str:
    """Return the line that says so."""
    return terminal.plain(f"wrote {path}")
