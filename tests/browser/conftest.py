"""A real browser, a real JupyterLab and recordings made in a real shell."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from .live import Guarded, Lab, wait
from .sessions import Sessions, recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, Request

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
