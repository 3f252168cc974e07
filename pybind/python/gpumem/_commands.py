"""The commands that ``%gpumem?`` lists: the README's table."""

from __future__ import annotations

import textwrap

COMMANDS = (
    ("%%gpumem", "record this cell; %%gpumem? lists its options"),
    (
        "%gpumem on, %gpumem off",
        "record every cell; a line appears only if memory moved or a finding is new",
    ),
    ("%gpumem", "see what each device's memory is used for now"),
    (
        "%gpumem why, %gpumem why NAME",
        "see which names hold the memory, and by which path",
    ),
    (
        "%gpumem who",
        "see which processes and notebooks use the GPU, and which kernels are orphaned",
    ),
    ("%gpumem status", "see which sources are read, and why the others are not"),
    (
        "%gpumem_report, %gpumem_report last",
        (
            "open the report, or that of the last session, if the kernel died; "
            "--html FILE writes a file to share, --text prints text"
        ),
    ),
    (
        "%gpumem baseline NAME, then %gpumem_report --compare NAME",
        "check whether a fix works",
    ),
    (
        "%gpumem release all --dry-run",
        (
            "preview what would be freed from the last error, old outputs, cycles and caches; "
            "omit --dry-run to free it"
        ),
    ),
    (
        "%gpumem expect NAME",
        "say that the growth of a name or path is meant: no leak is reported; --off undoes it",
    ),
    ("for batch in gpumem.steps(loader):", "judge growth inside a long cell, step by step"),
)
"""Commands and their purpose."""

WIDTH = 80


def commands_text() -> str:
    """Return the table as text, at most 80 columns wide: each command above its purpose."""
    rows = (f"  {typed}\n{_indented(purpose)}" for typed, purpose in COMMANDS)
    return "\n".join(rows)


def _indented(purpose: str) -> str:
    indent = " " * 6
    return textwrap.fill(purpose, WIDTH, initial_indent=indent, subsequent_indent=indent)
