"""Results of ``check`` as JUnit's XML: a suite for each notebook, a test for each code cell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpumem.cli.check import Checked
    from gpumem.cli.gate import Violation

# Characters that XML 1.0 cannot hold.
INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(checked: Iterable[Checked]) -> bytes:
    """Return the file's content."""
    suites = ET.Element("testsuites", name="gpumem")
    for it in checked:
        suites.append(_suite(it))
    ET.indent(suites)
    content: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return content


def _suite(checked: Checked) -> ET.Element:
    suite = ET.Element("testsuite", name=_valid(str(checked.path)))
    cases: dict[str, ET.Element] = {}

    def case(name: str) -> ET.Element:
        if name not in cases:
            attributes = {"name": _valid(name), "classname": _valid(str(checked.path))}
            cases[name] = ET.SubElement(suite, "testcase", attributes)
        return cases[name]

    for label in checked.cells:
        case(label)
    for violation in checked.violations:
        _add(case(violation.place), violation)
    if checked.broken is not None:
        error = ET.SubElement(case("runs to its end"), "error", message=_valid(checked.broken))
        error.text = _valid(checked.traceback)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(it.find("failure") is not None for it in cases.values())))
    suite.set("errors", str(sum(it.find("error") is not None for it in cases.values())))
    return suite


def _add(case: ET.Element, violation: Violation) -> None:
    about = {"message": _valid(violation.title), "type": violation.kind}
    ET.SubElement(case, "failure", about).text = _valid("\n".join(violation.lines()))


def _valid(text: str) -> str:
    return INVALID.sub("\ufffd", text)
