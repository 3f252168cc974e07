"""Sessions that are kept on the disk, and their recordings."""

from __future__ import annotations

import json
from dataclasses import dataclass

from gpumem import _gpumem
from gpumem._fields import read
from gpumem._table import preformatted, size, table

SHOWN = 20
"""The number of sessions that ``%gpumem sessions`` lists without ``--all``."""


@dataclass(frozen=True)
class LastRun:
    """The last run of a session. Sizes are bytes."""

    execution_count: int | None
    """Jupyter's number of its cell."""
    label: str
    is_open: bool
    """Whether it had not ended when the session did."""
    ran_out: bool
    """Whether memory ran out in it."""
    device: str | None
    """The device of which the largest part was used."""
    used_bytes: int | None
    capacity_bytes: int | None


@dataclass(frozen=True)
class StoredSession:
    """One session that is kept."""

    id: str
    """Its id for ``gpumem.open_session``; a prefix is enough."""
    notebook: str | None
    """The notebook's path, if the frontend provides it."""
    host: str | None
    """The machine, if it is another one."""
    age_nanos: int | None
    """Time since it ended, or since its last run."""
    ending: str
    """``running``, ``in_order`` (shut down or restarted), ``out_of_memory`` (in its last run),
    ``killed_by_system`` (which had run out of memory) or ``lost`` (it died for unknown reasons)."""
    n_runs: int
    last_run: LastRun | None
    worst: str | None
    """Its worst finding in words."""
    size_bytes: int
    """The size of its file."""
    damage: str | None
    """What is missing in the file, or why it cannot be read."""


class StoredSessions(list[StoredSession]):
    """Sessions kept on the disk, newest first, as a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        if not self:
            return preformatted("no sessions")
        heads = ("session", "notebook", "runs", "how it ended", "worst finding", "file")
        return table(heads, [_row(session) for session in self])


def sessions() -> StoredSessions:
    """Return the sessions that are kept on the disk, the newest first, without this one."""
    entries = json.loads(_gpumem._sessions_json())
    return StoredSessions(read(StoredSession, entry) for entry in entries)


def open_session(which: str = "last") -> _gpumem.Recording:
    """Read what was recorded in a session.

    ``which`` is the beginning of an id, or ``last``: the last session of this notebook, or of all
    if this notebook has none.

    Raises:
        KeyError: there is no such session.
        StoreError: its file cannot be read.
    """
    return _gpumem._stored_recording(which)


def _row(session: StoredSession) -> tuple[str, ...]:
    return (
        session.id,
        session.notebook or "",
        str(session.n_runs),
        session.ending.replace("_", " "),
        session.worst or session.damage or "",
        size(session.size_bytes),
    )
