"""A machine whose NVIDIA libraries are played: its cards, other processes, and faults to inject.

`tests/played-cuda/README.md` describes the state file that this module writes. The played
libraries read it again at every call, so a test may change a machine that is in use.
"""

from __future__ import annotations

import contextlib
import json
import os
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.programs import output_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

LIBRARIES = os.environ.get("PLAYED_CUDA_LIBRARIES")
"""The folder of `libcuda.so.1` and `libnvidia-ml.so.1`; `None` outside `cargo xtask test`."""

PROGRAMS = os.environ.get("PLAYED_CUDA_PROGRAMS")
"""The folder of the played `nvidia-smi`."""

UNAVAILABLE = "all"
"""Instead of a number of MiB: the driver does not say."""


PRELUDE = """
import json
import torch

def tell(answer):
    print(json.dumps(answer), flush=True)
"""


class Call(NamedTuple):
    """A call that a process made to the played driver or to NVML."""

    pid: int
    thread: str
    name: str


class Machine:
    """The machine of a folder, with played cards. Processes with its `environment` share it."""

    def __init__(self, folder: Path) -> None:
        self.state_file = folder / "state"
        self.log_file = folder / "calls"
        self._state: dict[str, object] = {}
        if self.state_file.exists():
            lines = self.state_file.read_text("utf-8").splitlines()
            self._state.update(
                (key, it) for key, _, it in (line.partition(" = ") for line in lines)
            )
        else:
            self.cards(1)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment, from its start, to find this machine."""
        return {
            "LD_LIBRARY_PATH": str(LIBRARIES),
            "PATH": os.pathsep.join([str(PROGRAMS), os.environ.get("PATH", "")]),
            "PLAYED_CUDA_STATE": str(self.state_file),
            "PLAYED_CUDA_LOG": str(self.log_file),
        }

    def run(self, script: str, **environment: str) -> Any:
        """Run a Python script that has torch on this machine, and return what it tells.

        The script calls `tell(…)` with what JSON can hold; the last one counts.
        """
        output = output_of(
            "-c", PRELUDE + textwrap.dedent(script), **{**self.environment, **environment}
        )
        return json.loads(output.splitlines()[-1])

    def put(self, changes: Mapping[str, object]) -> None:
        """Set lines of the state file; `None` removes one."""
        self._state |= changes
        self._state = {key: it for key, it in self._state.items() if it is not None}
        # Replaced in one step: it is read at any time.
        new = self.state_file.with_suffix(".new")
        lines = [f"{key} = {value}" for key, value in self._state.items()]
        new.write_text("\n".join(lines), encoding="utf-8")
        new.replace(self.state_file)

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Take back afterwards what was set inside."""
        before = dict(self._state)
        yield
        self.put({**dict.fromkeys(self._state), **before})

    def cards(self, n_cards: int, *, total_mib: int = 8192, context_mib: int = 300) -> None:
        """Give the machine that many cards, each with this capacity and cost of a context."""
        self.put({"n_gpus": n_cards})
        for gpu in range(n_cards):
            self.card(gpu, total_mib=total_mib, context_mib=context_mib)

    def card(self, gpu: int, **settings: object) -> None:
        """Set one card's `name`, `uuid`, `total_mib`, `reserved_mib`, `context_mib`, ….

        `capability` is its compute capability, such as 80, 90 or 120.
        """
        self.put({f"gpu{gpu}.{key}": value for key, value in settings.items()})

    def others(self, gpu: int, processes: Mapping[int, int | str]) -> None:
        """Let other processes hold memory: MiB by process id, or `UNAVAILABLE`."""
        held = [n_mib for n_mib in processes.values() if isinstance(n_mib, int)]
        listed = " ".join(f"{pid}:{n_mib}" for pid, n_mib in processes.items())
        self.card(gpu, used_mib=sum(held), computing=listed)

    def withhold(self, gpu: int) -> None:
        """Let NVML list every process without its memory, as some drivers do."""
        self.card(gpu, withhold_process_memory="yes")

    def hide(self, gpu: int) -> None:
        """Let NVML list no process of this machine, as in a container with its own numbers."""
        self.card(gpu, hide_processes="yes")

    def divide(self, gpu: int, parts: Sequence[tuple[str, int]], *, n_places: int = 7) -> None:
        """Divide a card by MIG into parts, each with its UUID (`MIG-…`) and MiB."""
        self.card(gpu, mig_places=n_places)
        for idx, (uuid, total_mib) in enumerate(parts):
            self.card(gpu, **{f"mig{idx}.uuid": uuid, f"mig{idx}.total_mib": total_mib})

    def fail(self, call: str, error: str = "unknown", *, thread: str | None = None) -> None:
        """Let a call fail: `invalid`, `not_supported`, `lost`, …, or a number.

        With `thread`, this and every other fault is met only by threads whose name starts so.
        """
        self.put({call: error, "faults.thread": thread})

    def hang(self, call: str, *, thread: str | None = None) -> None:
        """Let a call never return."""
        self.fail(call, "hang", thread=thread)

    def wait(self, call: str, millis: int, *, thread: str | None = None) -> None:
        """Let a call take that long, and then answer as ever."""
        self.fail(call, f"wait {millis}", thread=thread)

    def wrong_size(self, call: str, n_bytes: int, *, thread: str | None = None) -> None:
        """Let every size that a call returns be this one."""
        self.fail(call, f"size {n_bytes}", thread=thread)

    def heal(self, *calls: str) -> None:
        """Let calls answer again."""
        self.put(dict.fromkeys(calls))

    def delay(self, millis: int | None) -> None:
        """Let every call take that long; `None` ends it."""
        self.put({"delay_millis": millis})

    def calls(self, thread: str = "") -> list[Call]:
        """Return every call so far, of threads whose name starts so, in order."""
        if not self.log_file.exists():
            return []
        rows = [line.split(" ", 2) for line in self.log_file.read_text("utf-8").splitlines()]
        made = [Call(int(pid), name_of_thread, call) for pid, name_of_thread, call in rows]
        return [call for call in made if call.thread.startswith(thread)]
