"""pytest's plugin: ``@pytest.mark.gpumem(no_leak=True, peak="6GiB", runs=10)`` and ``--gpumem``.

It is a package of its own: pytest imports it at every start, and gpumem, with its extension module,
only with the first test that has the mark, or with the option.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest import Config, Function, Item, Parser  # noqa: PT013 (only for types)

MARK = "gpumem"
DESCRIPTION = (
    "gpumem(no_leak=True, peak=None, runs=10): call the test's function `runs` times, and fail if "
    "it keeps memory at each call (`no_leak`) or rises above `peak`, such as '6GiB'"
)
HELP = "say which tests leave memory behind, and who holds it"


def pytest_addoption(parser: Parser) -> None:
    """Add the option."""
    group = parser.getgroup("gpumem")
    group.addoption("--gpumem", action="store_true", help=HELP)


def pytest_configure(config: Config) -> None:
    """Register the mark, and what watches the suite."""
    config.addinivalue_line("markers", DESCRIPTION)
    if config.getoption("gpumem"):
        _watch(config)


def _watch(config: Config) -> None:
    try:
        from gpumem import _gpumem

        from pytest_gpumem.suite import Suite
    except Exception as error:  # noqa: BLE001 (the observer yields)
        # A warning could be an error in this suite.
        sys.stderr.write(f"gpumem cannot watch: {type(error).__name__}: {error}\n")
        return
    if not _gpumem._is_disabled():
        config.pluginmanager.register(Suite(), "gpumem-suite")


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: Function) -> Iterator[None]:
    """Call the function of a marked test several times."""
    mark = pyfuncitem.get_closest_marker(MARK)
    if mark is None:
        yield
        return
    from pytest_gpumem.options import options
    from pytest_gpumem.repeated import repeated

    once = pyfuncitem.obj
    pyfuncitem.obj = repeated(once, pyfuncitem.name, options(mark.args, mark.kwargs))
    try:
        yield
    finally:
        pyfuncitem.obj = once


def pytest_runtest_setup(item: Item) -> None:
    """Refuse a mark with wrong options before the test's fixtures are made."""
    mark = item.get_closest_marker(MARK)
    if mark is not None:
        from pytest_gpumem.options import options

        options(mark.args, mark.kwargs)
