"""A report in notebooks: several views, outputs in frames of their own, failures."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, NamedTuple

import gpumem
import pytest
from playwright.sync_api import expect

from .host import ALLOWED, Host
from .live import KEPT, QUIET, SETUP, ReportPage, record, screenshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from .live import Guarded
    from .sessions import Sessions

    Open = Callable[..., Guarded]


@pytest.fixture
def page(open_page: Open) -> Page:
    """Return an empty page."""
    return open_page("about:blank", viewport={"width": 1000, "height": 900}).page


def _subtitles(page: Page) -> list[str]:
    texts: list[str] = page.locator(".gpumem-report header .muted").all_inner_texts()
    return texts


def _later(recording: gpumem.types.Recording) -> tuple[gpumem.types.Recording, bytes]:
    """Return the first runs of a recording, and the bytes of all that makes it whole again."""
    earlier, _ = recording._split_at(2)
    return earlier, recording.to_bytes()


def test_every_view_of_a_report_is_up_to_date(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """A second view shows what came before it was opened, and both what comes after."""
    earlier, later = _later(recordings["leak"])
    host = Host.on(page, earlier, tmp_path)
    host.show()
    expect(page.locator(".verdict .card", has_text=KEPT)).to_have_count(0)
    host.tell("frames", later)
    expect(page.locator(".verdict .card", has_text=KEPT)).to_have_count(1)
    host.show()
    expect(page.locator(".verdict .card", has_text=KEPT)).to_have_count(2)
    first, second = _subtitles(page)
    assert first == second
    host.close()
    host.show()
    expect(page.locator(".verdict .card", has_text=KEPT)).to_have_count(1)


def test_an_update_leaves_the_reader_where_they_are(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """Zoom, choice, keyboard and what is open stay as they are."""
    recording = recordings["thousand"]
    (earlier, _), later = recording._split_at(40), recording.to_bytes()
    host = Host.on(page, earlier, tmp_path)
    host.show()
    report = ReportPage(page)
    report.unfold("settings")
    report.host.get_by_role("button", name="clock").click()
    report.drag("timeline", 0.4, 0.6)
    report.canvas("cells").press("ArrowRight")
    state = report.exported_state()
    tip = report.tip()
    host.tell("frames", later)
    expect(report.host.locator("header .muted")).to_contain_text("1000 runs")
    assert report.exported_state() == state
    # The number of runs is updated.
    assert report.tip().partition(" of ")[0] == tip.partition(" of ")[0]
    expect(report.canvas("cells")).to_be_focused()


def test_an_update_leaves_what_is_open_on_a_card_open(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """Its figures are newer; the keyboard stays on its button."""
    recording = recordings["thousand"]
    earlier, _ = recording._split_at(40)
    host = Host.on(page, earlier, tmp_path)
    host.show()
    card = ReportPage(page).card("2 MiB a run")
    before = card.inner_text()
    card.locator("summary", has_text="Figures and thresholds").first.click()
    card.get_by_role("button", name="Show its runs").focus()
    host.tell("frames", recording.to_bytes())
    expect(card).not_to_contain_text(before)
    assert (
        card.locator("details", has_text="Figures and thresholds").first.get_attribute("open")
        is not None
    )
    expect(card.get_by_role("button", name="Show its runs")).to_be_focused()


def test_an_update_leaves_the_keyboard_at_its_block(page: Page, tmp_path: Path) -> None:
    """In the map of free pieces, which is redrawn."""
    earlier, later = tmp_path / "earlier", tmp_path / "later"
    cells = [
        "blocks = [sim.tensor(6 << 20) for _ in range(90)]",
        "blocks = blocks[::3]",
        f"gpumem.recording().save({str(earlier)!r})",
        "more = [sim.tensor(6 << 20) for _ in range(8)]",
    ]
    record([SETUP, QUIET, "%gpumem on", *cells], later)
    host = Host.on(page, gpumem.load(earlier), tmp_path)
    host.show()
    card = ReportPage(page).card("is free, but in pieces")
    blocks = card.get_by_role("option")
    blocks.nth(1).focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(blocks.nth(5)).to_be_focused()
    before = card.inner_text()
    host.tell("frames", gpumem.load(later).to_bytes())
    expect(card).not_to_contain_text(before)
    expect(blocks.nth(5)).to_be_focused()
    reading = blocks.nth(5).get_attribute("aria-label") or ""
    expect(card.locator(".shelves + .reading")).to_have_text(reading)
    page.keyboard.press("ArrowRight")
    expect(blocks.nth(6)).to_be_focused()


def test_at_most_ten_updates_a_second_are_painted(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """However many arrive."""
    recording = recordings["leak"]
    host = Host.on(page, recording, tmp_path)
    host.show()
    ReportPage(page)
    page.evaluate(
        """() => {
            window.painted = 0;
            const root = document.querySelector(".gpumem-report").shadowRoot;
            const subtitle = root.querySelector("header .muted");
            new MutationObserver(() => window.painted++).observe(subtitle, { childList: true });
        }"""
    )
    frames = recording.to_bytes()
    for _ in range(10):
        host.tell("frames", frames)
    # Pending frames are painted at once: what comes after them shows all of them.
    before = host.tell("frames", frames, then="window.painted")
    page.wait_for_function("(before) => window.painted > before", arg=before)
    assert page.evaluate("() => window.painted") <= 4


def test_outputs_that_are_pages_of_their_own_bring_the_runtime(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """As in Colab: what one output shows is out of the other's reach."""
    first, second = Host.frames(page, recordings["leak"], tmp_path, 2)
    first.provide()
    second.show(runtime=second.provider)
    growth = second.frame.locator("canvas[data-chart=cells]")
    growth.wait_for()
    assert second.sent() == []
    assert second.frame.locator(".verdict .card", has_text=KEPT).count() == 1
    growth.press("ArrowRight")
    assert "In [" in second.frame.locator(".read:not([hidden])").first.inner_text()
    screenshot(page, "host-frames")


BEHIND = {"light": "white", "dark": "#1f1f1f", "dark-contrast": "black"}


class Look(NamedTuple):
    """How a host tells its theme: what is set on the body and on the page, and what comes of it."""

    body: dict[str, str]
    page: dict[str, str]
    theme: str


def _vs_code(kind: str, theme: str) -> Look:
    """As its webviews do: a class, data, and variables."""
    faces = "--vscode-font-family: Lato; --vscode-editor-font-family: Hack"
    style = f"{faces}; background: {BEHIND[theme]}"
    return Look({"class": kind, "data-vscode-theme-kind": kind}, {"style": style}, theme)


def _colab(theme: str) -> Look:
    return Look({}, {"theme": theme, "style": f"background: {BEHIND[theme]}"}, theme)


SHEETS = {"light": "255,255,255", "dark": "22,27,34", "dark-contrast": "0,0,0"}


@pytest.mark.parametrize(
    "looks",
    [
        [_vs_code("vscode-light", "light"), _vs_code("vscode-high-contrast", "dark-contrast")],
        [_colab("dark"), _colab("light")],
    ],
    ids=["code", "colab"],
)
def test_an_output_has_the_theme_of_its_host(
    looks: list[Look], open_page: Open, recordings: Sessions, tmp_path: Path
) -> None:
    """Whatever the system's is, and the new one when the reader chooses another."""
    system = "light" if looks[0].theme == "dark" else "dark"
    page = open_page("about:blank", color_scheme=system).page
    [host] = Host.frames(page, recordings["leak"], tmp_path, 1)
    growth = host.frame.locator("canvas[data-chart=cells]")
    for idx, look in enumerate(looks):
        host.frame.evaluate(
            "([body, page]) => { for (const [element, attributes] of"
            " [[document.body, body], [document.documentElement, page]])"
            " for (const [name, value] of Object.entries(attributes))"
            " element.setAttribute(name, value); }",
            [look.body, look.page],
        )
        if idx == 0:
            host.show(runtime=host.provider)
            growth.wait_for()
        expect(host.frame.locator(f".report[data-theme={look.theme}]")).to_have_count(1)
        assert _sheet(growth) == SHEETS[look.theme]
        screenshot(page, f"host-{'code' if look.body else 'colab'}-{look.theme}")
    if looks[0].body:
        face = "(root) => getComputedStyle(root).fontFamily"
        assert host.frame.locator(".gpumem-report .report").evaluate(face).startswith("Lato")


def _sheet(canvas: Locator) -> str:
    """Return the colour of a chart's corner."""
    corner: list[int] = canvas.evaluate(
        "(canvas) => [...canvas.getContext('2d').getImageData(4, 4, 1, 1).data]"
    )
    return ",".join(map(str, corner[:3]))


def test_an_output_by_itself_asks_for_the_runtime(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """The kernel answers, and knows from now on that this host shows outputs by themselves."""
    [host] = Host.frames(page, recordings["leak"], tmp_path, 1)
    host.show(wait=False)
    host.frame.wait_for_function("() => host.models.shown?.sent.length > 0")
    assert host.sent() == [{"kind": "runtime", "alone": True}]
    host.tell("runtime", host.provider)
    host.frame.locator("canvas[data-chart=cells]").wait_for()


def test_copying_leaves_the_keyboard_on_its_button(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """A frame that may not ask for the clipboard copies by a field, which is gone again."""
    [host] = Host.frames(page, recordings["leak"], tmp_path, 1)
    host.show(runtime=host.provider)
    button = host.frame.get_by_role("button", name="Copy fix").first
    button.scroll_into_view_if_needed()
    button.evaluate(
        """(button) => {
            const page = button.ownerDocument;
            page.execCommand = (command) => page.documentElement.setAttribute("data-did", command);
        }"""
    )
    button.press("Enter")
    expect(host.frame.locator("html")).to_have_attribute("data-did", "copy")
    assert host.frame.locator("textarea").count() == 0
    expect(button).to_be_focused()


def test_a_runtime_that_never_comes_is_said(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """The kernel is gone, and this page never had the runtime."""
    page.clock.install()
    [host] = Host.frames(page, recordings["leak"], tmp_path, 1)
    host.show(wait=False)
    page.clock.fast_forward(11_000)
    expect(host.frame.locator("p[role=status]")).to_contain_text("run this cell again")


@pytest.mark.parametrize(
    ("allowed", "words"),
    [(ALLOWED, None), ("blob:", "wasm-unsafe-eval")],
    ids=["allowed", "no wasm"],
)
def test_a_policy_that_forbids_the_report_is_said(
    allowed: str, words: str | None, page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """One line says what the page's policy would have to allow."""
    [host] = Host.frames(page, recordings["leak"], tmp_path, 1, allowed)
    host.show(runtime=host.provider)
    if words is None:
        host.frame.locator("canvas[data-chart=cells]").wait_for()
        return
    expect(host.frame.locator("p[role=status]")).to_contain_text(words)
    assert host.frame.locator(".gpumem-report").count() == 0


def test_a_failed_report_is_replaced_by_the_picture(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """What the module panics at costs the live view only; one line says so."""
    host = Host.on(page, recordings["leak"], tmp_path)
    picture = page.get_by_alt_text("the report")
    assert picture.is_visible()
    host.show()
    report = ReportPage(page)
    expect(picture).to_be_hidden()
    page.evaluate(
        "() => { CanvasRenderingContext2D.prototype.beginPath = () => {"
        " throw new WebAssembly.RuntimeError('unreachable') } }"
    )
    report.canvas("cells").press("k")
    expect(picture).to_be_visible()
    expect(page.locator("p[role=status]")).to_contain_text("could not be shown")
    assert page.locator(".gpumem-report").count() == 0


def test_an_update_that_fails_gives_the_place_back_too(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """Bytes that are no update are refused, and the report stands; a panic ends it."""
    earlier, later = _later(recordings["leak"])
    host = Host.on(page, earlier, tmp_path)
    host.show()
    ReportPage(page)
    host.tell("frames", b"no frames")
    host.tell("frames", later)
    expect(page.locator(".verdict .card", has_text=KEPT)).to_have_count(1)
    page.evaluate(
        "() => { CanvasRenderingContext2D.prototype.beginPath = () => {"
        " throw new WebAssembly.RuntimeError('unreachable') } }"
    )
    host.tell("frames", recordings["thousand"].to_bytes())
    expect(page.get_by_alt_text("the report")).to_be_visible()
    expect(page.locator("p[role=status]")).to_contain_text("could not be shown")


def test_a_recording_that_is_cut_off_is_shown_as_far_as_it_goes(
    page: Page, recordings: Sessions, tmp_path: Path
) -> None:
    """One line says where it ends."""
    host = Host.on(page, recordings["leak"], tmp_path)
    whole = recordings["leak"].to_bytes()
    host.packed = gzip.compress(whole[:-7])
    host.show()
    expect(page.get_by_text("the file was cut at byte")).to_be_visible()
    expect(page.locator(".verdict .card", has_text=KEPT)).to_have_count(1)
