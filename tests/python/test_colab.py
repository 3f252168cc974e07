"""The README's three minutes in a kernel that looks like Colab's.

In the suite `oldest` it has Colab's IPython, ipykernel and ipywidgets, too. `google.colab` is
played: each output is a page of its own, and its metadata names the custom widget manager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.python.test_kernel import WIDGET, Kernel, new_kernel
from tests.python.test_pages import README, SINCE, VARYING, blocks, needs_loops, simulated

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.ipython

MANAGER = "https://colab.example/manager.js"
OUTPUT = f"""
from types import SimpleNamespace
from IPython import get_ipython

_widgets = SimpleNamespace(_installed_url=None)

def enable_custom_widget_manager():
    if _widgets._installed_url is None:
        get_ipython().display_pub.register_hook(_name_the_manager)
    _widgets._installed_url = {MANAGER!r}

def _name_the_manager(message):
    content = message["content"]
    if {WIDGET!r} in content.get("data", {{}}):
        about = content["metadata"].setdefault({WIDGET!r}, {{}})
        about["colab"] = {{"custom_widget_manager": {{"url": {MANAGER!r}}}}}
    return message
"""


@pytest.fixture(scope="module")
def colab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """Return a kernel in which `google.colab` was imported, as Colab does at the start."""
    packages = tmp_path_factory.mktemp("packages")
    (packages / "google" / "colab").mkdir(parents=True)
    (packages / "google" / "colab" / "__init__.py").write_text("", encoding="utf-8")
    (packages / "google" / "colab" / "output.py").write_text(OUTPUT, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(packages))
        with new_kernel(tmp_path_factory.mktemp("ipython")) as kernel:
            kernel.run("import google.colab.output\n%gpumem reset")
            yield kernel


@needs_loops
def test_the_three_minutes_of_the_readme_pass(colab: Kernel) -> None:
    start, cell = map(simulated, blocks(README, "python"))
    _foretold, printed, why, _report = map(simulated, blocks(README, "text"))
    for block in (start, cell):
        ran = colab.run(block)
        assert ran.status == "ok"
    *_, line = ran.lines
    assert _flat(line) == _flat(printed)
    command, _, expected = why.partition("\n\n")
    [holders] = colab.run(command).lines
    assert SINCE.sub("", holders).startswith(SINCE.sub("", expected.rstrip()))


def test_a_report_is_shown_by_the_custom_widget_manager(colab: Kernel) -> None:
    ran = colab.run("%gpumem_report")
    assert (ran.status, ran.printed) == ("ok", "")
    picture, *_, view = (output["content"] for output in ran.of("display_data"))
    assert sorted(picture["data"]) == ["image/png", "text/plain"]
    assert sorted(view["data"]) == sorted([WIDGET, "text/plain"])
    assert view["metadata"][WIDGET]["colab"]["custom_widget_manager"]["url"] == MANAGER


def test_each_report_carries_the_module(colab: Kernel) -> None:
    """No output can reach what another one has loaded."""
    for _ in range(2):
        ran = colab.run("%gpumem_report")
        [view] = [it["content"] for it in ran.of("display_data") if WIDGET in it["content"]["data"]]
        model = view["data"][WIDGET]["model_id"]
        opened = [it for it in ran.of("comm_open") if it["content"]["comm_id"] == model]
        [paths] = [it["content"]["data"]["buffer_paths"] for it in opened]
        [buffers] = [it["buffers"] for it in opened]
        assert b"Symbol.for" in bytes(buffers[paths.index(["runtime"])])


def _flat(line: str) -> str:
    """Return a line's words without what varies, however wide the place is."""
    return " ".join(VARYING.sub("…", line).split())
