"""``issue``: a session as Markdown for a bug report, without the user's source."""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem
from gpumem.cli import exits, files, opened, terminal
from gpumem.details import SeriesGrowth

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from gpumem.types import Evidence, Finding, Report

ABOUT = """Print a session as Markdown to paste into a bug report: versions, devices, and for each
finding its figures and the path to what holds the memory. It contains no source, no labels and no
file names; names of variables are in the paths. --source adds the labels of cells and the fixes."""

EXAMPLES = """examples:
  jupyter gpumem issue last
  jupyter gpumem issue last --source -o issue.md"""

_text, _code = _gpumem._markdown_text, _gpumem._markdown_code

N_FINDINGS = 10
N_LEVELS = 40


def add(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("recording", metavar="SESSION|FILE", help=opened.NAMED)
    parser.add_argument("--source", action="store_true", help="with lines of your source")
    parser.add_argument("--json", action="store_true", help="print the same as JSON")
    parser.add_argument("-o", "--output", metavar="FILE", help="write it to a file instead")
    files.add_force(parser)


def run(options: Namespace) -> int:
    """Print or write the block."""
    from gpumem import report

    files.check_targets(options, "output")
    shown = report(opened.recording(options.recording))
    content = _content(shown, with_source=options.source)
    text = terminal.json_of(content) if options.json else terminal.lines(_markdown(content))
    files.put(text, options.output)
    return exits.OK


def _content(shown: Report, *, with_source: bool) -> dict[str, Any]:
    devices = json.loads(shown.to_json())["devices"]
    kept = ("label", "name", "kind", "metric", "capacity_bytes")
    return {
        "versions": {**shown.recording._versions(), "system": platform.system()},
        "devices": [{name: it.get(name) for name in kept} for it in devices],
        "n_runs": len({row["run"] for row in shown.runs}),
        "n_findings": len(shown.findings),
        "findings": [_of_finding(it, with_source) for it in shown.findings[:N_FINDINGS]],
    }


def _of_finding(finding: Finding, with_source: bool) -> dict[str, Any]:  # noqa: FBT001 (as in the option)
    count = None if finding.cell is None else finding.cell.execution_count
    series = finding.details if isinstance(finding.details, SeriesGrowth) else None
    content: dict[str, Any] = {
        "kind": finding.kind,
        "state": finding.state,
        "withdrawn": finding.withdrawn,
        "cell": None if count is None else f"In [{count}]",
        "device": finding.device,
        "metric": finding.metric,
        "n_runs": finding.n_runs,
        "bytes_per_run": finding.bytes_per_run,
        "shape": None if series is None else series.shape,
        "series": None if series is None else [round(it) for it in series.sparkline[-N_LEVELS:]],
        "held_by": [
            {"kind": it.kind, "path": it.path, "what": it.what, "bytes": it.n_bytes}
            for it in finding.holders[:3]
        ],
        "evidence": [_figure(it) for it in finding.evidence],
    }
    if with_source:
        fix = finding.fix
        content["label"] = None if finding.cell is None else finding.cell.label
        content["fix"] = None if fix is None else {"before": fix.before, "after": fix.after}
    return content


def _figure(figure: Evidence) -> str:
    against = "" if figure.threshold is None else f", threshold {figure.threshold:.6g}"
    stands = "for it" if figure.holds else "against it"
    return f"{figure.words}: {figure.value:.6g}{against} ({stands})"


def _markdown(content: dict[str, Any]) -> str:
    versions = ", ".join(
        f"{name} {it.partition(' ')[0]}" for name, it in content["versions"].items()
    )
    lines = ["### GPU memory", "", f"- versions: {_text(versions)}"]
    lines += [f"- device: {_text(_device(it))}" for it in content["devices"]]
    lines.append(f"- runs: {content['n_runs']}, findings: {content['n_findings']}")
    for finding in content["findings"]:
        lines += _finding_lines(finding)
    return "\n".join(lines)


def _device(device: dict[str, Any]) -> str:
    capacity = device["capacity_bytes"]
    size = "" if capacity is None else f", {_gpumem.bytes_text(capacity)}"
    return f"{device['label']} ({device['name']}{size}), judged by {device['metric']}"


def _finding_lines(finding: dict[str, Any]) -> list[str]:
    state = "" if finding["state"] in {None, finding["kind"]} else f" ({finding['state']})"
    cell, rate = finding["cell"], finding["bytes_per_run"]
    places = [it for it in (cell, finding["device"]) if it is not None]
    lines = ["", f"#### {finding['kind']}{state} · {_text(' · '.join(places))}", ""]
    if rate is not None:
        each = _gpumem.bytes_text(abs(rate))
        sign = "-" if rate < 0 else "+"
        lines.append(f"- {sign}{each} each time, {finding['n_runs']} times")
    if finding["series"]:
        lines.append(f"- {finding['shape']}: {' '.join(map(str, finding['series']))}")
    for it in finding["held_by"]:
        size = _gpumem.bytes_text(it["bytes"])
        what = _text(it["what"])
        lines.append(f"- held by {_code(it['path'])}: {what}, {size} ({it['kind']})")
    lines += [f"- {_text(it)}" for it in finding["evidence"]]
    if finding.get("label"):
        lines.append(f"- cell: {_code(finding['label'])}")
    if finding.get("fix"):
        fix = finding["fix"]
        sides = (("-", fix["before"] or ""), ("+", fix["after"]))
        patch = [
            f"{sign} {_gpumem._printable(it)}" for sign, code in sides for it in code.splitlines()
        ]
        lines += ["", "```diff", *patch, "```"]
    return lines
