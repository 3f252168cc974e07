"""``status``: what gpumem can read on this machine, and what it keeps."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from gpumem.cli import exits, terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

ABOUT = """Show which sources of memory levels answer on this machine, and why the others do not,
the levels of each device, and how many sessions are kept."""

EXAMPLES = """examples:
  jupyter gpumem status
  jupyter gpumem status --json"""


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(options: Namespace) -> int:
    """Print the status."""
    from gpumem import __version__, _gpumem, sessions

    versions = {"gpumem": __version__, "python": platform.python_version()}
    is_disabled, n_sessions = _gpumem._is_disabled(), len(sessions())
    if options.json:
        states = _gpumem.source_states()
        sources = [{"source": name, "used": used, "reason": why} for name, used, why in states]
        levels = [
            {"device": label, "allocated_bytes": own, "reserved_bytes": held, "used_bytes": used}
            for label, _, own, held, used in _gpumem.device_levels()
        ]
        content = {"versions": versions, "disabled": is_disabled, "sources": sources}
        print(terminal.json_of({**content, "devices": levels, "n_sessions": n_sessions}))
        return exits.OK
    print(" · ".join(f"{name} {version}" for name, version in versions.items()))
    if is_disabled:
        print("gpumem is off: the environment variable GPUMEM_DISABLE is set")
    kept = "1 session is kept" if n_sessions == 1 else f"{n_sessions} sessions are kept"
    print(f"{kept}\n{_gpumem.sources_text()}\n\n{_gpumem.levels_text()}")
    return exits.OK
