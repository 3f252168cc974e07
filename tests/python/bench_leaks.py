"""How often the evidence rule is right, on labelled series.

Reads ``*.jsonl.gz`` from the folder that ``GPUMEM_LEAKS`` names (default:
``tests/data/leaks``): one object a line with ``class``, ``leak`` and ``allocated``.
Writes its figures as JSON to the path given.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import gpumem

ROOT = Path(__file__).resolve().parents[2]
LENGTHS = [(5, 8), (9, 19), (20, 59), (60, 10**9)]
ALARMS = {"leak": {"leak"}, "leak_or_suspected": {"leak", "suspected"}}


def main(target: Path) -> None:
    """Judge every series and write the figures."""
    folder = Path(os.environ.get("GPUMEM_LEAKS", ROOT / "tests" / "data" / "leaks"))
    rows = [row for path in sorted(folder.glob("*.jsonl.gz")) for row in judged(path)]
    if not rows:
        sys.exit(f"no labelled series in {folder}: set GPUMEM_LEAKS to a folder of *.jsonl.gz")
    figures: dict[str, Any] = {"n_series": len(rows)}
    for name, states in ALARMS.items():
        long_enough = [row for row in rows if row["n"] >= LENGTHS[1][0]]
        overall = confusion(rows, states)
        figures[name] = overall
        figures[f"{name}_from_9"] = confusion(long_enough, states)
        figures[f"{name}_by_length"] = {
            f"{low}-{high}" if high < LENGTHS[-1][1] else f"{low}+": confusion(
                [row for row in rows if low <= row["n"] <= high], states
            )
            for low, high in LENGTHS
        }
    by_class: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        by_class[row["class"]][row["state"]] += 1
    figures["by_class"] = {name: dict(states) for name, states in sorted(by_class.items())}
    # The table of the task shows numbers at the top level.
    for name in ALARMS:
        for figure, value in figures[f"{name}_from_9"].items():
            figures[f"{name}_{figure}"] = value
    target.write_text(json.dumps(figures, indent=1))
    for name, states in figures["by_class"].items():
        print(f"  {name:<14} {states}")
    for name in ALARMS:
        for length, found in figures[f"{name}_by_length"].items():
            print(f"  {name:<14} {length:>6} runs  {found}")


def judged(path: Path) -> list[dict[str, Any]]:
    """Return class, label, length and verdict of each series of a file."""
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        {
            "class": row["class"],
            "leak": row["leak"],
            "n": len(row["allocated"]),
            "state": gpumem.classify_growth(row["allocated"]).state,
        }
        for row in rows
    ]


def confusion(rows: list[dict[str, Any]], alarms: set[str]) -> dict[str, float]:
    """Return precision, recall, F1 and false-positive rate of some verdicts."""
    found = Counter((row["leak"], row["state"] in alarms) for row in rows)
    true, false, missed = found[True, True], found[False, True], found[True, False]
    precision = true / max(1, true + false)
    recall = true / max(1, true + missed)
    return {
        "precision": round(precision, 3),
        "recall": round(recall, 3),
        "f1": round(2 * precision * recall / max(1e-9, precision + recall), 3),
        "false_positive_rate": round(false / max(1, false + found[False, False]), 3),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
