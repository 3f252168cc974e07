"""Models of torch's that tests build on a card; imported once torch has been started there."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Block(nn.Module):  # type: ignore[misc]
    """Attention and two layers, as a transformer has them."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.n_heads = n_heads

    def forward(self, x: Any) -> Any:
        b, t, c = x.shape
        heads = self.qkv(self.norm(x)).view(b, t, 3, self.n_heads, c // self.n_heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        a = (q @ k.transpose(-2, -1)).softmax(-1) @ v
        x = x + self.out(a.transpose(1, 2).reshape(b, t, c))
        return x + self.down(torch.relu(self.up(x)))


class Transformer(nn.Module):  # type: ignore[misc]
    """Four blocks between an embedding and a head."""

    def __init__(self, width: int = 1024, n_blocks: int = 4, n_words: int = 50257) -> None:
        super().__init__()
        self.words = nn.Embedding(n_words, width)
        self.blocks = nn.ModuleList(Block(width, 8) for _ in range(n_blocks))
        self.head = nn.Linear(width, n_words)

    def forward(self, ids: Any) -> Any:
        return self.head(self.hidden(ids))

    def hidden(self, ids: Any, checkpoint: Any = None) -> Any:
        """Return the last block's result; with `checkpoint`, blocks are computed again backward."""
        x = self.words(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if checkpoint else block(x)
        return x


class LoRA(nn.Module):  # type: ignore[misc]
    """A layer that is frozen, with an adapter of low rank that is not."""

    def __init__(self, linear: Any, rank: int = 8) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)  # noqa: FBT003 (as torch has it)
        self.a = nn.Parameter(torch.empty(rank, linear.in_features, device="cuda"))
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank, device="cuda"))

    def forward(self, x: Any) -> Any:
        return self.linear(x) + (x @ self.a.T) @ self.b.T


def transformer() -> Transformer:
    """Return a transformer on the card."""
    with torch.device("cuda"):
        return Transformer()


def token_ids() -> Any:
    """Return the input of a transformer, once what libraries take at their first use is taken."""
    # Workspaces are no part of a model.
    warm = nn.Linear(64, 64).cuda()
    warm(torch.ones(2, 64, device="cuda")).sum().backward()
    return torch.zeros(2, 64, dtype=torch.long, device="cuda")
