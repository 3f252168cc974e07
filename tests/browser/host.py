"""A page that does what notebooks do with a widget: models, views, and pages for single outputs."""

from __future__ import annotations

import html
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
from gpumem import widget

from tests.support.reports import recording_in

from .live import CELLS, QUIET, SETUP, record

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

# What anywidget is to a module: a model with traits and messages, of which each view gets an
# object of its own, and a place in the page.
SCRIPT = """
const bytes = (text) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
const view = (text) => new DataView(bytes(text).buffer);
const load = async (text) => {
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    try { return (await import(url)).default; } finally { URL.revokeObjectURL(url); }
};
function make(traits) {
    const heard = new Map();
    return {
        sent: [],
        seenBy(context) {
            return {
                get: (name) => traits[name],
                set: (name, value) => { traits[name] = value; },
                save_changes() {},
                on: (name, act) => heard.set(act, context),
                off: (name, act) => heard.delete(act),
                send: (message) => this.sent.push(message),
            };
        },
        leave(context) {
            for (const [act, of] of heard) if (of === context) heard.delete(act);
        },
        tell(kind, content) {
            for (const act of heard.keys()) act({ kind }, [view(content)]);
        },
    };
}
window.host = {
    models: {},
    closers: [],
    load,
    async make(name, esm, recording, runtime) {
        const picture = document.querySelector("img")?.src.slice(-64) ?? "";
        const traits = { picture, state: "", baseline: null, baseline_name: "" };
        const model = make({ ...traits, recording: view(recording), runtime: view(runtime) });
        const module = await load(esm);
        model.definition = typeof module === "function" ? await module() : module;
        await model.definition.initialize?.({ model: model.seenBy(model) });
        this.models[name] = model;
    },
    async show(name) {
        const el = document.createElement("div");
        document.body.append(el);
        const model = this.models[name];
        const close = await model.definition.render({ model: model.seenBy(el), el });
        this.closers.push(() => { close?.(); model.leave(el); el.remove(); });
    },
    close() { for (const close of this.closers.splice(0)) close(); },
};
"""
PAGE = "<!doctype html><html lang=en><meta charset=utf-8><title>host</title>{head}<body>{body}"
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "script-src 'unsafe-inline' {allowed}"
)
# What modules from the kernel and WebAssembly need.
ALLOWED = "blob: 'wasm-unsafe-eval'"


class Host:
    """Shows recordings as a notebook would, in a page or in a frame for a single output."""

    def __init__(self, frame: Page | Frame, recording: gpumem.types.Recording) -> None:
        """Let `frame` show models of `recording`."""
        self.frame = frame
        self.recording = recording
        self.packed: bytes | None = None
        static = Path(widget.__file__).parent / "static"
        self.provider = (static / "provider.js").read_bytes()
        self.thin = (static / "thin.js").read_text(encoding="utf-8")

    @classmethod
    def on(cls, page: Page, recording: gpumem.types.Recording, folder: Path) -> Host:
        """Open a page with the report's picture, on which the kernel's runtime has been shown."""
        picture = b64encode(gpumem.report(recording).png()).decode()
        empty = folder / "host.html"
        body = f'<div><img alt="the report" src="data:image/png;base64,{picture}"></div>'
        empty.write_text(PAGE.format(head="", body=body))
        page.goto(empty.as_uri())
        page.evaluate(SCRIPT)
        host = cls(page, recording)
        host.provide()
        return host

    @classmethod
    def frames(
        cls,
        page: Page,
        recording: gpumem.types.Recording,
        folder: Path,
        n: int,
        allowed: str = ALLOWED,
    ) -> list[Host]:
        """Open a page that shows each of `n` outputs in a frame of its own, of no origin."""
        policy = html.escape(POLICY.format(allowed=allowed))
        head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        inner = html.escape(PAGE.format(head=head, body=f"<script>{SCRIPT}</script>"))
        style = "width: 100%; height: 1000px"
        frame = f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{inner}"></iframe>'
        outer = folder / "outputs.html"
        outer.write_text(PAGE.format(head="", body=frame * n))
        page.goto(outer.as_uri())
        return [cls(frame, recording) for frame in page.frames[1:]]

    def provide(self) -> None:
        """Show the kernel's runtime."""
        self.frame.evaluate("(text) => host.load(text)", self.provider.decode())

    def show(self, name: str = "shown", *, wait: bool = True, runtime: bytes = b"") -> None:
        """Show a view of the model of that name, which is made where there is none."""
        packed = self.packed or widget._packed(self.recording)
        arguments = [name, self.thin, *(b64encode(it).decode() for it in (packed, runtime)), wait]
        self.frame.evaluate(
            "async ([name, thin, recording, runtime, wait]) => {"
            "  if (!host.models[name]) await host.make(name, thin, recording, runtime);"
            "  const shown = host.show(name);"
            "  if (wait) await shown;"
            "}",
            arguments,
        )

    def tell(self, kind: str, content: bytes, name: str = "shown", then: str = "null") -> Any:
        """Send a message to a model, as the kernel does, and return what the page then has."""
        return self.frame.evaluate(
            f"([name, kind, content]) => (host.models[name].tell(kind, content), {then})",
            [name, kind, b64encode(content).decode()],
        )

    def sent(self, name: str = "shown") -> list[dict[str, Any]]:
        """Return the messages that a model has sent to the kernel."""
        sent: list[dict[str, Any]] = self.frame.evaluate("(name) => host.models[name].sent", name)
        return sent

    def close(self) -> None:
        """Take every view away, as running the cell again does."""
        self.frame.evaluate("() => host.close()")


def recorded(folder: Path) -> gpumem.types.Recording:
    """Record the session that a host shows."""
    record([SETUP, QUIET, "%gpumem on", *CELLS[1:]], folder / "shown")
    return recording_in(folder / "shown")
