"""The played libraries themselves: real torch on them, before anything is built upon it."""

from __future__ import annotations

import pytest
import torch


def test_torch_sees_the_cards() -> None:
    assert torch.cuda.is_available()
