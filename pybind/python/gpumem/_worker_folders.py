"""The default folder in which workers of a cluster keep their sessions."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from gpumem import _gpumem

N_CLUSTERS = 20
"""The number of clusters whose folders are kept on a machine."""


def new(cluster: str) -> str:
    """Return where the workers of that cluster keep their sessions on this machine."""
    place = _private_place()
    with contextlib.suppress(OSError):
        folders = sorted(place.iterdir(), key=lambda it: it.lstat().st_mtime, reverse=True)
        for old in folders[N_CLUSTERS:]:
            _gpumem._delete_sessions(old)
    return str(place / cluster)


def _private_place() -> Path:
    """Return a folder that every worker of this user finds and that no other user can have made."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    for base in (tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR")):
        if base is not None:
            place = Path(base, f"gpumem-workers-{user}")
            with contextlib.suppress(OSError):
                place.mkdir(mode=0o700, exist_ok=True)
                if _is_private(place):
                    return place
    return Path(tempfile.mkdtemp(prefix="gpumem-workers-"))


def _is_private(place: Path) -> bool:
    """Whether only this user can write to a folder or replace it."""
    if not hasattr(os, "getuid"):
        # The temporary folder is the user's own.
        return True
    opened = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(opened)
    finally:
        os.close(opened)
    around = place.parent.stat()
    others_write = around.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    is_safe = around.st_uid in (0, os.geteuid()) and (
        not others_write or around.st_mode & stat.S_ISVTX
    )
    is_own = found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == stat.S_IRWXU
    return bool(is_safe and is_own)
