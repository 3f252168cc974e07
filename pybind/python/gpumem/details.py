"""What only one kind of finding has: ``Finding.details``. Sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpumem._fields import read


@dataclass(frozen=True)
class Reason:
    """Why growth is called what it is, with the figures of that reason; the others are None."""

    type: str
    """``too_few_runs``, ``stopped``, ``first_writes`` (arrays that were allocated before are
    written), ``one_tensor`` (replaced by a larger one each time), ``fills`` (its container has a
    bound), ``not_collected`` (a loop's growth that no collection explains), ``waits_for_collector``
    (Python's next garbage collection frees it), ``allocations_grew``, ``allocations_stayed``,
    ``may_be_meant`` (neither an accident nor soon a problem), ``meant`` (a cell uses all of it),
    ``accident``, ``full_soon``, ``takes_much``, ``holder_unknown`` or ``not_beyond_doubt``."""
    n_runs: int | None = None
    """``full_soon``: so many more fill the device. Live allocations: of so many."""
    n_grown: int | None = None
    """``allocations_grew``: in so many."""
    n: int | None = None
    """``fills``: so many entries of at most ``most``."""
    most: int | None = None
    when_full_bytes: int | None = None
    n_bytes: int | None = None
    """``takes_much``: so much of the device."""


@dataclass(frozen=True)
class SeriesGrowth:
    """How a series of levels grows: of ``growing`` devices, ``fragmentation``, ``growing_gap``."""

    shape: str
    """The shape of the series: ``growth``, ``warm-up``, ``step``, ..."""
    interval: tuple[int, int]
    """The confidence interval of 95 % of the finding's ``bytes_per_run``."""
    total_bytes: int
    """What it kept over all of these runs."""
    sparkline: tuple[float, ...]
    """The series as judged."""


@dataclass(frozen=True)
class Growth(SeriesGrowth):
    """How the runs of a cell, or the steps in one, grow: of ``leak``, ``growing``, ``settled``."""

    by: str | None
    """What grew it while the cell ran, where that is not the cell: ``worker (thread)``."""
    steps: bool
    """It counts steps inside a run, not runs."""
    loop: str | None
    """The loop whose iterations it counts, if you have not marked them: ``line 3``."""
    n_grown: int
    """In how many runs (or steps) it grew."""
    n_known: int
    """Of how many that is known."""
    n_missing: int
    """How many more would decide, if there are too few."""
    headroom_bytes: int | None
    """What is left for growth on the device."""
    runs_to_oom: int | None
    """How many more runs (or steps) until memory runs out at this rate."""
    nanos_to_oom: int | None
    """How long those steps take; of runs it is not known."""


@dataclass(frozen=True)
class Fragmentation:
    """Free memory between held blocks."""

    inactive_split_bytes: int
    reserved_bytes: int
    largest_free_bytes: int | None
    reclaimable_bytes: int
    """What ``empty_cache()`` gives back."""


@dataclass(frozen=True)
class Pressure:
    """A device that is nearly full."""

    n_flushes: int
    """How often the allocator flushed its cache."""


@dataclass(frozen=True)
class Spike:
    """What one run needed above its ends, and what is usual."""

    excess_bytes: int
    usual_bytes: int


@dataclass(frozen=True)
class RepeatedAllocation:
    """Runs that take memory from the driver and give it back."""

    n_all_runs: int
    """How many runs of the cell there were."""


@dataclass(frozen=True)
class InefficientAllocation:
    """Runs that reserve much more than they use."""

    used_share: float
    """What the latest such run used of what it reserved: 0 to 1."""


@dataclass(frozen=True)
class RerunDoubling:
    """The two copies that a cell holds at once when it is run again."""

    old_bytes: int
    """What the runs before it had left."""
    new_bytes: int
    """What it built."""
    rose_bytes: int
    """How far it rose above its start."""
    n_reruns: int


@dataclass(frozen=True)
class LongLivedIntermediates:
    """A line whose results live through most of a run."""

    line: int
    """The number of the line in the cell, from 1."""
    held_bytes: int
    peak_bytes: int


@dataclass(frozen=True)
class Part:
    """A part of a device when memory ran out."""

    name: str
    """``tensors``, ``cache``, ``context``, ``other_processes`` or ``free``."""
    n_bytes: int


@dataclass(frozen=True)
class OomHolder:
    """A name that held memory when it ran out."""

    name: str
    kind: str
    used_bytes: int


@dataclass(frozen=True)
class OutOfMemory:
    """What was wanted and what there was; None is unknown."""

    wanted_bytes: int | None
    free_bytes: int | None
    total_bytes: int | None
    largest_free_bytes: int | None
    missing_bytes: int | None
    """How much more would have been enough."""
    survived: bool
    """The cell went on after it."""
    parts: tuple[Part, ...]
    holders: tuple[OomHolder, ...]


@dataclass(frozen=True)
class Retention:
    """What a place of IPython's or Python's keeps and none of your names reaches."""

    place: str
    """``output_history``, ``traceback``, ``debugger`` or ``run_module``."""
    n_bytes: int
    name: str
    """The name that keeps the largest object."""
    path: str
    """The way to the largest object."""
    what: str
    """What the largest object is."""
    release: str | None
    """What to type so that it lets go."""
    since_run: int
    """The run that left it there, as counted in the recording."""
    since_execution_count: int | None
    """Jupyter's number of that run."""


Details = (
    SeriesGrowth
    | Growth
    | Fragmentation
    | Pressure
    | Spike
    | RepeatedAllocation
    | InefficientAllocation
    | RerunDoubling
    | LongLivedIntermediates
    | OutOfMemory
    | Retention
)

BY_TYPE: dict[str, type[Details]] = {
    "growth": Growth,
    "unattributed_growth": SeriesGrowth,
    "fragmentation": Fragmentation,
    "reserved_growth": SeriesGrowth,
    "pressure": Pressure,
    "spike": Spike,
    "repeated_allocation": RepeatedAllocation,
    "inefficient_allocation": InefficientAllocation,
    "rerun_doubling": RerunDoubling,
    "growing_gap": SeriesGrowth,
    "long_lived_intermediates": LongLivedIntermediates,
    "out_of_memory": OutOfMemory,
    "retention": Retention,
}


def details(entry: dict[str, Any]) -> Details:
    """Return the details of JSON's ``entry``, whose ``type`` names them."""
    return read(BY_TYPE[entry["type"]], entry)
