"""What only one kind of finding has: ``Finding.details``. Sizes are bytes.

``cargo xtask findings`` writes this file, from what the analyzer declares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpumem._fields import read


@dataclass(frozen=True)
class Reason:
    """Why growth is called what it is."""

    type: str
    """``too_few_runs`` (too few runs to tell), ``stopped`` (it has stopped, or slows down),
    ``first_writes`` (arrays that were allocated before are written for the first time: the
    system gives a page of memory when it is touched), ``one_tensor`` (the name that grew has
    one tensor, which each run replaces by a larger one), ``fills`` (the name that grew has a
    container with a bound, which fills up), ``not_collected`` (no name holds it where only
    names count, or the name does not collect: the host in a loop), ``waits_for_collector``
    (objects that only refer to each other hold it, until the garbage collector's next run),
    ``collector_off`` (objects that only refer to each other hold it, and the garbage
    collector is off), ``allocations_grew`` (the number of live allocations rose in nearly
    every run: something accumulates), ``allocations_stayed`` (the number of live allocations
    never rose: something is replaced by a larger version), ``may_be_meant`` (a name collects
    it, and neither is there a sign of an accident, nor will it soon fill the device),
    ``trimmed`` (a cell takes older items out of the name again, at a size that is not known),
    ``meant`` (a cell uses all that the name collects), ``accident`` (what holds it shows that
    nobody meant to keep it), ``full_soon`` (the device is full within this many runs or
    steps), ``takes_much`` (it has taken a tenth of the device or more), ``holder_unknown``
    (no name is known to hold it), ``native`` (looks found no object of Python's that has
    more: memory of C or C++ code), ``not_beyond_doubt`` (it rests on one of the two tests
    alone, or chance may explain it)."""
    n: int | None = None
    """``fills``: how many entries it has."""
    most: int | None = None
    """``fills``: how many it has at most."""
    when_full_bytes: int | None = None
    """``fills``: what it has then, in bytes."""
    n_grown: int | None = None
    """``allocations_grew``: in how many runs they rose."""
    n_runs: int | None = None
    """``allocations_grew``: of how many. ``allocations_stayed``: of how many runs.
    ``full_soon``: how many more fill the device."""
    n_bytes: int | None = None
    """``takes_much``: how much it has taken."""


@dataclass(frozen=True)
class SeriesGrowth:
    """How a series of levels grows."""

    shape: str
    """The course of the series: ``flat``, ``warm-up``, ``step``, ``sawtooth``, ``spikes``,
    ``staircase``, ``growth``, ``late growth``, ``reserved-only``."""
    interval: tuple[int, int]
    """The confidence interval of 95 % of the finding's ``bytes_per_run``."""
    total_bytes: int
    """What it kept over all of these runs (or steps)."""
    sparkline: tuple[float, ...]
    """The judged series in bytes; of a cell's at most 64 points."""


@dataclass(frozen=True)
class Growth(SeriesGrowth):
    """How the runs of a cell, or the steps in one, grow."""

    by: str | None
    """What grew it while the cell ran, where that is not the cell: ``worker (thread)``."""
    steps: bool
    """It counts steps inside a run, not runs."""
    loop: str | None
    """The loop whose iterations it counts as steps, if you have not marked them: ``line 3``."""
    n_grown: int
    """In how many runs (or steps) it grew."""
    n_known: int
    """Of how many runs (or steps) that is known."""
    n_missing: int
    """How many more are needed for a verdict, if there are too few."""
    headroom_bytes: int | None
    """Bytes left for growth on the device."""
    runs_to_oom: int | None
    """How many more runs (or steps) fit at this rate, counted from the peak."""
    nanos_to_oom: int | None
    """How long these take; known of iterations and steps only."""


@dataclass(frozen=True)
class Fragmentation:
    """Free memory between held blocks."""

    inactive_split_bytes: int
    """Free inside partly used segments."""
    reserved_bytes: int
    """Reserved by the allocator."""
    largest_free_bytes: int | None
    """The largest free block, if that is known."""
    reclaimable_bytes: int
    """In segments that are entirely free: what ``empty_cache()`` returns."""


@dataclass(frozen=True)
class Pressure:
    """A device that is nearly full."""

    n_flushes: int
    """How often the allocator flushed its cache."""


@dataclass(frozen=True)
class Spike:
    """What one run needed above its ends, and what is usual."""

    excess_bytes: int
    """What the run needed above its higher end."""
    usual_bytes: int
    """The third quartile of all runs."""


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
    """The two copies that a cell held at once when it was last run again."""

    old_bytes: int
    """What earlier runs had left."""
    new_bytes: int
    """What it built."""
    rose_bytes: int
    """How far it rose above its start."""
    n_reruns: int
    """How many re-runs there were."""


@dataclass(frozen=True)
class LongLivedIntermediates:
    """A line whose results live through most of a run."""

    line: int
    """The number of the line in the cell, from 1."""
    held_bytes: int
    """What it holds through most of the run."""
    peak_bytes: int
    """The peak of the run."""


@dataclass(frozen=True)
class Part:
    """A part of a device when memory ran out."""

    name: str
    """Who used it: ``tensors``, ``cache``, ``context``, ``other_processes``, ``free``."""
    n_bytes: int
    """How much it is."""


@dataclass(frozen=True)
class OomHolder:
    """A name that held memory of the device when it ran out."""

    name: str
    """The name that the user knows; empty if the settings do not let names be kept."""
    kind: str
    """What kind of name it is: ``variable``, ``module_global``, ``thread_frame``,
    ``run_module``, ``output_history``, ``traceback``, ``debugger``, ``system``,
    ``cyclic_garbage``, ``uncollected_garbage``, ``graph_cycle``, ``gradient_cycle``,
    ``hook_cycle``, ``unnamed``."""
    used_bytes: int
    """What it held, excluding what a name before it in the list holds."""


@dataclass(frozen=True)
class Cure:
    """A way to have had enough memory."""

    command: str | None
    """The statement or the magic that does it, if one does: ``del checkpoint``."""
    frees_bytes: int | None
    """What it frees, at most."""
    suffices: str
    """Whether it is enough: ``alone``, ``together``, ``no``."""
    leaves_bytes: int
    """What is missing even with it and with those above it."""


@dataclass(frozen=True)
class OutOfMemory:
    """What was requested and what there was when memory ran out, as far as it is known."""

    wanted_bytes: int | None
    """The request that failed."""
    free_bytes: int | None
    """Free on the device, as far as the framework's limit allowed to take it."""
    total_bytes: int | None
    """The size of the device."""
    parts: tuple[Part, ...]
    """What filled the device, and what was free."""
    largest_free_bytes: int | None
    """The largest free piece of the cache."""
    missing_bytes: int | None
    """How much more would have been enough."""
    survived: bool
    """The cell continued after it."""
    holders: tuple[OomHolder, ...]
    """The names that held memory, the largest first."""
    cures: tuple[Cure, ...]
    """What would have been enough, in the order in which to try it. The finding's first
    suggestions say the same."""


@dataclass(frozen=True)
class Retention:
    """What a place of IPython's or Python's keeps and none of your names reaches."""

    place: str
    """``output_history``, ``traceback``, ``debugger`` or ``run_module``."""
    n_bytes: int
    """What nothing else keeps."""
    since_run: int
    """The run that left it there, as counted in the recording."""
    name: str
    """The name that keeps the largest object."""
    path: str
    """The Python expression of the largest object."""
    what: str
    """What the largest object is."""
    release: str | None
    """What to type so that it lets go."""
    since_execution_count: int | None
    """Jupyter's number of the run that left it there."""


@dataclass(frozen=True)
class FreedVariable:
    """A variable that is gone, or has a new object, and gave back all that it held."""

    name: str
    """The variable."""
    n_bytes: int
    """What it held."""
    execution_count: int | None
    """Jupyter's number of the run after which that was seen."""


@dataclass(frozen=True)
class Outlived:
    """A variable that is gone, and who keeps what it held."""

    name: str
    """The variable."""
    is_rebound: bool
    """It was not deleted, but has a new object: this is about the old one."""
    had_bytes: int
    """What it held."""
    n_bytes: int
    """How much of that lives on."""
    kind: str
    """What kind of name keeps the most of it: ``variable``, ``module_global``, ``thread_frame``,
    ``run_module``, ``output_history``, ``traceback``, ``debugger``, ``system``,
    ``cyclic_garbage``, ``uncollected_garbage``, ``graph_cycle``, ``gradient_cycle``,
    ``hook_cycle``, ``unnamed``."""
    holder: str
    """That name."""
    path: str
    """The Python expression of the object that keeps it."""
    what: str
    """What that is."""
    way_out: str | None
    """How it can be let go of, if that is known: ``exception``, ``hook``, ``cache``, ``part``,
    ``name``, ``collector``, ``thread``."""
    is_alone: bool
    """The name keeps all of it, and no other name does."""
    held_since_run: int | None
    """The run since which the variable held it, as counted in the recording."""
    held_since_execution_count: int | None
    """Jupyter's number of that run."""
    given_back: tuple[FreedVariable, ...]
    """Other variables that are gone, and gave back all that they held; the latest first."""
    since_run: int
    """The run after which it was found, as counted in the recording."""
    since_execution_count: int | None
    """Jupyter's number of that run."""


@dataclass(frozen=True)
class Children:
    """Living processes that runs of one cell began."""

    n_children: int
    """How many they are."""
    n_bytes: int
    """What they hold of the device together; on the host what they share with no other process."""
    pid: int
    """The number of the one that holds most."""
    name: str
    """Its name, or its program and script."""
    handle: str
    """What leads to most of them in this process: ``unknown``, ``held``, ``lost``, ``detached``."""
    deleted: str | None
    """The variable of their cell that is deleted, or ``None``, while they live."""
    since_run: int | None
    """The first run that began one of them, as counted in the recording; ``None`` if none that
    was recorded did."""
    since_execution_count: int | None
    """Jupyter's number of that run."""


Details = (
    Growth
    | SeriesGrowth
    | Fragmentation
    | Pressure
    | Spike
    | RepeatedAllocation
    | InefficientAllocation
    | RerunDoubling
    | LongLivedIntermediates
    | OutOfMemory
    | Retention
    | Outlived
    | Children
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
    "outlived": Outlived,
    "children": Children,
}


def details(entry: dict[str, Any]) -> Details:
    """Return the details of JSON's ``entry``, whose ``type`` names them."""
    return read(BY_TYPE[entry["type"]], entry)
