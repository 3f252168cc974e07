"""A real kernel over ZMQ, as frontends talk to it."""

from __future__ import annotations

import ast
import gzip
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gpumem
import ipykernel
import pytest
from jupyter_client.manager import start_new_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jupyter_client.blocking import BlockingKernelClient
    from jupyter_client.manager import KernelManager

pytestmark = pytest.mark.ipython

WIDGET = "application/vnd.jupyter.widget-view+json"
# A signal that comes just before Python calls the system's sleep does not end that: naps are short.
NAPS = "import time\nprint('running', flush=True)\nfor _ in range(12_000):\n    time.sleep(0.01)"
FRAMES = {"method": "custom", "content": {"kind": "frames"}}
TIMEOUT = 60


@dataclass
class Ran:
    """What a cell answered."""

    status: str
    execution_count: int
    expressions: dict[str, Any]
    outputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """The texts of our own outputs."""
        return [
            output["content"]["data"]["text/plain"]
            for output in self.outputs
            if output["msg_type"] == "display_data" and "gpumem" in output["content"]["metadata"]
        ]

    @property
    def printed(self) -> str:
        """All of stdout and stderr."""
        streams = (output for output in self.outputs if output["msg_type"] == "stream")
        return "".join(output["content"]["text"] for output in streams)

    def of(self, msg_type: str) -> list[dict[str, Any]]:
        """Return the messages of one type, in their order."""
        return [output for output in self.outputs if output["msg_type"] == msg_type]


class Kernel:
    """A kernel with its client."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client
        self.unasked: list[dict[str, Any]] = []

    def start(
        self, code: str, *, cell_id: str | None = None, subshell: str | None = None, **content: Any
    ) -> str:
        """Send a cell as a frontend does and return the message's id."""
        request = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        metadata = {} if cell_id is None else {"cellId": cell_id}
        message = self.client.session.msg("execute_request", request | content, metadata=metadata)
        message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def finish(self, request: str) -> Ran:
        """Wait for a cell and return what it answered."""
        outputs = list(self.outputs_until_idle(request))
        reply = self.reply(request)["content"]
        count, expressions = reply.get("execution_count", 0), reply.get("user_expressions", {})
        return Ran(reply["status"], count, expressions, outputs)

    def interrupt(self, request: str) -> Ran:
        """Interrupt a cell once, as a person does."""
        self.manager.interrupt_kernel()
        return self.finish(request)

    def run(self, code: str, **content: Any) -> Ran:
        """Run a cell. After an error, a kernel refuses for a moment what was sent after it."""
        ran = self.finish(self.start(code, **content))
        while ran.status == "aborted":
            ran = self.finish(self.start(code, **content))
        return ran

    def value(self, expression: str) -> Any:
        """Evaluate without running a cell."""
        ran = self.run("", silent=True, store_history=False, user_expressions={"it": expression})
        it = ran.expressions["it"]
        assert it["status"] == "ok", it
        return ast.literal_eval(it["data"]["text/plain"])

    def say(self, msg_type: str, content: dict[str, Any]) -> list[dict[str, Any]]:
        """Send a message that has no reply and return what it led to."""
        message = self.client.session.msg(msg_type, content)
        self.client.shell_channel.send(message)
        return list(self.outputs_until_idle(message["header"]["msg_id"]))

    def wait_for_print(self) -> None:
        """Wait until a running cell has printed."""
        while self.client.get_iopub_msg(timeout=TIMEOUT)["msg_type"] != "stream":
            pass

    def next_frames(self, comm_id: str) -> bytes:
        """Wait for the next live update of a report."""
        while True:
            message = self.unasked.pop(0) if self.unasked else self.client.get_iopub_msg(TIMEOUT)
            content = message["content"]
            if message["msg_type"] == "comm_msg" and content["comm_id"] == comm_id:
                assert content["data"] == FRAMES
                return bytes(message["buffers"][0])

    def outputs_until_idle(self, request: str) -> Iterator[dict[str, Any]]:
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            is_update = message["content"].get("data") == FRAMES
            if is_update or message["parent_header"].get("msg_id") != request:
                self.unasked.append(message)
                continue
            if message["content"].get("execution_state") == "idle":
                return
            yield message

    def reply(self, request: str) -> dict[str, Any]:
        while True:
            message: dict[str, Any] = self.client.get_shell_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") == request:
                return message


@contextmanager
def new_kernel(folder: Path, make: type[Kernel] = Kernel) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder))
        manager, client = start_new_kernel(
            kernel_name="python3", extra_arguments=["--log-level=ERROR"]
        )
    try:
        kernel = make(manager, client)
        kernel.run("%load_ext gpumem\nimport gpumem\ngpumem.sim.use()")
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def the_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with new_kernel(tmp_path_factory.mktemp("ipython")) as kernel:
        yield kernel


@pytest.fixture
def kernel(the_kernel: Kernel) -> Kernel:
    """Return a kernel that has recorded nothing."""
    the_kernel.run("%gpumem reset")
    the_kernel.run("%gpumem off")
    return the_kernel


def test_the_line_is_display_data_and_nothing_is_printed(kernel: Kernel) -> None:
    ran = kernel.run("%%gpumem\nx = gpumem.sim.tensor(64 << 20)")
    [output] = ran.of("display_data")
    assert list(output["content"]["data"]) == ["text/plain"]
    assert output["content"]["metadata"] == {"gpumem": {"run": 0}}
    assert ran.lines[0].startswith("+64 MiB kept · ")
    assert ran.printed == ""


def test_the_line_comes_after_the_output_and_before_idle(kernel: Kernel) -> None:
    ran = kernel.run("%%gpumem\nprint('hello')\n7")
    types = [output["msg_type"] for output in ran.outputs]
    assert types.index("stream") < types.index("display_data")
    assert types.index("execute_result") < types.index("display_data")


def test_an_interrupted_cell_is_recorded_as_such(kernel: Kernel) -> None:
    request = kernel.start(f"%%gpumem\n{NAPS}")
    kernel.wait_for_print()
    ran = kernel.interrupt(request)
    assert ran.status == "error"
    assert len(ran.lines) == 1
    assert kernel.value("gpumem.report().runs[-1]['status']") == "interrupted"
    after = kernel.run("%%gpumem\nx = 2")
    assert after.status == "ok"
    assert len(after.lines) == 1
    assert kernel.value("gpumem.report().runs[-1]['status']") == "ok"


@pytest.mark.skipif(ipykernel.version_info < (6,), reason="ipykernel 5 passes no id of a cell on")
def test_an_edited_cell_stays_the_same_cell(kernel: Kernel) -> None:
    kernel.run("%%gpumem\nx = 1", cell_id="first")
    kernel.run("%%gpumem\nx = 22", cell_id="first")
    kernel.run("%%gpumem\nx = 1", cell_id="second")
    runs = "{run['run']: run['cell']['id'] for run in gpumem.report().runs}"
    assert kernel.value(runs) == {0: "first", 1: "first", 2: "second"}


def test_a_report_is_a_picture_and_then_a_live_view(kernel: Kernel) -> None:
    kernel.run("%%gpumem\nx = gpumem.sim.tensor(64 << 20)")
    picture, style, view = (o["content"] for o in kernel.run("%gpumem_report").of("display_data"))
    assert sorted(picture["data"]) == ["image/png", "text/plain"]
    assert picture["data"]["text/plain"].startswith("GPU memory · 1 run")
    assert sorted(picture["metadata"]["image/png"]) == ["alt", "height", "width"]
    # Without a kernel, that hides the place of the view.
    assert sorted(style["data"]) == ["text/html", "text/plain"]
    assert sorted(view["data"]) == sorted([WIDGET, "text/plain"])
    assert view["data"]["text/plain"] == ""


def test_a_page_that_lost_the_module_gets_it_again(kernel: Kernel) -> None:
    view = kernel.run("%gpumem_report").of("display_data")[-1]["content"]
    comm_id = view["data"][WIDGET]["model_id"]
    ask = {"method": "custom", "content": {"kind": "runtime"}}
    answers = kernel.say("comm_msg", {"comm_id": comm_id, "data": ask})
    [answer] = [message for message in answers if message["msg_type"] == "comm_msg"]
    assert answer["content"]["data"] == {"method": "custom", "content": {"kind": "runtime"}}
    assert b"Symbol.for" in bytes(answer["buffers"][0])


def test_an_open_report_follows_the_session(kernel: Kernel) -> None:
    kernel.run("%%gpumem\nx = 1")
    view = kernel.run("%gpumem_report").of("display_data")[-1]["content"]
    comm_id = view["data"][WIDGET]["model_id"]
    known: bytes = kernel.value("gpumem.recording().to_bytes()")
    assert gpumem.types.Recording.from_bytes(known)._position()[1] == 1
    kernel.run("%%gpumem\nx = 2")
    while gpumem.types.Recording.from_bytes(known)._position()[1] < 2:
        known += kernel.next_frames(comm_id)

    ask = {"comm_id": comm_id, "data": {"method": "request_state"}}
    [state] = [
        message
        for message in kernel.say("comm_msg", ask)
        if message["msg_type"] == "comm_msg" and len(message["content"]["data"]["state"]) > 1
    ]
    paths = state["content"]["data"]["buffer_paths"]
    whole = gzip.decompress(bytes(state["buffers"][paths.index(["recording"])]))
    assert kernel.value(f"gpumem.types.Recording.from_bytes({whole!r})._position()[1]") == 2


def test_an_open_report_follows_a_cell_that_is_under_way(kernel: Kernel) -> None:
    view = kernel.run("%gpumem_report").of("display_data")[-1]["content"]
    comm_id = view["data"][WIDGET]["model_id"]
    known: bytes = kernel.value("gpumem.recording().to_bytes()")
    began = time.monotonic()
    request = kernel.start(
        "%%gpumem\nimport time\nkept = []\nfor _ in gpumem.steps(range(10**9)):\n"
        "    kept.append(gpumem.sim.tensor(1 << 20))\n    time.sleep(0.001)"
    )
    n_steps = []
    for _ in range(6):
        known += kernel.next_frames(comm_id)
        report = gpumem.report(gpumem.types.Recording.from_bytes(known))
        assert report.runs[-1]["status"] == "running"
        n_steps += [
            finding.n_runs
            for finding in report.findings
            if getattr(finding.details, "steps", False)
        ]
    assert time.monotonic() - began > 6 * 0.1
    assert kernel.interrupt(request).status == "error"
    assert len(n_steps) > 2
    assert n_steps == sorted(set(n_steps))
    whole = kernel.value("gpumem.recording().to_bytes()")
    while gpumem.types.Recording.from_bytes(known).to_bytes() != whole:
        known += kernel.next_frames(comm_id)


def test_a_report_stops_following_where_another_one_begins(kernel: Kernel) -> None:
    kernel.run(
        "import threading\n"
        "def following():\n"
        "    return [it for it in threading.enumerate() if it.name == 'gpumem-report']"
    )
    for _ in range(3):
        kernel.run("%gpumem_report")
    kernel.run("for it in following()[:-1]: it.join(60)")
    assert kernel.value("len(following())") == 1
    kernel.run("%gpumem reset")
    kernel.run("for it in following(): it.join(60)")
    assert kernel.value("len(following())") == 0


def test_the_users_comms_are_left_alone(kernel: Kernel) -> None:
    kernel.run(
        "def answer(comm, message):\n"
        "    comm.send(message['content']['data'])\n"
        "get_ipython().kernel.comm_manager.register_target('echo', answer)\n"
        "%gpumem on"
    )
    content = {"comm_id": "1", "target_name": "echo", "data": {"n": 7}}
    answers = kernel.say("comm_open", content)
    [answer] = [message for message in answers if message["msg_type"] == "comm_msg"]
    assert answer["content"]["data"] == {"n": 7}
    assert kernel.value("len(gpumem.report().runs)") == 0


def test_a_kernel_ends_in_the_middle_of_a_run(tmp_path: Path) -> None:
    with new_kernel(tmp_path) as kernel:
        kernel.start(f"%%gpumem\n{NAPS}")
        kernel.wait_for_print()
        start = time.monotonic()
        kernel.manager.shutdown_kernel()
        assert time.monotonic() - start < kernel.manager.shutdown_wait_time
        assert not kernel.manager.is_alive()


@pytest.mark.parametrize("cell_name", [None, "<a cell of its own>"])
def test_a_traced_run_finds_the_lines_of_its_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell_name: str | None
) -> None:
    if cell_name is not None:
        monkeypatch.setenv("IPYKERNEL_CELL_NAME", cell_name)
    with new_kernel(tmp_path) as kernel:
        cell = "%%gpumem --trace\nkept = []\n\nkept.append(gpumem.sim.tensor(1 << 20))"
        # The same text a second time is compiled under the same name.
        for _ in range(2):
            assert kernel.run(cell).status == "ok"
        lines = "[[it['line'] for it in trace['lines']] for trace in gpumem.report().traces]"
        assert kernel.value(lines) == [[4], [4]]
