"""The settings of the extension: ``c.GpuMem`` in a profile, ``%config GpuMem`` in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traitlets import Bool, Dict, Enum, TraitError, Unicode, Union, validate
from traitlets.config import Config, Configurable

from gpumem import _gpumem
from gpumem._sizes import size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell
    from traitlets import Bunch

# The shortest interval that the sampler supports.
DEFAULT_INTERVAL = "1ms"


class GpuMem(Configurable):
    """Defaults of the gpumem extension."""

    record_all = Bool(
        default_value=False,
        help="Record every cell from the start, like `%gpumem on`.",
    ).tag(config=True)
    quiet = Bool(
        default_value=False,
        help="Print nothing after a cell without `%%gpumem`.",
    ).tag(config=True)
    holders = Bool(
        default_value=True,
        help="Search for the names that hold memory after a cell that leaves more than it found.",
    ).tag(config=True)
    loops = Bool(
        default_value=True,
        help="Count loops that run longer than 0.2 s, and read levels between their iterations.",
    ).tag(config=True)
    foretell = Bool(
        default_value=True,
        help="Say below a running cell, once, that its loop will fill the device in five minutes.",
    ).tag(config=True)
    interval = Unicode(
        default_value=DEFAULT_INTERVAL,
        help="Minimum time between samples, from 1ms to 1s; long runs use longer intervals.",
    ).tag(config=True)
    source_text = Enum(
        ["full", "hash", "none"],
        default_value="full",
        help="""How much of a cell's source a recording keeps. Labels are kept with every setting:
        those of `%%gpumem -l`, `gpumem.record`, `gpumem.mark` and `gpumem.steps`.""",
    ).tag(config=True)

    store = Union(
        [Bool(), Unicode()],
        default_value=True,
        help="""Keep each session on the disk: True (in Jupyter's data folder), False, or the path
        of a folder. Only you can read the files.""",
    ).tag(config=True)

    snapshot_on_oom = Unicode(
        default_value="",
        help="""Where to write PyTorch's memory snapshot when a recorded cell runs out of GPU
        memory, each block with the path that holds it: a folder, or a file that ends in .pickle.
        No file is replaced: the next one gets a number. Off by default.""",
    ).tag(config=True)
    flight_recorder = Unicode(
        default_value="",
        help="""Memory for PyTorch's own history of allocations while cells are recorded, such as
        64MiB: every snapshot then has the latest allocations and their stacks. A history that you
        begin yourself is left alone. Off by default.""",
    ).tag(config=True)

    rules = Dict(
        help="""Thresholds of the verdicts that are not the defaults, as
        `{"min_runs": 12, "min_growth": 4 << 20}`: those of `gpumem.Rules`. They stand in the
        recording, and the sliders of a report start from them.""",
    ).tag(config=True)

    def update_config(self, config: Config) -> None:
        """Take new defaults, as ``%config`` does.

        A value that is refused would stay in the shell's configuration, and break the next
        ``%reload_ext``: the value in force replaces it.

        Raises:
            TraitError: a value is not valid.
        """
        try:
            super().update_config(config)
        except TraitError:
            self._put_back(config)
            self._put_back(self.config)
            raise

    def _put_back(self, config: Config) -> None:
        """Replace the values in ``config`` by those in force."""
        section = config.get("GpuMem", {})
        for name in self.trait_names(config=True):
            if name in section:
                section[name] = getattr(self, name)

    @validate("rules", "flight_recorder", "interval")
    def _check(self, proposal: Bunch) -> object:
        name = proposal.trait.name
        checks: dict[str, Callable[[Any], object]] = {
            "rules": _gpumem._check_rules,
            "flight_recorder": flight_recorder_bytes,
            "interval": _gpumem._check_interval,
        }
        try:
            checks[name](proposal.value)
        except ValueError as error:
            message = f"GpuMem.{name}: {error}"
            raise TraitError(message) from None
        return proposal.value


def flight_recorder_bytes(text: str) -> int:
    """Return what the history may take of memory, in bytes; 0 for none."""
    return size_bytes(text) if text.strip() else 0


def settings_of(shell: InteractiveShell) -> GpuMem:
    """Return the settings of the shell's profile; a wrong one is logged and left out."""
    given = shell.config.get("GpuMem", {})
    for name, value in list(given.items()):
        reason = _refused(name, value)
        if reason is not None:
            del given[name]
            _gpumem._log(f"{reason}; the default is used")
    return GpuMem(parent=shell)


def _refused(name: str, value: object) -> str | None:
    """Return why a setting is not valid."""
    try:
        GpuMem(config=Config({"GpuMem": {name: value}}))
    except TraitError as error:
        return str(error)
    return None
