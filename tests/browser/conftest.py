"""A real browser, a real JupyterLab and recordings made in a real shell."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from .live import Guarded, Lab, ReportPage, saved, wait
from .sessions import Sessions, recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page, Request

    OpenReport = Callable[..., ReportPage]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No name is found but this machine's address: a page that asks for another is refused.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
SETTINGS = {
    "notification": {"fetchNews": "false", "checkForUpdates": False},
    "themes": {"theme": "JupyterLab Light"},
}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, the one that `GPUMEM_CHROMIUM` names or else the first on the path."""
    names = ["chromium", "chromium-browser", "google-chrome"]
    found = os.environ.get("GPUMEM_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.fail("no Chromium: name it in GPUMEM_CHROMIUM")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Guarded]]:
    """Open pages; what they ask of other hosts is noted."""
    contexts: list[BrowserContext] = []

    def open_at(url: str, *, host: str | None = None, **options: Any) -> Guarded:
        context = browser.new_context(**options)
        contexts.append(context)
        strays: list[str] = []
        errors: list[str] = []

        def note(request: Request) -> None:
            if not _belongs(request.url, host):
                strays.append(request.url)

        page = context.new_page()
        page.on("request", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        return Guarded(page, strays, errors)

    yield open_at
    for context in contexts:
        context.close()


@pytest.fixture
def open_report(
    open_page: Callable[..., Guarded], tmp_path: Path, request: pytest.FixtureRequest
) -> OpenReport:
    """Save the page of a recording, of a report or of a session by its name, and open it."""

    def open_it(what: Any, **view: Any) -> ReportPage:
        if isinstance(what, str):
            what = request.getfixturevalue("recordings")[what]
        return ReportPage(open_page(saved(what, tmp_path), **view).page)

    return open_it


@pytest.fixture
def open_file(open_page: Callable[..., Guarded], tmp_path: Path) -> Callable[..., Page]:
    """Write the page of a file or folder by the command, and open it."""

    def open_it(source: Path, *options: str, **view: Any) -> Page:
        target = tmp_path / "page.html"
        command = [sys.executable, "-m", "gpumem", "report", source, *options, "--html", target]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        opened = open_page(target.as_uri(), **view)
        opened.page.locator(".headline").wait_for()
        return opened.page

    return open_it


def _belongs(url: str, host: str | None) -> bool:
    return url.startswith(("file:", "data:", "blob:")) or (host is not None and host in url)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start JupyterLab on an empty folder, with settings and data of its own."""
    root = tmp_path_factory.mktemp("lab")
    folder = root / "notebooks"
    folder.mkdir()
    settings = root / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    for name, content in SETTINGS.items():
        (settings / f"{name}.jupyterlab-settings").write_text(json.dumps(content))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "IPYTHONDIR": str(root / "ipython"),
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_DATA_DIR": str(root / "data"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(root / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(root / "workspaces"),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    options = [
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folder}",
        "--IdentityProvider.token=",
        "--ServerApp.disable_check_xsrf=True",
        # Notebook 7 is another page of the same server.
        "--ServerApp.jpserver_extensions={'notebook': True}",
    ]
    with (root / "log").open("w") as log:
        server = subprocess.Popen([*command, *options], env=environment, stdout=log, stderr=log)
        running = Lab(f"http://127.0.0.1:{port}", folder)
        try:
            wait(lambda: _answers(running), f"JupyterLab did not start: {root / 'log'}")
            yield running
        finally:
            server.terminate()
            server.wait(timeout=30)


def _answers(lab: Lab) -> bool:
    with contextlib.suppress(OSError):
        lab.ask("api/status")
        return True
    return False


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    """Record sessions in a shell of their own, by name."""
    with recording(tmp_path_factory.mktemp("recordings")) as sessions:
        yield sessions


# A rank of a job, which trains once a file tells it to start.
RANK = """
    import sys, time
    import gpumem
    from gpumem import sim

    sim.use(total_bytes=1 << 30)
    with gpumem.record("start"):
        model, losses = sim.tensor(100 << 20), []
    print("began", flush=True)
    sys.stdin.readline()
    with gpumem.record("train"):
        for step in gpumem.steps(range(30)):
            batch = sim.tensor((60 + step % 7) << 20)
            if sys.argv[1] == "leaking":
                losses.append(sim.tensor(24 << 20))
            time.sleep(0.01)
            del batch
    gpumem.recording().save(sys.argv[2])
"""


@pytest.fixture(scope="session")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a recording of a rank that leaks, and of one that does not."""
    folder = tmp_path_factory.mktemp("ranks")
    script = folder / "train.py"
    script.write_text(textwrap.dedent(RANK))
    around = {name: it for name, it in os.environ.items() if name != "GPUMEM_PROCESSES"}
    saved = {kind: folder / f"{kind}.gpumem" for kind in ("leaking", "steady")}
    started = []
    for kind, path in saved.items():
        process = subprocess.Popen(
            [sys.executable, str(script), kind, str(path)],
            env=around,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        # The one that leaks begins first, and both train at the same time.
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("train\n")
        process.stdin.flush()
    for process in started:
        process.communicate(timeout=60)
        assert process.returncode == 0
    return saved


@pytest.fixture
def job(ranks: dict[str, Path], tmp_path: Path) -> Callable[..., Path]:
    """Return a folder with ranks, of which the last ones leak.

    Ranks without a number are numbered by when they began, the latest first.
    """

    def folder(n: int, leaking: int = 0) -> Path:
        made = tmp_path / "job"
        made.mkdir()
        for rank in range(n):
            kind = "leaking" if rank >= n - leaking else "steady"
            shutil.copy(ranks[kind], made / f"{rank:03}.gpumem")
        return made

    return folder
