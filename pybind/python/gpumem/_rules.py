"""The thresholds of the verdicts, as a user sets them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gpumem import _gpumem

_USUAL: Any = _gpumem._default_rules()


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Thresholds of the verdicts.

    A report uses those that were set when its session was recorded:
    ``%config GpuMem.rules = {"min_runs": 12}`` sets them for the session,
    ``gpumem.report(rules=gpumem.Rules(min_runs=12))`` for one report.

    Raises:
        ValueError: a threshold cannot have that value.
    """

    min_runs: int = _USUAL["min_runs"]
    """Fewest runs (or steps) on which growth may be called a leak."""
    min_growth: int = _USUAL["min_growth"]
    """Growth in bytes over all runs below which a device is flat."""
    min_host_growth: int = _USUAL["min_host_growth"]
    """The same for host memory, where the interpreter's own growth is noise."""
    fragmentation_ratio: float = _USUAL["fragmentation_ratio"]
    """Share of what is reserved that must be free in pieces for a finding."""
    block_t: float = _USUAL["block_t"]
    """The t-statistic of the increments of block minima must exceed this."""
    last_quarter_share: float = _USUAL["last_quarter_share"]
    """The minimum share of the lasting growth in the last quarter of the runs."""
    trend_z: float = _USUAL["trend_z"]
    """The Mann-Kendall z, corrected for autocorrelation, must exceed this."""
    quarter_share: float = _USUAL["quarter_share"]
    """Each later quarter must carry more than this share of the growth."""
    relative_rise: float = _USUAL["relative_rise"]
    """The rise over the series must exceed this many standard deviations."""
    tail_block_t: float = _USUAL["tail_block_t"]
    """``block_t`` for the second half of the series."""
    tail_rise: float = _USUAL["tail_rise"]
    """``relative_rise`` for the second half of the series."""

    def __post_init__(self) -> None:
        """Refuse what a threshold cannot be."""
        _gpumem._check_rules(asdict(self))


def judged_by(recording: _gpumem.Recording, rules: Rules | None) -> _gpumem.Recording:
    """Return the recording under these rules; without any as it is."""
    if rules is None:
        return recording
    return recording._with_rules(thresholds(rules))


def thresholds(rules: object) -> dict[str, float]:
    """Return each threshold by its name."""
    if isinstance(rules, Rules):
        return asdict(rules)
    message = f"gpumem.Rules are needed, not {rules!r}"
    raise TypeError(message)
