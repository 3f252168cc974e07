"""How many processes are asked at once: each by whoever asks, or by others in turn."""

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
"""Those below have this part of the time: who asks them can still answer."""


class Answers(NamedTuple):
    """What came back."""

    replies: list[bytes]
    silent: list[str]
    """The addresses of those that did not answer in time."""


def branches(addresses: list[str]) -> list[list[str]]:
    """Split addresses: the first of each branch is asked, and asks the others."""
    if len(addresses) <= FLAT:
        return [[address] for address in addresses]
    return [addresses[start::FAN_OUT] for start in range(FAN_OUT)]


def twigs(addresses: list[str]) -> list[list[str]]:
    """Split the addresses below one that was asked: already a part of a tree."""
    return [part for start in range(FAN_OUT) if (part := addresses[start::FAN_OUT])]


async def ask(
    rpc: Callable[[str], Any], parts: list[list[str]], request: bytes, seconds: float
) -> Answers:
    """Ask all of them, and no longer than ``seconds``.

    If the first of a branch does not answer, those below it are asked without it.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds

    async def of_branch(branch: list[str]) -> Answers:
        first, below = branch[0], branch[1:]
        # With nobody below there is nobody to be asked afterwards.
        patience = seconds * BELOW if below else seconds
        try:
            message = {"request": request, "below": below, "seconds": patience * BELOW}
            asked = rpc(first).gpumem_roll(**message)
            return Answers(**await asyncio.wait_for(asked, patience))
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
