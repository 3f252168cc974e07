"""A page that does what notebooks do with a widget: models, views, and frames of their own."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import gpumem
from gpumem import widget

from .live import CELLS, QUIET, SETUP, record

if TYPE_CHECKING:
    from playwright.sync_api import Page

# What anywidget is to a module: a model with traits and messages, and a place in the page.
SCRIPT = """
const bytes = (text) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
const load = async (text) => {
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    try { return (await import(url)).default; } finally { URL.revokeObjectURL(url); }
};
function model(traits) {
    const heard = new Set();
    return {
        sent: [],
        get: (name) => traits[name],
        set: (name, value) => { traits[name] = value; },
        save_changes() {},
        on: (name, act) => heard.add(act),
        off: (name, act) => heard.delete(act),
        send(message) { this.sent.push(message.kind); },
        tell: (message, buffers) => { for (const act of heard) act(message, buffers); },
    };
}
const view = (text) => new DataView(bytes(text).buffer);
window.host = {
    closers: [],
    model: (recording) => model({
        recording: view(recording), picture: "", state: "", baseline: null, baseline_name: "",
    }),
    async provide(text) { await load(text); },
    async show(text, shown) {
        const el = document.createElement("div");
        document.body.append(el);
        const module = await load(text);
        const close = await module.render({ model: shown, el });
        this.closers.push(() => { close?.(); el.remove(); });
    },
    close() { for (const close of this.closers.splice(0)) close(); },
};
"""


class Host:
    """Shows one recording as a notebook would."""

    def __init__(self, page: Page, folder: Path, *, has_runtime: bool = True) -> None:
        """Open an empty page; `has_runtime`: the kernel's runtime has been shown on it."""
        self.page = page
        static = Path(widget.__file__).parent / "static"
        self.provider = (static / "provider.js").read_text(encoding="utf-8")
        self.thin = (static / "thin.js").read_text(encoding="utf-8")
        cells = [SETUP, QUIET, "%gpumem on", *CELLS[1:]]
        record(cells, folder / "shown")
        self.recording = gpumem.load(folder / "shown")
        empty = folder / "host.html"
        empty.write_text("<!doctype html><html lang=en><title>host</title><body>")
        page.goto(empty.as_uri())
        page.evaluate(SCRIPT)
        if has_runtime:
            page.evaluate("(text) => host.provide(text)", self.provider)

    def show(self, *, wait: bool, name: str = "shown") -> None:
        """Show a view of the model of that name, which is made where there is none."""
        packed = b64encode(widget._packed(self.recording)).decode()
        arguments = json.dumps([name, packed, self.thin])
        self.page.evaluate(
            "async ([name, packed, thin, wait]) => {"
            "  window[name] ??= host.model(packed);"
            "  const shown = host.show(thin, window[name]);"
            "  if (wait) await shown;"
            "}",
            [*json.loads(arguments), wait],
        )

    def tell_frames(self, frames: bytes, name: str = "shown") -> None:
        """Send what was recorded since."""
        self.page.evaluate(
            "([name, text]) => window[name].tell({ kind: 'frames' }, "
            "[new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer)])",
            [name, b64encode(frames).decode()],
        )

    def tell_runtime(self, name: str = "shown") -> None:
        """Answer a page that asked for the runtime."""
        self.page.evaluate(
            "([name, text]) => window[name].tell({ kind: 'runtime' }, [text])",
            [name, self.provider],
        )

    def close(self) -> None:
        """Take every view away, as running the cell again does."""
        self.page.evaluate("() => host.close()")
