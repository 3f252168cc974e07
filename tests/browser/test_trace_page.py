"""The page of a profiler's trace: memory over time, operators and kernels, nested ranges."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from .live import FRAMES
from .test_snapshot_page import DROP

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    Event = dict[str, object]
    Open = Callable[..., Page]

MIB = 1 << 20
NOTHING = "\N{EN DASH}"
SHORT = 30_000  # of 100,000 microseconds


def span(name: str, start: int, length: int, category: str = "cpu_op", **args: object) -> Event:
    """Return what took time; microseconds."""
    common = {"ph": "X", "pid": 1, "tid": 7, "args": args}
    return common | {"cat": category, "name": name, "ts": start, "dur": length}


def memory(at: int, size: int, total: int) -> Event:
    """Return an allocation, or a free."""
    args = {"Device Type": 1, "Device Id": 0, "Bytes": size, "Addr": abs(size)}
    args |= {"Total Allocated": total, "Total Reserved": 64 * MIB}
    return {"ph": "i", "name": "[memory]", "pid": 1, "tid": 7, "ts": at, "args": args}


def steps(n: int = 2, rank: int | None = None) -> Event:
    """Return a trace of steps: `linear` with `mm` in it, and a kernel."""
    events = []
    for step in range(n):
        at = step * SHORT
        events += [
            span(f"ProfilerStep#{step}", at, SHORT, "user_annotation"),
            span("forward", at + 1000, 20_000, "user_annotation"),
            span("aten::linear", at + 2000, 9000, **{"Input Dims": [[8, step]]}),
            span("aten::mm", at + 3000, 4000, **{"Input Dims": [[8, 8]]}),
            memory(at + 4000, (step + 1) * MIB, (step + 1) * (step + 2) // 2 * MIB),
            span("cudaLaunchKernel", at + 5000, 10, "cuda_runtime", correlation=step),
            span("void gemm<float>", at + 12_000, 600, "kernel", correlation=step),
        ]
    trace: Event = {"traceEvents": events}
    if rank is not None:
        trace["distributedInfo"] = {"rank": rank, "world_size": 2}
    return trace


@pytest.fixture
def page_of(open_file: Open, tmp_path: Path) -> Callable[..., Page]:
    """Write a trace, and open its page; of several traces, of their folder."""

    def page(*traces: object) -> Page:
        folder = tmp_path / "traces"
        folder.mkdir()
        for number, trace in enumerate(traces):
            (folder / f"worker{number}.json").write_text(json.dumps(trace))
        return open_file(folder if len(traces) > 1 else folder / "worker0.json")

    return page


def names(page: Page) -> list[str]:
    """Return the names in the table of operators, in order."""
    found: list[str] = page.locator(".operators [data-row] button").all_inner_texts()
    return found


def figures(page: Page, name: str) -> list[str]:
    """Return what the row of an operator says."""
    row = page.locator(".operators [data-row]").filter(has=page.get_by_role("button", name=name))
    found: list[str] = row.locator("td").all_inner_texts()
    return found


def sort_by(page: Page, column: str) -> Locator:
    """Click a head, and return it."""
    head = page.locator(".operators th", has=page.get_by_role("button", name=column, exact=True))
    head.get_by_role("button").click()
    return head


def test_the_page_has_every_figure_of_an_operator(page_of: Callable[..., Page]) -> None:
    page = page_of(steps())
    expect(page.locator(".headline")).to_contain_text("cuda:0 peak: 3 MiB")
    expect(page.locator("#still")).to_be_hidden()
    assert page.title() == "worker0.json · PyTorch profiler trace"
    heads = page.locator(".operators th").all_inner_texts()
    columns = ["Name", "Calls", "Total time", "Self time ↓", "Device time", "Memory", "Self memory"]
    assert heads == columns
    linear = ["aten::linear", "2", "18 ms", "10 ms", NOTHING, "+3 MiB", NOTHING]
    assert figures(page, "aten::linear") == linear
    mm = ["aten::mm", "2", "8 ms", "7.98 ms", "1.2 ms", "+3 MiB", "+3 MiB"]
    assert figures(page, "aten::mm") == mm


def test_rows_are_sorted_searched_and_grouped(page_of: Callable[..., Page]) -> None:
    page = page_of(steps())
    by_time = ["aten::linear", "aten::mm", "void gemm<float>", "cudaLaunchKernel"]
    assert names(page) == by_time
    head = sort_by(page, "Name")
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(head.get_by_role("button")).to_be_focused()
    assert names(page) == ["aten::linear", "aten::mm", "cudaLaunchKernel", "void gemm<float>"]
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    page.get_by_role("searchbox").fill("ATEN")
    assert names(page) == ["aten::mm", "aten::linear"]
    expect(page.get_by_role("status").filter(has_text="rows")).to_contain_text("2 of 4 rows")
    page.get_by_role("button", name="By input shapes").click()
    assert names(page) == ["aten::mm", "aten::linear", "aten::linear"]
    expect(page.locator(".operators th").nth(1)).to_have_text("Input shapes")
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="Kernels").click()
    assert names(page) == ["void gemm<float>"]


def test_calls_of_an_operator_are_marked(page_of: Callable[..., Page]) -> None:
    page = page_of(steps())
    canvas = page.locator("canvas")
    assert "marked" not in (canvas.get_attribute("aria-label") or "")
    page.get_by_role("button", name="aten::mm").hover()
    expect(canvas).to_have_attribute(
        "aria-label",
        "0 to 60 ms: allocated at most 3 MiB; reserved at most 64 MiB; 2 calls marked; 4 ranges",
    )
    page.locator(".headline").hover()
    page.evaluate(FRAMES)
    assert "marked" not in (canvas.get_attribute("aria-label") or "")
    row = page.get_by_role("button", name="aten::mm")
    row.click()
    expect(row).to_have_attribute("aria-pressed", "true")
    page.locator(".headline").hover()
    page.evaluate(FRAMES)
    assert "2 calls marked" in (canvas.get_attribute("aria-label") or "")


def test_a_part_of_the_chart_restricts_the_table(page_of: Callable[..., Page]) -> None:
    page = page_of(steps())
    box = page.locator("canvas").bounding_box()
    assert box is not None
    middle = box["x"] + 66 + (box["width"] - 78) / 2
    page.mouse.move(middle - 10, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 60, steps=4)
    page.mouse.up()
    assert figures(page, "aten::mm")[1:3] == ["1", "4 ms"]
    expect(page.get_by_role("status").filter(has_text="rows")).to_contain_text("only calls that")
    page.get_by_role("button", name="Count all calls").click()
    assert figures(page, "aten::mm")[1] == "2"
    page.locator("canvas").focus()
    for key in ("End", "Shift+Home"):
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="Count all calls")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Count all calls")).to_have_count(0)


def test_a_range_restricts_the_table(page_of: Callable[..., Page]) -> None:
    page = page_of(steps())
    ranges = page.locator("section", has=page.get_by_role("heading", name="Steps and labelled"))
    assert [it.strip() for it in ranges.locator("td:first-child").all_inner_texts()] == [
        "ProfilerStep#0",
        "forward",
        "ProfilerStep#1",
        "forward",
    ]
    step = ranges.get_by_role("button", name="ProfilerStep#1")
    step.click()
    expect(step).to_have_attribute("aria-pressed", "true")
    assert figures(page, "aten::linear")[1:] == ["1", "9 ms", "5 ms", NOTHING, "+2 MiB", NOTHING]
    # The same one in the chart.
    page.locator("canvas").click(position={"x": 120, "y": 190})
    first = ranges.get_by_role("button", name="ProfilerStep#0")
    expect(first).to_have_attribute("aria-pressed", "true")
    expect(step).to_have_attribute("aria-pressed", "false")
    assert figures(page, "aten::linear")[5] == "+1 MiB"
    page.locator("canvas").click(position={"x": 160, "y": 60})
    expect(first).to_have_attribute("aria-pressed", "false")
    assert figures(page, "aten::linear")[1] == "2"


def test_ten_thousand_operators_come_page_by_page(page_of: Callable[..., Page]) -> None:
    many = [span(f"op{number:04}", number, 1) for number in range(10_000)]
    page = page_of({"traceEvents": many})
    sort_by(page, "Name")
    assert len(names(page)) == 25
    tools = page.locator(".operators .tools")
    expect(tools.last).to_contain_text(f"1 {NOTHING} 25 of 10000")
    expect(tools.get_by_role("button", name="Previous")).to_be_disabled()
    tools.get_by_role("button", name="Next").click()
    assert names(page)[0] == "op0025"
    expect(tools.get_by_role("button", name="Next")).to_be_focused()
    page.get_by_role("searchbox").fill("op9999")
    assert names(page) == ["op9999"]


def test_each_worker_has_a_button(page_of: Callable[..., Page]) -> None:
    page = page_of(steps(1, rank=0), steps(3, rank=1))
    workers = page.get_by_role("navigation").get_by_role("button")
    assert workers.all_inner_texts() == [
        "worker0.json · rank 0 of 2 · cuda:0 peak 1 MiB",
        "worker1.json · rank 1 of 2 · cuda:0 peak 6 MiB",
    ]
    expect(workers.first).to_have_attribute("aria-pressed", "true")
    workers.last.click()
    expect(page.locator(".headline")).to_contain_text("cuda:0 peak: 6 MiB")
    expect(workers.last).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".files h2")).to_have_count(1)


def test_a_trace_without_memory_shows_what_it_has(page_of: Callable[..., Page]) -> None:
    page = page_of({"traceEvents": [span("aten::mm", 5, 10)]})
    expect(page.locator(".headline")).to_contain_text("profile_memory=True")
    assert page.locator(".operators th").all_inner_texts() == [
        "Name",
        "Calls",
        "Total time",
        "Self time ↓",
    ]
    expect(page.get_by_role("heading", name="Steps and labelled ranges")).to_be_hidden()


def test_a_trace_can_be_dropped_onto_a_trace(page_of: Callable[..., Page]) -> None:
    page = page_of(steps(1))
    later = b64encode(json.dumps(steps(3)).encode()).decode()
    page.evaluate(DROP, ["later.json", later])
    expect(page.locator(".headline")).to_contain_text("cuda:0 peak: 6 MiB")
    timeline = b64encode(b'{"categories": {}}').decode()
    page.evaluate(DROP, ["other.json", timeline])
    expect(page.locator("#note")).to_contain_text("other.json: ")
    expect(page.locator(".headline")).to_contain_text("cuda:0 peak: 6 MiB")
