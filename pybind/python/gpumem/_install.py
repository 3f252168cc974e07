"""Puts the magics, the transformer and the settings into a shell, and takes them out again."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpumem import _completion, _gpumem
from gpumem._completion import Completer
from gpumem._magic_arguments import parser_of
from gpumem._settings import flight_recorder_bytes, settings_of
from gpumem.magics import BELONG, CELL_MAGIC, GpuMemMagics, blank_cell_magic

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell


def install(shell: InteractiveShell, extension: _gpumem.Extension) -> Callable[[], None]:
    """Put the magics, the transformer and the traits into a shell; return how to undo it."""
    settings = settings_of(shell)

    def configure(_change: object = None) -> None:
        extension.configure(
            settings.record_all,
            settings.quiet,
            settings.source_text,
            settings.holders,
            settings.interval,
        )
        extension.judge_by(settings.rules)
        place = settings.snapshot_on_oom
        # The folder of then may not be that of now.
        _gpumem._snapshot_on_oom(Path(place).expanduser().absolute() if place else None)
        _gpumem._count_loops(settings.loops, settings.foretell)
        _gpumem._flight_recorder(flight_recorder_bytes(settings.flight_recorder))
        if not _gpumem._is_disabled():
            store = settings.store
            _gpumem._keep_in(
                str(Path(store).expanduser()) if isinstance(store, str) else store,
                _notebook(shell),
                platform.node(),
                sys.orig_argv,
            )

    configure()
    settings.observe(configure)
    shell.configurables.append(settings)
    shell.input_transformers_cleanup.append(blank_cell_magic)
    registered = shell.magics_manager.magics
    before = {kind: dict(magics) for kind, magics in registered.items()}
    magics = GpuMemMagics(shell, extension, settings)
    shell.register_magics(magics)
    remove_completers = _completion.install(shell, _completers())

    def uninstall() -> None:
        settings.unobserve(configure)
        remove_completers()
        # The user may already have removed any of it.
        for configurable in (settings, magics):
            _take_out(shell.configurables, configurable)
        _take_out(shell.input_transformers_cleanup, blank_cell_magic)
        shell.magics_manager.registry.pop(type(magics).__name__, None)
        for kind, names in magics.magics.items():
            for name in names:
                registered[kind].pop(name, None)
                if name in before[kind]:
                    registered[kind][name] = before[kind][name]

    return uninstall


def _completers() -> dict[str, Completer]:
    of_report = Completer(parser_of(GpuMemMagics.show_report))
    belong = {name: actions for name, (actions, _) in BELONG.items()}
    return {
        CELL_MAGIC: Completer(parser_of(GpuMemMagics.record)),
        "%gpumem": Completer(parser_of(GpuMemMagics.control), belong, {"report": of_report}),
        "%gpumem_report": of_report,
    }


def _notebook(shell: InteractiveShell) -> str | None:
    """Return the notebook's path, if its frontend provides it: Jupyter's server or VS Code."""
    path = os.environ.get("JPY_SESSION_NAME") or shell.user_ns.get("__vsc_ipynb_file__")
    return path if isinstance(path, str) else None


def _take_out(entries: list[Any], entry: object) -> None:
    if entry in entries:
        entries.remove(entry)
