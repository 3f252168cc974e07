"""Exit codes, and the errors that end a command."""

from __future__ import annotations

from gpumem.cli import terminal

OK = 0
FOUND = 1
"""``check``: a finding, a peak above the limit, or growth that is worse than the baseline."""
WRONG = 2
"""Wrong options, or something is missing: a file, a session, a kernel, a package."""
CELL_FAILED = 3
"""A cell raised an error or took too long."""
KERNEL_DIED = 4
INTERRUPTED = 130

EXPLAINED = """exit codes:
  0    done; for check: nothing found
  1    check: a finding, a peak above the limit, or worse than the baseline
  2    wrong options, or something is missing: a file, a session, a kernel, a package
  3    a cell of the notebook raised an error or took too long
  4    the kernel died
  130  interrupted by Ctrl-C
`run SCRIPT` and `run -m MODULE` exit as the script does."""


class CommandError(Exception):
    """Ends a command with code 2: the text is one line, with a hint on a second one."""


def error_text(error: Exception) -> str:
    """Return an error's text for a terminal; control characters of names and paths are escaped."""
    said, is_hinted, hint = str(error).partition("\nhint: ")
    hint = f"\nhint: {terminal.plain(hint)}" if is_hinted else ""
    return f"{terminal.plain(said)}{hint}"
