"""What people name: the file of a recording, a session that is kept, or a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpumem import GpuMemError, Recording, _gpumem, load
from gpumem.cli.exits import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpumem._other_file import OtherFile

NAMED = """a file, a folder of traces, `last`, the beginning of a session's id (see `sessions`),
or a baseline; of a job: a folder of what its ranks recorded, or several files"""


def recording(named: str) -> Recording:
    """Return the recording of a file, a baseline or a session, in this order."""
    opened = any_file(named)
    if not isinstance(opened, Recording):
        message = f"{named} is not a recording: it is {opened._KIND}"
        hint = f"hint: `jupyter gpumem report {named}` shows it"
        raise CommandError(f"{message}\n{hint}")
    return opened


def all_of(named: list[str], notebook: str | None = None) -> Recording | OtherFile:
    """Return what one name stands for; of several, which are files, the ranks of a job."""
    if len(named) == 1:
        return any_file(named[0], notebook)
    missing = next((name for name in named if not Path(name).exists()), None)
    if missing is not None:
        raise CommandError(f"cannot read {missing}: several names are files of one job's ranks")
    return _read(lambda: _gpumem._ranks(named), named[0])


def any_file(named: str, notebook: str | None = None) -> Recording | OtherFile:
    """Return the same, or what another program wrote while that notebook ran."""
    if Path(named).exists():
        return _of_file(named, notebook)
    try:
        if named in _gpumem._baseline_names():
            return _gpumem._baseline_recording(named)
        return _gpumem._stored_recording(named)
    except KeyError as error:
        hint = "hint: `jupyter gpumem sessions` lists the sessions that are kept"
        reason = str(error.args[0]).partition(": %gpumem")[0]
        message = f"there is no file {named!r}, and {reason}\n{hint}"
        raise CommandError(message) from None
    except GpuMemError as error:
        raise CommandError(str(error)) from None


def _of_file(path: str, notebook: str | None) -> Recording | OtherFile:
    return _read(lambda: load(path, notebook=notebook), path)


def _read(load_it: Callable[[], Recording | OtherFile], path: str) -> Recording | OtherFile:
    try:
        return load_it()
    except GpuMemError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        named = error.filename or path
        raise CommandError(f"cannot read {named}: {error.strerror or error}") from None
