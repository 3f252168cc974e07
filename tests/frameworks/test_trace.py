"""The functions of torch that `--trace` calls exist and take its arguments."""

from __future__ import annotations

import inspect
import sys

import pytest

torch = pytest.importorskip("torch")


def test_torch_takes_the_options_that_a_trace_sets() -> None:
    record = inspect.signature(torch.cuda.memory._record_memory_history)
    bound = record.bind("all", context="alloc", stacks="python", max_entries=100_000)
    assert bound.arguments["enabled"] == "all"
    assert record.bind(None).arguments == {"enabled": None}
    assert inspect.signature(torch.cuda.memory._snapshot).bind().arguments == {}


def test_torch_says_whether_a_history_is_recorded() -> None:
    assert callable(torch._C._cuda_isHistoryEnabled)


def test_the_base_of_all_modules_is_where_it_is_looked_up() -> None:
    assert sys.modules["torch.nn.modules.module"].Module is torch.nn.Module
    code = torch.nn.Linear.forward.__code__
    assert code.co_filename.endswith("torch/nn/modules/linear.py")
    assert code.co_name == "forward"
