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

    for label in checked.cells:
        case(label)
    for violation in checked.violations:
        _add(case(violation.place), violation)
    if checked.broken is not None:
        error = ET.SubElement(
            case("runs to its end"), "error", message=_gpumem._printable(checked.broken)
        )
        error.text = terminal.lines(checked.traceback)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(it.find("failure") is not None for it in cases.values())))
    suite.set("errors", str(sum(it.find("error") is not None for it in cases.values())))
    return suite


def _add(case: ET.Element, violation: Violation) -> None:
    about = {"message": _gpumem._printable(violation.title), "type": violation.kind}
    ET.SubElement(case, "failure", about).text = "\n".join(violation.lines())
