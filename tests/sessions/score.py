"""Runs the sessions and counts how often gpumem was right.

    python -m tests.sessions.score [FOLDER] [NAME …]   the sessions of a folder (cases), or some
    … --fixes                           also runs each leak again with the proposed fix
    … --update                          also writes what is wrong into `wrong.txt` (with --fixes)
    … --said                            also prints the findings that are wrong

A NAME is the beginning of a session's name. README.md defines what is counted.
"""

from __future__ import annotations

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.forked import run_module

from .run import SETTINGS

HERE = Path(__file__).resolve().parent
CASES = HERE / "cases"
LIST = HERE / "wrong.txt"
GROWTH = ("leak", "growing")
FALSE = (*GROWTH, "spike", "rerun_doubling")
# What may be wrong of a leak in one run of two: a busy machine misses looks. An alarm may never.
MAY_BE_MISSED = frozenset({"found", "holder", "bytes"})
# A package may itself need another one, and say so with the more general error.
MISSING = ("ModuleNotFoundError", "ImportError")
END = "@@@"
SECONDS = 120
# glibc gives freed blocks of 128 KiB and more back at once, so that what a fix frees is seen.
GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}

Row = dict[str, Any]
Said = dict[str, Any]
Finding = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """What gpumem said of a session, and how that compares with the truth."""

    row: Row
    said: Said

    @property
    def skipped(self) -> str | None:
        """What the session needs and is not installed."""
        skipped: str | None = self.row.get("skipped")
        return skipped

    @property
    def wrong(self) -> set[str]:
        """The aspects that gpumem got wrong."""
        if self.skipped:
            return set()
        if self.row["truth"] != "leak":
            return {aspect for aspect in ("clean", "quiet") if not self.row[aspect]}
        is_wrong = {
            "found": not self.row["found"],
            "holder": self.row.get("holder") in {"wrong", "no name"},
            "bytes": self.row.get("bytes") is False,
            "fix": self.row.get("fix") in {"raises", "still grows"},
        }
        return {aspect for aspect, is_so in is_wrong.items() if is_so}


@dataclass(frozen=True)
class Listed:
    """The aspects of a session that the list says are wrong."""

    always: frozenset[str] = frozenset()
    at_times: frozenset[str] = frozenset()

    @classmethod
    def read(cls, text: str) -> Listed:
        """Read `clean quiet?`."""
        aspects = text.split()
        at_times = frozenset(it.rstrip("?") for it in aspects if it.endswith("?"))
        return cls(frozenset(it for it in aspects if not it.endswith("?")), at_times)

    def text(self) -> str:
        """Return what :meth:`read` reads."""
        return " ".join([*sorted(self.always), *(f"{it}?" for it in sorted(self.at_times))])


def read_list() -> dict[str, Listed]:
    """Return what the list says of each session."""
    lines = LIST.read_text("utf-8").splitlines()
    entries = [line.split(":", 1) for line in lines if line and not line.startswith("#")]
    return {name: Listed.read(aspects) for name, aspects in entries}


def update_list(judged: list[Judged]) -> None:
    """Write into the list what is wrong now; what did not run stays as it is."""
    listed = read_list()
    for it in judged:
        if not it.skipped:
            name = it.row["name"]
            at_times = listed.get(name, Listed()).at_times
            listed[name] = Listed(frozenset(it.wrong - at_times), at_times)
    lines = [f"{name}: {it.text()}" for name, it in sorted(listed.items()) if it.text()]
    head = [line for line in LIST.read_text("utf-8").splitlines() if line.startswith("#")]
    LIST.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")


def sessions(folder: Path = CASES, names: list[str] | None = None) -> list[Path]:
    """Return the sessions of a folder whose names begin so."""
    paths = sorted(folder.glob("*.py"))
    return [path for path in paths if not names or path.stem.startswith(tuple(names))]


def world_of(path: Path) -> str | None:
    """Return the world that a session's header names."""
    header = re.search(r"^# world: (\w+)$", path.read_text("utf-8"), re.MULTILINE)
    return header and header[1]


def run(path: Path, *options: str) -> Said:
    """Run a session in a process of its own."""
    torch = ("torch",) if world_of(path) == "torch" else ()
    done = run_module(
        "tests.sessions.run",
        path.resolve(),
        *options,
        after=(*torch, "IPython", "gpumem.magics"),
        timeout=SECONDS,
        environment=os.environ | SETTINGS | (GIVES_BACK if "--replace" in options else {}),
    )
    if END not in done.stdout:
        raise RuntimeError(f"{path.name}: {done.stderr[-1500:]}")
    said: Said = json.loads(done.stdout.rsplit(END, 1)[1])
    return said


def missing(said: Said) -> str | None:
    """Return the error of a cell that imports what is not installed."""
    errors = (entry["error"] or "" for entry in said["log"])
    return next((error for error in errors if error.startswith(MISSING)), None)


def growth(said: Said) -> list[Finding]:
    """Return the findings that tell of growth."""
    return [finding for finding in said["findings"] if finding["kind"] in GROWTH]


def names(finding: Finding) -> list[str]:
    """Return the names of a finding's first holder: several if they share the memory."""
    holders = finding["holders"]
    return re.split(r", | and ", holders[0]["name"]) if holders else []


def last_kept(said: Said, n: int = 4) -> float:
    """Return what the last runs of the last cell kept, on average."""
    source = said["log"][-1]["source"]
    runs = [entry for entry in said["log"] if entry["source"] == source]
    kept: list[int] = [entry["after"] - entry["before"] for entry in runs][-n:]
    return sum(kept) / len(kept)


def try_fix(path: Path, said: Said, finding: Finding) -> str:
    """Run a leak again with the fix that its finding proposes."""
    fix = finding["fix"]
    if not fix:
        return "none"
    if fix["before"] is None:
        return "by hand"
    body = "\n".join(entry["source"] for entry in said["log"])
    at = body.find(fix["before"].splitlines()[0])
    indent = body[body.rfind("\n", 0, at) + 1 : at]
    after = fix["after"].replace("\n", "\n" + ("" if indent.strip() else indent))
    again = run(path, "--replace", json.dumps({"before": fix["before"], "after": after}))
    if has_failed(again) and not has_failed(said):
        return "raises"
    meant = int(said["truth"].get("meant", 0))
    is_small = last_kept(again) - meant <= max(0.1 * (last_kept(said) - meant), 4096)
    return "cures" if is_small and not growth(again) else "still grows"


def has_failed(said: Said) -> bool:
    """Tell whether a cell raised."""
    return any(entry["error"] for entry in said["log"])


def n_alarms(said: Said) -> int:
    """Count the cells below which gpumem printed a ▲."""
    outputs = (entry["out"].splitlines() for entry in said["log"])
    return sum(any(line.startswith("▲") for line in lines) for lines in outputs)


def judge(path: Path, *, fixes: bool) -> Judged:
    """Run a session, and compare what was said with its truth."""
    said = run(path)
    row: Row = {"name": path.stem, "truth": said["truth"]["truth"]}
    if gone := missing(said):
        row["skipped"] = gone
    elif row["truth"] == "leak":
        row |= judge_leak(path, said, fixes=fixes)
    else:
        row |= judge_healthy(said)
    return Judged(row, said)


def judge_healthy(said: Said) -> Row:
    """Say whether a session without a leak is clean, and was quiet."""
    truth, alarms = said["truth"], n_alarms(said)
    kinds = {finding["kind"] for finding in said["findings"]} & set(FALSE)
    if truth["truth"] == "undecided":
        kinds -= {"growing"}
    kinds |= {"known leak" for finding in said["findings"] if finding["known_leak"]}
    return {
        "clean": not kinds,
        "quiet": alarms == 0 or truth.get("alarms") == "allowed",
        "said": " ".join(sorted(kinds)) or "-",
        "alarms": alarms,
    }


def judge_leak(path: Path, said: Said, *, fixes: bool) -> Row:
    """Say whether a leak is found, its holder and bytes are right, and its fix cures."""
    found = growth(said)
    if not found:
        return {"found": False, "said": "-"}
    truth = said["truth"]
    wanted = truth.get("holder", ".*")
    is_named = [any(re.fullmatch(wanted, name) for name in names(it)) for it in found]
    finding = found[is_named.index(True)] if any(is_named) else found[0]
    row: Row = {"found": True, "said": found[0]["kind"]}
    if wanted == ".*":
        row["holder"] = "any"
    elif any(is_named):
        row["holder"] = "right"
    else:
        row["holder"] = "wrong" if any(map(names, found)) else "no name"
    if float(truth.get("bytes", 0)) and finding["bytes_per_run"]:
        off = finding["bytes_per_run"] / float(truth["bytes"]) - 1
        row["bytes_off"] = round(off, 3)
        row["bytes"] = abs(off) <= (0.02 if truth.get("world") == "sim" else 0.05)
    if fixes:
        row["fix"] = try_fix(path, said, finding)
    return row


def summary(rows: list[Row]) -> str:
    """Return the score: how often gpumem was right."""
    ran = [row for row in rows if "skipped" not in row]
    leaks = [row for row in ran if row["truth"] == "leak"]
    healthy = [row for row in ran if row["truth"] != "leak"]

    def count(key: str, value: Any = True) -> int:  # noqa: FBT002 (the value that is looked for)
        return sum(row.get(key) == value for row in ran)

    has_holder = [row for row in leaks if row.get("holder") != "any"]
    has_bytes = [row for row in leaks if "bytes" in row]
    parts = [
        f"leaks {len(leaks)}: found {count('found')}",
        f"holder right {count('holder', 'right')} of {len(has_holder)}",
        f"bytes right {count('bytes')} of {len(has_bytes)}",
    ]
    if any("fix" in row for row in leaks):
        outcomes = ("cures", "raises", "still grows", "by hand", "none")
        parts.append("fix " + ", ".join(f"{it} {count('fix', it)}" for it in outcomes))
    return (
        f"{', '.join(parts)}\n"
        f"healthy {len(healthy)}: clean {count('clean')}, quiet {count('quiet')};"
        f" skipped {len(rows) - len(ran)}"
    )


def details(judged: Judged) -> str:
    """Return the findings and the alarms of a session, for who wants to see why it is wrong."""
    lines = [f"{judged.row['name']}: {judged.said['truth'].get('about', '')}"]
    for it in judged.said["findings"]:
        fix = it["fix"] and f"{it['fix']['before']!r} -> {it['fix']['after']!r}"
        title = f"{it['kind']}: {it['title']}"
        lines.append(f"  {title} | {names(it)} | {it['bytes_per_run']} | fix {fix}")
    outputs = (entry["out"].splitlines() for entry in judged.said["log"])
    alarms = [line for lines in outputs for line in lines if line.startswith("▲")]
    lines += [f"  {line}" for line in alarms[:1]]
    return "\n".join(lines)


def line(row: Row) -> str:
    """Return a session's row as text."""
    figures = " ".join(f"{key}={value}" for key, value in row.items() if key != "name")
    return f"{figures}  {row['name']}"


def main() -> None:
    """Judge the sessions that the command line names."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    folder = Path(words.pop(0)) if words and Path(words[0]).is_dir() else CASES
    fixes = "--fixes" in sys.argv
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = list(pool.map(lambda path: judge(path, fixes=fixes), sessions(folder, words)))
    if "--update" in sys.argv:
        update_list(judged)
    lines = [line(it.row) for it in judged]
    if "--said" in sys.argv:
        lines += [details(it) for it in judged if it.wrong]
    print("\n".join(lines))
    print(f"\n{summary([it.row for it in judged])}")


if __name__ == "__main__":
    main()
