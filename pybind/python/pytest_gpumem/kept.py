"""Objects that pytest keeps: fixtures, instances of test classes, a failed test's variables."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest import FixtureDef, Item, Session  # noqa: PT013 (only for types)

# The search for holders reads it (pybind/objects/src/walk/roots/pytest.rs).
KEPT: list[tuple[str, str, object]] = []
"""A name, a path and a value each; empty but during a search."""

FAILED = "last exception"
"""The search's name for all that an exception keeps."""


@contextlib.contextmanager
def listed(session: Session, fixtures: list[FixtureDef[Any]]) -> Iterator[None]:
    """Pass the objects that pytest keeps now to a search."""
    try:
        for fixture in fixtures:
            result = fixture.cached_result
            if result is not None and result[2] is None:
                KEPT.append((fixture_name(fixture), fixture.argname, result[0]))
        for item in session.items:
            instance = vars(item).get("_instance")
            if instance is not None:
                KEPT.append((instance_name(item), "self", instance))
        # A local variable of this function would keep each of them.
        KEPT.extend((FAILED, path, value) for path, _, value in _variables())
        yield
    finally:
        KEPT.clear()


def fixture_name(fixture: FixtureDef[Any]) -> str:
    """Return how a fixture is called: ``fixture `model` (session)``."""
    return f"fixture `{fixture.argname}` ({fixture.scope})"


def instance_name(item: Item) -> str:
    """Return how the instance of a test's class is called."""
    return f"`self` of {item.name}"


def failed_place(path: str) -> str | None:
    """Return where the function is that has a variable of the last error: ``test_a.py:12``."""
    places = (place for known, place, _ in _variables() if path.startswith(known))
    return next(places, None)


def _variables() -> Iterator[tuple[str, str, object]]:
    """Yield the variables of the last error's frames, the innermost frame first."""
    entries = []
    entry = getattr(sys, "last_traceback", None)
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    for entry in reversed(entries):
        module = str(entry.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] in {"_pytest", "pluggy", "pytest_gpumem"}:
            continue
        code = entry.tb_frame.f_code
        place = f"{Path(code.co_filename).name}:{entry.tb_lineno}"
        for name, value in entry.tb_frame.f_locals.items():
            yield f"{code.co_name}().<locals>.{name}", place, value
