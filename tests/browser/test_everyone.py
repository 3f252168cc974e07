"""The report for everyone: contrast, names of any kind, narrow windows, large letters."""

from __future__ import annotations

import gzip
from base64 import b64encode
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

from .live import FITS, SETUP, ReportPage, record, saved, screenshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import OpenReport
    from .live import Guarded
    from .sessions import Sessions

    Open = Callable[..., Guarded]

AXE = files("axe_playwright_python") / "axe.min.js"
# What the scripts below ask of every text: the colours that it is seen with.
CONTRAST = """() => {
    const root = document.querySelector(".gpumem-report").shadowRoot;
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const parsed = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const luminance = ([r, g, b]) => {
        const linear = (byte) => {
            const c = byte / 255;
            return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        };
        return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    };
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
            const colour = parsed(getComputedStyle(at).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255, 255];
    };
    const poor = [];
    for (const element of root.querySelectorAll("*")) {
        const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
        const seen = element.checkVisibility() && !element.closest(".unseen");
        if (!own || !seen || element.disabled) continue;
        const [a, b] = [parsed(getComputedStyle(element).color), behind(element)].map(luminance);
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const size = Number.parseFloat(getComputedStyle(element).fontSize);
        if (contrast < 4.5 || size < 11) poor.push([element.textContent, contrast, size]);
    }
    return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["leak", "oom"])
def test_axe_finds_nothing(
    name: str, scheme: str, recordings: Sessions, open_report: OpenReport
) -> None:
    """In both themes, with every list and table open."""
    page = open_report(
        gpumem.compare(recordings[name], recordings["fixed"]), color_scheme=scheme
    ).page
    ReportPage(page).open_all()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate("() => axe.run().then((done) => done.violations)")
    assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found] == []


@pytest.mark.parametrize(
    "look",
    [
        {"color_scheme": "light"},
        {"color_scheme": "dark"},
        {"color_scheme": "light", "contrast": "more"},
        {"color_scheme": "dark", "contrast": "more"},
    ],
    ids=["light", "dark", "more light", "more dark"],
)
def test_every_text_is_readable(look: dict[str, str], open_report: OpenReport) -> None:
    """At least 4.5 to 1 on what is behind it, and no letter below 11 px."""
    report = open_report("leak", **look)
    report.open_all()
    assert report.page.evaluate(CONTRAST) == []


def test_preference_for_contrast_is_followed(
    recordings: Sessions, open_page: Open, tmp_path: Path
) -> None:
    """The charts are black and white then, but for what has a meaning."""
    page = open_page(saved(recordings["leak"], tmp_path), contrast="more", color_scheme="dark").page
    colours = ReportPage(page).pixels("cells")["colours"]
    assert max(colours, key=colours.get) == "0,0,0"
    assert "255,255,255" in colours


def test_forced_colours_leave_nothing_unseen(open_report: OpenReport) -> None:
    """A system's own colours replace the page's; buttons still say what is pressed."""
    report = open_report("leak", forced_colors="active")
    page = report.page
    report.assert_crisp()
    pressed = report.host.get_by_role("button", name="total")
    other = report.host.get_by_role("button", name="per run")
    colour = "(button) => getComputedStyle(button).backgroundColor"
    assert pressed.evaluate(colour) != other.evaluate(colour)
    screenshot(page, "page-forced-colours")


def test_preference_for_reduced_motion_is_followed(open_report: OpenReport) -> None:
    """No transition is left under `prefers-reduced-motion`."""
    page = open_report("leak", reduced_motion="reduce").page
    moving = """() => [...document.querySelector(".gpumem-report").shadowRoot.querySelectorAll("*")]
        .filter((element) => getComputedStyle(element).transitionDuration !== "0s").length"""
    assert page.evaluate(moving) == 0


STICKS_OUT = """() => {
    const root = document.querySelector(".gpumem-report").shadowRoot;
    const range = document.createRange();
    const out = [];
    for (const box of root.querySelectorAll("header, .panel, .box, .scroll")) {
        const { right } = box.getBoundingClientRect();
        for (const inner of box.querySelectorAll("*:not(.patch *, .cell code)")) {
            const own = [...inner.childNodes].some((node) => node.nodeType === 3);
            range.selectNodeContents(inner);
            const sticks = range.getBoundingClientRect().right > right + 0.5;
            if (own && inner.checkVisibility() && sticks) out.push(inner.textContent);
        }
    }
    return out;
}"""


def test_a_narrow_card_holds_all_that_is_in_it(open_report: OpenReport) -> None:
    """Lists of holders closed and open, and the figures behind a verdict."""
    phone = {"viewport": {"width": 360, "height": 780}}
    report = open_report("quickstart", **phone)
    page = report.page
    report.unfold()
    assert report.host.locator(".card .tree details:not([open])").count() > 0
    assert page.evaluate(STICKS_OUT) == []
    report.open_all()
    assert page.evaluate(STICKS_OUT) == []


CELLS_OF_ANY_NAME = [
    "x = '</script><img src=x onerror=alert(1)>`__GPUMEM_TEXT__`' and sim.tensor(99)",
    "שלום = sim.tensor(99)",
    f"{'x' * 300} = sim.tensor(99)",
    "y = \"quoted\" '& quoted' '<b>' and sim.tensor(99)",
]


def test_names_of_any_kind_are_text(open_page: Open, tmp_path: Path) -> None:
    """Markup, letters from right to left, and no end of letters."""
    record([SETUP, "%gpumem on", *CELLS_OF_ANY_NAME], tmp_path / "named")
    view = {"viewport": {"width": 700, "height": 900}}
    opened = open_page(saved(gpumem.load(tmp_path / "named"), tmp_path), **view)
    report = ReportPage(opened.page)
    assert "onerror" in report.hover("cells", "onerror")
    assert "quoted" in report.hover("cells", "quoted")
    assert (
        report.host.locator("img, b:not(.total, .usage b, .key b, .outlook b, .fix b)").count() == 0
    )
    opened.page.wait_for_function(FITS)
    assert opened.page.locator("img[src=x]").count() == 0
    assert opened.errors == []
    screenshot(opened.page, "page-names")


def test_what_is_drawn_is_there_in_words(open_report: OpenReport) -> None:
    """A list has the cells, a table the runs; a status tells what the keyboard is on."""
    report = open_report("leak")
    cells = report.host.get_by_role("list", name="cells").get_by_role("listitem")
    words = [" ".join(cell.split()) for cell in cells.all_inner_texts()]
    assert len(words) == 4
    assert words[0].endswith("In [6] +1.25 GiB 20 steps")
    status = report.host.locator("[role=status].unseen")
    report.canvas("cells").press("PageDown")
    assert "model = sim.tensor" in status.inner_text()
    assert "kept +256 MiB" in status.inner_text()
    report.slide("16 GiB")
    assert status.inner_text() == "findings: 0"


def test_chrome_hands_all_of_it_to_a_screen_reader(open_report: OpenReport) -> None:
    """The browser's own tree: charts, map, cards, the table with its rows, and the status."""
    report = open_report("leak")
    page = report.page
    report.canvas("cells").press("PageDown")
    session = page.context.new_cdp_session(page)
    tree = session.send("Accessibility.getFullAXTree")["nodes"]
    kept = {node["nodeId"]: node for node in tree if not node["ignored"]}

    def of(role: str) -> list[dict[str, Any]]:
        return [node for node in kept.values() if node["role"]["value"] == role]

    def names(role: str) -> list[str]:
        return [node["name"]["value"] for node in of(role)]

    assert {name[:10] for name in names("application")} == {"What sim:0", "What fills"}
    [title] = report.cards()
    assert title in names("heading")
    assert f"Leak: {title}" in names("article")
    assert len(of("listitem")) >= 4
    assert all(name for role in ("button", "checkbox", "searchbox") for name in names(role))
    statuses = {node["nodeId"]: node["properties"] for node in of("status")}
    [said] = [text for text in of("StaticText") if text["parentId"] in statuses]
    assert said["name"]["value"].startswith("model = sim.tensor(256 << 20) · In [7]: kept")
    assert {"name": "live", "value": {"type": "token", "value": "polite"}} in statuses[
        said["parentId"]
    ]


def test_the_focus_goes_from_top_to_bottom(open_report: OpenReport) -> None:
    """Tab reaches everything, in the order in which it is seen."""
    page = open_report("leak").page
    tops: list[tuple[float, str]] = []
    where = """() => {
        const at = document.querySelector(".gpumem-report").shadowRoot.activeElement;
        if (!at) return null;
        const panel = at.closest("header, figure, .folds, section:not(.findings)");
        return [panel.getBoundingClientRect().top + scrollY, at.tagName];
    }"""
    for _ in range(40):
        page.keyboard.press("Tab")
        at = page.evaluate(where)
        if at is None and tops:
            break
        if at:
            tops.append(at)
    places = [top for top, _ in tops]
    assert places == sorted(places)
    assert [tag for _, tag in tops].count("CANVAS") == 2


def _cut_off(recording: bytes) -> bytes:
    return gzip.compress(b"\x00" * 8 + recording[: len(recording) // 2], mtime=0)


def _changed(recording: bytes) -> bytes:
    """Not compressed, so that a bit that is another makes no stream that cannot be unpacked."""
    packed = bytearray(gzip.compress(recording, compresslevel=0, mtime=0))
    packed[len(packed) // 2] ^= 1
    return bytes(packed)


@pytest.mark.parametrize("damaged", [_cut_off, _changed])
def test_what_cannot_be_read_leaves_picture_and_text(
    recordings: Sessions, open_page: Open, tmp_path: Path, damaged: Callable[[bytes], bytes]
) -> None:
    """A recording that ends in the middle of a frame, or of which one bit is another."""
    path = tmp_path / "report.html"
    gpumem.report(recordings["leak"]).save(path)
    page = path.read_text(encoding="utf-8")
    packed = recordings["leak"].to_bytes()
    whole = b64encode(gzip.compress(packed, mtime=0)).decode()
    assert whole in page
    path.write_text(page.replace(whole, b64encode(damaged(packed)).decode()), encoding="utf-8")
    opened = open_page(path.as_uri()).page
    opened.locator("#note", has_text="could not be shown").wait_for()
    assert opened.locator("#still img").is_visible()
    assert opened.locator(".gpumem-report").count() == 0


def test_a_policy_without_webassembly_is_said(
    recordings: Sessions, open_page: Open, tmp_path: Path
) -> None:
    """What the page's policy would have to allow stands where the report would."""
    path = tmp_path / "report.html"
    gpumem.report(recordings["leak"]).save(path)
    page = path.read_text(encoding="utf-8")
    path.write_text(page.replace(" 'wasm-unsafe-eval'", "", 1), encoding="utf-8")
    opened = open_page(path.as_uri()).page
    opened.locator("#note", has_text="wasm-unsafe-eval").wait_for()
    assert opened.locator("#still img").is_visible()


def test_a_canvas_that_was_lost_is_painted_again(open_report: OpenReport) -> None:
    """The browser takes canvases away when it must, and says when they are back."""
    report = open_report("leak")
    before = report.pixels("cells")["colours"]
    canvas = report.canvas("cells")
    canvas.evaluate("(canvas) => { canvas.width = canvas.width }")
    assert report.pixels("cells")["colours"] != before
    canvas.evaluate("(canvas) => canvas.dispatchEvent(new Event('contextrestored'))")
    assert report.pixels("cells")["colours"] == before
