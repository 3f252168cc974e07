"""Resolves names of users: a file, a baseline or a kept session."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gpumem import _gpumem
from gpumem.cli.exits import CommandError
from gpumem.types import Recording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpumem._gpumem import OtherFile

NAMED = """a file, a baseline, a folder of traces, or a session: `last`, or the beginning of its id
(see `sessions`); of a job: a folder of what its ranks recorded, or several files"""


def recording(named: str) -> Recording:
    """Return the recording that a name stands for."""
    found = opened(named)
    if not isinstance(found, Recording):
        message = f"{named} is not a recording: it is {found._kind}"
        hint = f"hint: `jupyter gpumem report {named}` shows it"
        raise CommandError(f"{message}\n{hint}")
    return found


def all_of(named: list[str], notebook: str | None = None) -> Recording | OtherFile:
    """Return what one name stands for; of several, which are files, the ranks of a job."""
    if len(named) == 1:
        return opened(named[0], notebook)
    missing = next((name for name in named if not Path(name).exists()), None)
    if missing is not None:
        raise CommandError(f"cannot read {missing}: several names are files of one job's ranks")
    with _readable(named[0]):
        return _gpumem._ranks(named)


def opened(named: str, notebook: str | None = None) -> Recording | OtherFile:
    """Return what a name stands for; cells of the notebook are named in it."""
    with _readable(named):
        found: Recording | OtherFile = _gpumem._open(named, notebook=notebook)
        return found


@contextmanager
def _readable(named: str) -> Iterator[None]:
    """Inside, what the system refuses ends the command."""
    try:
        yield
    except OSError as error:
        message = f"cannot read {error.filename or named}: {error.strerror or error}"
        raise CommandError(message.replace("%gpumem", "jupyter gpumem")) from None
