"""The twelve states of the report at four widths, light and dark: no words are cut or touch others.

Each is a real recording, and leaves pictures for people to look at in `target/screenshots`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import gpumem
import pytest

from .live import FRAMES, SCREENSHOTS, ReportPage, saved, screenshot
from .states import states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .live import Guarded

    Open = Callable[..., Guarded]
    Recordings = dict[str, gpumem.types.Recording]

WIDTHS = (1440, 900, 640, 380)
# What holds words: where they are, line by line, and which boxes are too small for theirs.
WRONG = """(host) => {
    const root = host.shadowRoot;
    const lines = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); ) {
        const around = node.parentElement;
        const isShown = around.checkVisibility() && !around.closest(".unseen");
        if (!node.data.trim() || !isShown) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const { left, right, top, bottom } of range.getClientRects()) {
            const box = { left, right, top, bottom };
            for (let it = around; it; it = it.parentElement) {
                if (getComputedStyle(it).overflow === "visible") continue;
                const clip = it.getBoundingClientRect();
                box.left = Math.max(box.left, clip.left);
                box.right = Math.min(box.right, clip.right);
                box.top = Math.max(box.top, clip.top);
                box.bottom = Math.min(box.bottom, clip.bottom);
            }
            const isSeen = box.right - box.left > 1 && box.bottom - box.top > 1;
            if (isSeen) lines.push({ ...box, node, words: node.data.trim().slice(0, 40) });
        }
    }
    const wrong = [];
    const inside = root.querySelector(".report").getBoundingClientRect();
    for (const line of lines) {
        if (line.left < inside.left - 1 || line.right > inside.right + 1) {
            wrong.push(`sticks out: ${line.words}`);
        }
    }
    lines.forEach((a, idx) => lines.slice(idx + 1).forEach((b) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        // The box of a line is higher than its letters.
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        const isApart = a.node === b.node || wide <= 1 || high <= 3;
        if (!isApart) wrong.push(`overlap: ${a.words} / ${b.words}`);
    }));
    for (const it of root.querySelectorAll("*")) {
        const style = getComputedStyle(it);
        const isCut = style.overflowX !== "visible" && style.textOverflow !== "ellipsis";
        // One pixel is lost to rounding.
        const isMeant = !it.closest(".unseen, .search") && it.checkVisibility();
        if (isCut && isMeant && it.scrollWidth > it.clientWidth + 1) {
            const name = it.className || it.tagName;
            wrong.push(`cut or scrolls: ${name} ${it.scrollWidth} > ${it.clientWidth}`);
        }
    }
    if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page scrolls sideways");
    return [...new Set(wrong)];
}"""


class State(NamedTuple):
    """A session, what a reader does in its report, and what must then be read in it."""

    session: str
    words: str
    act: Callable[[ReportPage], object] = lambda report: report.page.evaluate(FRAMES)


def _evidence(report: ReportPage) -> None:
    report.verdict().get_by_role("button", name="Evidence").click()


def _out_of_memory(report: ReportPage) -> None:
    report.verdict().locator(".entry", has_text="ran out of memory").click()


def _point_and_set(report: ReportPage) -> None:
    report.unfold("settings")
    report.host.get_by_role("button", name="per run").click()
    report.page.mouse.move(*report.point("cells", 0.5))


def _all_of_it(report: ReportPage) -> None:
    for name in ("findings", "runs", "map"):
        report.unfold(name)
    report.host.locator(".cell .name").first.click()
    for chip in report.verdict().locator("button.chip").all():
        chip.click()


STATES = {
    "leak": State("leak", "val_losses leaks 120 MiB a run"),
    "healthy": State("healthy", "Nothing grows"),
    "many": State("many", "kept leaks 64 MiB a run"),
    "eight": State("eight", "on sim:7"),
    "finding": State("leak", "Ruled out", _evidence),
    "out-of-memory": State("leak", "What would have been enough", _out_of_memory),
    "comparison": State("rerun", "Against"),
    "running": State("running", "is running"),
    "settings": State("running", "Sizes in", _point_and_set),
    "everything": State("leak", "as a list", _all_of_it),
}


@pytest.fixture(scope="session")
def recordings_of_states(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """Record what the states show."""
    return states(tmp_path_factory.mktemp("states"))


@pytest.mark.parametrize("name", STATES)
def test_no_words_are_cut_or_touch_others(
    name: str, recordings_of_states: Recordings, open_page: Open, tmp_path: Path
) -> None:
    """At each width, light and dark."""
    state = STATES[name]
    recording = recordings_of_states[state.session]
    if name == "comparison":
        path = tmp_path / "compared.html"
        gpumem.compare(recording, recordings_of_states["leak"]).save(path)
        address = path.as_uri()
    else:
        address = saved(recording, tmp_path)
    page = open_page(address, viewport={"width": WIDTHS[0], "height": 900}).page
    report = ReportPage(page)
    state.act(report)
    wrong: dict[str, list[str]] = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.evaluate(FRAMES)
            screenshot(page, f"state-{name}-{width}-{scheme}")
            wrong[f"{width} {scheme}"] = report.host.evaluate(WRONG)
    assert state.words in report.host.locator(".report").inner_text()
    found = [f"{where}: {what}" for where, all_of_it in wrong.items() for what in all_of_it]
    assert not found, "\n".join(found)


def test_the_picture_to_share(
    recordings_of_states: Recordings, open_page: Open, tmp_path: Path
) -> None:
    """It is as large as a slide, in the theme of the page."""
    for scheme in ("light", "dark"):
        look = {"color_scheme": scheme}
        page = open_page(saved(recordings_of_states["leak"], tmp_path), **look).page
        report = ReportPage(page)
        report.host.locator("summary", has_text="Export").click()
        with page.expect_download() as download:
            report.host.get_by_role("button", name="Picture 16:9").click()
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"state-share-{scheme}.png"
        download.value.save_as(path)
        header = path.read_bytes()[:24]
        size = int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")
        assert size == (1600, 900)
