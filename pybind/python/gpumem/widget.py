"""The live report, in a notebook and as a page of its own.

A report in a notebook has a picture with its text, which shows everywhere, and the
live view, which hides the picture while it runs; between them stands what hides
the view's place in a notebook that is opened again. The view's
module is large: a kernel sends it once, in a widget of its own. Each report then
sends only its recording and a few lines of script.
"""

from __future__ import annotations

import atexit
import gzip
import re
import signal
import sys
import threading
import time
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Any

import traitlets
from anywidget import AnyWidget
from IPython.display import publish_display_data

from gpumem import _gpumem
from gpumem._static import built
from gpumem._table import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpumem._report import Report
    from gpumem._verdicts import Comparison

_VIEW = "application/vnd.jupyter.widget-view+json"
_WIDTH = 880
_SCALE = 2
# Characters at the end of the picture's base64 that identify it.
_N_TAIL = 64


# A notebook that is opened again has the picture, but no kernel with the view's model. Lab and
# Notebook then write an error where the view was: until it has an element, nothing is shown there.
_ONLY_PICTURE = (
    "<style data-gpumem>.jp-OutputArea-child:has(style[data-gpumem]),"
    ".jp-OutputArea-child:has(style[data-gpumem])+.jp-OutputArea-child"
    ">.jp-OutputArea-output:not(:has(*))"
    "{display:none}</style>"
)


# At most ten updates a second; after each, a rest of this many times its cost.
_PAUSE_SECONDS = 0.1
_REST = 100


class _Runtime(AnyWidget):
    """Sends the module to the page; has no view."""

    _esm = built("provider.js")


class ReportWidget(AnyWidget):
    """The live view of one recording."""

    _esm = built("thin.js")
    recording = traitlets.Bytes().tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)
    # The baseline that the recording is compared with, and its name.
    baseline = traitlets.Bytes().tag(sync=True)
    baseline_name = traitlets.Unicode().tag(sync=True)
    # The text above the report: that recording has stopped.
    notice = traitlets.Unicode().tag(sync=True)
    # The module, if each output is a page of its own.
    runtime = traitlets.Bytes().tag(sync=True)
    # What the reader looks at: the page reads and writes it.
    state = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        recording: bytes,
        picture: str = "",
        *,
        baseline: bytes = b"",
        baseline_name: str = "",
        notice: str = "",
    ) -> None:
        """Show a gzipped recording; `picture` is the end of the base64 of the picture it replaces.

        `baseline` is another gzipped recording, to compare with.
        """
        runtime = b""
        if _has_a_page_for_each_output():
            runtime = built("provider.js").read_bytes()
        else:
            _runtime()
        super().__init__(
            recording=recording,
            picture=picture,
            baseline=baseline,
            baseline_name=baseline_name,
            notice=notice,
            runtime=runtime,
        )
        self.on_msg(self._answer)

    def update(self, frames: bytes) -> None:
        """Show new frames, also while a cell runs."""
        self.send({"kind": "frames"}, [frames])

    def get_state(
        self,
        key: str | Iterable[str] | None = None,
        drop_defaults: bool = False,  # noqa: FBT001, FBT002 (the signature of the base)
    ) -> dict[str, Any]:
        """Return a page's initial state; a page that opens later gets all runs until then."""
        if key is None and _the_updates is not None and _the_updates.widget is self:
            self.recording = _the_updates.packed() or self.recording
        state: dict[str, Any] = super().get_state(key, drop_defaults)
        return state

    def _answer(self, _widget: object, message: dict[str, Any], _buffers: object) -> None:
        # A page without the module asks for it: after a reload of the browser, or if it shows only
        # this output. In the latter case later reports carry the module.
        if message.get("kind") == "runtime":
            global _is_alone  # noqa: PLW0603 (how this kernel's notebook shows outputs)
            _is_alone = _is_alone or message.get("alone") is True
            self.send({"kind": "runtime"}, [built("provider.js").read_bytes()])


class _Updates:
    """Keeps a report up to date with its session, also while a cell runs.

    A thread of its own sends the updates: no cell waits for it. It sleeps without the GIL until
    there are changes, and rests longer if an update cost more.
    """

    def __init__(self, widget: ReportWidget, position: tuple[str, int]) -> None:
        self.widget = widget
        self._session, n_runs = position
        self._follower = _gpumem._follow(self._session, n_runs)
        self._thread = threading.Thread(target=self._tell, name="gpumem-report", daemon=True)
        self._thread.start()

    def packed(self) -> bytes | None:
        """Return the session's whole recording; None if another session has begun."""
        whole = _gpumem.recording()
        is_same = whole._position()[0] == self._session
        return gzip.compress(whole.to_bytes(), mtime=0) if is_same else None

    def stop(self) -> None:
        """Stop updating the report and end the thread."""
        if self._follower is not None:
            self._follower.close()
        self._thread.join(timeout=1)

    def _tell(self) -> None:
        if self._follower is None:
            return
        if hasattr(signal, "pthread_sigmask"):
            # A Ctrl-C that is handled here would not wake the main thread.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        pause = _PAUSE_SECONDS
        try:
            while (frames := self._follower.next(pause)) is not None:
                if self.widget.comm is None:
                    break
                began = time.thread_time()
                self.widget.update(frames)
                pause = max(_PAUSE_SECONDS, _REST * (time.thread_time() - began))
        except Exception:  # noqa: S110 (the report stands as it is; the next one is new)
            pass
        finally:
            self._follower.close()


_the_updates: _Updates | None = None
_the_runtime: _Runtime | None = None
_is_alone = False


def _has_a_page_for_each_output() -> bool:
    """Return whether each output is a page of its own and lacks the other outputs' module."""
    return _is_alone or "google.colab" in sys.modules


@atexit.register
def _stop() -> None:
    """Stop the thread before the interpreter shuts down."""
    if _the_updates is not None:
        _the_updates.stop()


def _runtime() -> _Runtime:
    global _the_runtime  # noqa: PLW0603 (one module for every report of this kernel)
    if _the_runtime is None or _the_runtime.comm is None:
        _the_runtime = _Runtime()
    return _the_runtime


def show(report: Report, against: Comparison | None = None) -> None:
    """Display a report: its picture, and the live view that replaces it."""
    png = report.png(width=_WIDTH, scale=_SCALE, dark=False)
    picture = b64encode(png).decode("ascii")
    text = _text(report, against)
    size = {"width": _WIDTH, "height": _height(png), "alt": _alternative(text)}
    publish_display_data({"image/png": picture, "text/plain": text}, {"image/png": size})
    global _the_updates  # noqa: PLW0603 (the latest report of this kernel)
    widget = live(report, against, picture[-_N_TAIL:])
    if against is None:
        _the_updates = _Updates(widget, report.recording._position())
    view, metadata = _view(widget)
    publish_display_data({"text/html": _ONLY_PICTURE, "text/plain": ""})
    publish_display_data({**view, "text/plain": ""}, metadata)


def live(report: Report, against: Comparison | None = None, picture: str = "") -> ReportWidget:
    """Return the live view alone, without updates; `picture` as in `ReportWidget`."""
    recording = _packed(report.recording)
    notice = _notice(report, against)
    if against is None:
        return ReportWidget(recording, picture, notice=notice)
    # A comparison shows a renumbered part of the session: it is not updated.
    baseline = _packed(against.baseline)
    return ReportWidget(
        recording, picture, baseline=baseline, baseline_name=against.name, notice=notice
    )


def _view(widget: ReportWidget) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a page shows a widget by, and its metadata, which Colab needs."""
    bundle = getattr(widget, "_repr_mimebundle_", None)
    if bundle is not None:
        view, metadata = bundle()
        return view, metadata
    # With ipywidgets 7, an older anywidget can only display itself, with a text of its own.
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {_VIEW: view}, {}


def html(report: Report, against: Comparison | None = None) -> str:
    """Return a page that shows the live report from disk, without a network.

    Without scripts it shows the picture and the text.
    """
    text = _text(report, against)
    png = report.png(width=_WIDTH, scale=_SCALE, dark=False)
    parts = {
        "ALT": escaped(_alternative(text)),
        "BASELINE": "" if against is None else _in_base64(_packed(against.baseline)),
        "NAME": "" if against is None else escaped(against.name),
        "NOTICE": escaped(_notice(report, against)),
        "PICTURE": _in_base64(png),
        "RECORDING": _in_base64(_packed(report.recording)),
        "TEXT": escape(text),
        "WIDTH": str(_WIDTH),
    }
    page = built("standalone.html").read_text(encoding="utf-8")
    # One pass: no part is searched for the placeholder of another.
    return re.sub(r"__GPUMEM_([A-Z]+)__", lambda found: parts[found[1]], page)


def _text(report: Report, against: Comparison | None) -> str:
    text = report.text()
    return text if against is None else f"{against.text()}\n\n{text}"


def _notice(report: Report, against: Comparison | None) -> str:
    return (report.notice if against is None else against.notice) or ""


def _packed(recording: _gpumem.Recording) -> bytes:
    return gzip.compress(recording.to_bytes(), mtime=0)


def _in_base64(content: bytes) -> str:
    return b64encode(content).decode("ascii")


def _height(png: bytes) -> int:
    """Height in CSS pixels, from the picture's own header."""
    return int.from_bytes(png[20:24], "big") // _SCALE


def _alternative(text: str) -> str:
    """Return the picture's alternative text: the verdict, which begins with its sign."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    signs = (number for number, line in enumerate(lines) if line[0] in "▲◆○✓")
    verdict = next(signs, 0)
    return ". ".join(lines[verdict : verdict + 2])
