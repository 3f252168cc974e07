"""A recorded cell runs as the ordinary cell that it is."""

from __future__ import annotations

import os
import re
import textwrap
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.python.conftest import Outcome

pytestmark = pytest.mark.ipython

CELLS = {
    "assignment": "x = 1",
    "last expression": "x = 20\nx + 1",
    "trailing semicolon": "x = 20\nx + 1;",
    "nothing": "None",
    "print": "print('one')\nprint('two')",
    "to stderr": "import sys\nprint('err', file=sys.stderr)",
    "display": "display(1)\ndisplay({'a': 2})\n3",
    "html": "from IPython.display import HTML\nHTML('<b>x</b>')",
    "multi-line string": 's = """\n%%time\n  indented\n\n%magic\n!ls\n"""\ns',
    "unicode": "größe = '日本語 ✓'\nprint(größe)\ngröße",
    "tabs": "if True:\n\tx = 1\n\tx",
    "indented body": "    x = 1\n    x",
    "pasted prompts": ">>> x = 4\n>>> x\n",
    "comments only": "# nothing\n# here",
    "blank lines around": "\n\nx = 5\n\nx\n\n",
    "function": "def f(a, *, b=2):\n    return a + b\n\nf(1)",
    "class and decorator": """
        import functools
        @functools.lru_cache
        def f(n):
            return n
        class A:
            '''doc'''
            @property
            def v(self):
                return f(3)
        A().v
    """,
    "generator": "g = (i * i for i in range(5))\nlist(g)",
    "walrus and comprehension": "[y := 1, y + 1]",
    "await": "import asyncio\nawait asyncio.sleep(0)\n'awaited'",
    "async for": """
        async def numbers():
            for i in range(3):
                yield i
        [i async for i in numbers()]
    """,
    "error": "x = 1\n1 / 0",
    "error in a function": "def f():\n    x = 1\n\n    raise ValueError('no', x)\n\nf()",
    "nested exceptions": """
        try:
            {}['missing']
        except KeyError as error:
            raise RuntimeError('outer', 7) from error
    """,
    "error in an error": """
        try:
            1 / 0
        except ZeroDivisionError:
            undefined_name
    """,
    "error after await": "import asyncio\nawait asyncio.sleep(0)\nraise OSError(5, 'io')",
    "exception group": "raise ValueError('one', ['two'])",
    "custom exception": "class Mine(Exception): pass\nraise Mine('a', 1)",
    "syntax error": "x = 1\ny = = 2",
    "indentation error": "x = 1\n  y = 2",
    "unterminated string": "s = 'abc",
    "interrupted": "x = 1\nraise KeyboardInterrupt",
    "system exit": "raise SystemExit(3)",
    "assertion": "assert 1 == 2, 'never'",
    "%time": "%time x = sum(range(10))\nx",
    "%%time": "%%time\nx = 3\nx + 1",
    "%%time with an error": "%%time\nx = 1\n1 / 0",
    "%%capture": "%%capture out\nprint('hidden')\n1 + 1",
    "%%capture with an error": "%%capture out\nprint('hidden')\n1 / 0",
    "cell magic of text": "%%writefile {nowhere}\nline 1\n    line 2",
    "cell magic after blanks": "\n\n%%time\nx = 3",
    "%%timeit": "%%timeit -n1 -r1 -q\nx = 1",
    "%%bash": "%%bash\necho from bash",
    "unknown cell magic": "%%nosuchmagic\nx = 1",
    "unknown line magic": "%nosuchmagic\nx = 1",
    "shell command": "!true\n_exit_code",
    "shell to a variable": "names = !echo one two\nnames",
    "help": "x = 1\nx?",
    "%run": "%run {tmp}/script.py\nfrom_script",
    "%run with an error": "%run {tmp}/failing.py",
    "inner run_cell": "r = get_ipython().run_cell('z = 6; z')\nr.result",
    "inner run_cell with an error": "r = get_ipython().run_cell('1 / 0')\nr.success",
    "inner run_cell with history": "get_ipython().run_cell('7', store_history=True)\n8",
    "underscore": "_",
    "input list": "len(In), len(_ih), _i",
    "deletes a name": "x = 1\ndel x",
    "global and exec": "exec('q = 9')\nq",
    "backslash": "x = 1 + \\\n    2\nx",
    "ends in a backslash": "x = 1\\",
    "carriage returns": "x = 1\r\nx\r\n",
}


@pytest.fixture(params=CELLS)
def body(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    (tmp_path / "script.py").write_text("from_script = 11\n")
    (tmp_path / "failing.py").write_text("x = 1\nx / 0\n")
    text = CELLS[request.param]
    if text.startswith("\n     "):
        text = textwrap.dedent(text)
    return text.replace("{tmp}", str(tmp_path)).replace("{nowhere}", os.devnull)


def around(new_shell: Any, cell: str, *, loaded: bool, before: str = "pass") -> list[Outcome]:
    """Run a cell with something ahead of it and behind it, for `_`, `Out` and `In`."""
    shell = new_shell(loaded=loaded)
    return [shell.run(each) for each in (before, "'before'", cell, "'after'", "_, __")]


def below_a_comment(body: str) -> str:
    """Add a first line that does nothing, for line numbers count the one of the magic."""
    indent = body[: len(body) - len(body.lstrip(" "))]
    return body if body.lstrip().startswith("%%") else f"{indent}#\n{body}"


def without_the_first_line(outcome: Outcome) -> Outcome:
    """Without the comment, and the blank in its place, which IPython 7 shows in a traceback."""
    outcome.stdout = re.sub("^      1 #?\n", "", outcome.stdout, flags=re.MULTILINE)
    outcome.typed = [re.sub("^#\n", "\n", text) for text in outcome.typed]
    return outcome


def test_a_cell_is_the_same_with_every_cell_recorded(new_shell: Any, body: str) -> None:
    plain = around(new_shell, body, loaded=False)
    recorded = around(new_shell, body, loaded=True, before="%gpumem on")
    for outcome in (*plain, *recorded):
        outcome.typed[1] = ""
    assert recorded == plain
    assert len({row["run"] for row in gpumem.report().runs}) == 4


def test_a_cell_is_the_same_below_the_magic(new_shell: Any, body: str) -> None:
    plain = around(new_shell, below_a_comment(body), loaded=False)
    recorded = around(new_shell, f"%%gpumem\n{body}", loaded=True)
    both = [[without_the_first_line(outcome) for outcome in each] for each in (recorded, plain)]
    assert both[0] == both[1]
    assert len({row["run"] for row in gpumem.report().runs}) == 1
