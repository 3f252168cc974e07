"""Querying many workers: directly, or through a tree of workers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

FLAT = 128
"""The most workers that are queried directly."""
FAN_OUT = 16
"""The number of branches if there are more: each worker queries those below it."""
BELOW = 0.8
"""The share of the time for workers below, so that the one above them can still answer."""


class Answers(NamedTuple):
    """The replies of workers."""

    replies: list[bytes]
    silent: list[str]
    """The addresses of workers that did not answer in time."""


def branches(addresses: list[str]) -> list[list[str]]:
    """Split addresses into branches, each queried through its first worker."""
    if len(addresses) <= FLAT:
        return [[address] for address in addresses]
    return [addresses[start::FAN_OUT] for start in range(FAN_OUT)]


def twigs(addresses: list[str]) -> list[list[str]]:
    """Split the addresses below a worker that is already part of a tree."""
    return [part for start in range(FAN_OUT) if (part := addresses[start::FAN_OUT])]


async def ask(
    rpc: Callable[[str], Any], parts: list[list[str]], request: bytes, seconds: float
) -> Answers:
    """Query all workers within ``seconds``.

    If the first worker of a branch does not answer, those below it are queried without it.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds

    async def of_branch(branch: list[str]) -> Answers:
        first, below = branch[0], branch[1:]
        # Without workers below there is no second attempt to leave time for.
        patience = seconds * BELOW if below else seconds
        try:
            message = {"request": request, "below": below, "seconds": patience * BELOW}
            reply = rpc(first).gpumem_roll(**message)
            return Answers(**await asyncio.wait_for(reply, patience))
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            left = until - loop.time()
            if not below or left <= 0:
                return Answers([], branch)
            others = await ask(rpc, twigs(below), request, left)
            return Answers(others.replies, [first, *others.silent])

    answers = await asyncio.gather(*map(of_branch, parts))
    return Answers(
        [reply for answer in answers for reply in answer.replies],
        [address for answer in answers for address in answer.silent],
    )


def _is_cancelled() -> bool:
    """Whether this task is to end, and not only a call of it."""
    task = asyncio.current_task()
    cancelling = getattr(task, "cancelling", None)
    return cancelling is None or cancelling() > 0
