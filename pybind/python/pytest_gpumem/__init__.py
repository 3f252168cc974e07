"""pytest's plugin: ``@pytest.mark.gpumem(no_leak=True, peak="6GiB", runs=10)``.

It is a package of its own: pytest imports it at every start, and gpumem, with its extension module,
only with the first test that has the mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest import Config, Function, Item  # noqa: PT013 (only for types)

MARK = "gpumem"
DESCRIPTION = (
    "gpumem(no_leak=True, peak=None, runs=10): call the test's function `runs` times, and fail if "
    "it keeps memory at each call (`no_leak`) or rises above `peak`, such as '6GiB'"
)


def pytest_configure(config: Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", DESCRIPTION)


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: Function) -> Iterator[None]:
    """Let the function of a marked test be called several times."""
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
