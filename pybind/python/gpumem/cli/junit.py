"""Results of ``check`` as JUnit's XML: a suite for each notebook, a test for each code cell."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gpumem import _gpumem
from gpumem.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpumem.cli.check import Checked
    from gpumem.cli.gate import Violation


def document(checked: Iterable[Checked]) -> bytes:
    """Return the file's content."""
    suites = ET.Element("testsuites", name="gpumem")
    for it in checked:
        suites.append(_suite(it))
    ET.indent(suites)
    content: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return content


def _suite(checked: Checked) -> ET.Element:
    path = _gpumem._printable(str(checked.path))
    suite = ET.Element("testsuite", name=path)
    cases: dict[str, ET.Element] = {}

    def case(name: str) -> ET.Element:
        if name not in cases:
            attributes = {"name": _gpumem._printable(name), "classname": path}
            cases[name] = ET.SubElement(suite, "testcase", attributes)
        return cases[name]

    # By its text alone: a name that depends on what was measured would be another test.
    def name_of(count: int | None, other: str) -> str:
        return other if count is None else checked.cells.get(count, other)

    for name in checked.cells.values():
        case(name)
    for violation in checked.violations:
        count = None if violation.cell is None else violation.cell.execution_count
        _add(case(name_of(count, violation.place)), violation)
    for allowed in checked.allowed:
        count = None if allowed.cell is None else allowed.cell.execution_count
        out = ET.SubElement(case(name_of(count, allowed.place)), "system-out")
        out.text = "\n".join(["allowed", *allowed.lines()])
    if checked.broken is not None:
        name = name_of(checked.failed, "runs to its end")
        error = ET.SubElement(case(name), "error", message=_gpumem._printable(checked.broken))
        error.text = terminal.lines(checked.traceback)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(it.find("failure") is not None for it in cases.values())))
    suite.set("errors", str(sum(it.find("error") is not None for it in cases.values())))
    return suite


def _add(case: ET.Element, violation: Violation) -> None:
    about = {"message": _gpumem._printable(violation.title), "type": violation.kind}
    ET.SubElement(case, "failure", about).text = "\n".join(violation.lines())
