"""Debuggers, other allocators and systems that refuse memory: the kernel lives on beside them."""

from __future__ import annotations

import ctypes.util
import platform
import sys
from typing import TYPE_CHECKING

import pytest

from .conftest import Step
from .test_sandbox import RESTRICTED

if TYPE_CHECKING:
    from .conftest import Notebook

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks make copies on Linux alone")

PRELUDE = """
import ctypes, mmap, os, subprocess, sys, time
import gpumem
from gpumem import _gpumem

large = mmap.mmap(-1, 768 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
large.madvise(mmap.MADV_NOHUGEPAGE)
view = (ctypes.c_char * len(large)).from_buffer(large)
ctypes.memset(ctypes.addressof(view), 1, len(large))
leak = []
"""

GROWN = Step("leak.append(sim.tensor(8 << 20))", times=5)

HELD = "results = [it.name for it in gpumem.holders().roots]"

# As gdb does: it stays with the process and all that this makes. It prints what is no thread of it.
TRACER = """
import ctypes, os, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, CONTINUE, ON_FORK_VFORK_CLONE, ALL = 0x4206, 7, 0b1110, 0x40000000
kernel = int(sys.argv[1])
print(libc.ptrace(SEIZE, kernel, None, ON_FORK_VFORK_CLONE) == 0, flush=True)
while True:
    pid, status = os.waitpid(-1, ALL)
    if os.WIFSTOPPED(status):
        if not os.path.exists(f"/proc/{kernel}/task/{pid}"):
            print("another process", flush=True)
        is_event = status >> 16 or os.WSTOPSIG(status) == 5
        libc.ptrace(CONTINUE, pid, None, 0 if is_event else os.WSTOPSIG(status))
"""

ATTACHED = f"""
PR_SET_PTRACER, ANYBODY = 0x59616D61, ctypes.c_ulong(-1)
ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANYBODY, 0, 0, 0)
command = [sys.executable, "-c", {TRACER!r}, str(os.getpid())]
tracer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
is_attached = tracer.stdout.readline() == "True\\n"
"""


def test_no_copy_is_made_beside_a_debugger(notebook: Notebook) -> None:
    detached = "tracer.terminate(); results = [is_attached, tracer.communicate()[0]]"
    is_attached, seen = notebook.survives(PRELUDE, GROWN, ATTACHED, GROWN, detached).results
    if not is_attached:
        pytest.skip("no process may be traced here")
    assert seen == ""


ALLOCATORS = ["jemalloc", "tcmalloc", "tcmalloc_minimal", "mimalloc"]


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_holders_with_another_allocator(notebook: Notebook, allocator: str) -> None:
    library = ctypes.util.find_library(allocator)
    if library is None:
        pytest.skip("not installed")
    notebook.environment["LD_PRELOAD"] = library
    assert notebook.survives(PRELUDE, GROWN, HELD).results == ["leak"]


# As a system with `vm.overcommit_memory=2` that has promised all its memory.
ENOMEM = 0x0005000C

LAUNCHER = f"""
{RESTRICTED}
import os, sys
reader, writer = os.pipe()
kernel = os.fork()
if kernel:
    restrict({ENOMEM}, True)
    os.write(writer, b".")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(kernel, 0)[1]))
os.read(reader, 1)
restrict({ENOMEM}, True)
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a filter for x86-64")
def test_a_system_without_memory_for_copies(notebook: Notebook) -> None:
    notebook.launcher = [sys.executable, "-c", LAUNCHER]
    assert notebook.survives(PRELUDE, GROWN, HELD).results == ["leak"]
