"""Functions as blocks: each call is a run, nested in the run that calls it.

A generator is inside its block only while it runs: between two items its
caller continues in the same context.
"""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator
    from contextlib import AbstractContextManager

    NewBlock = Callable[[], AbstractContextManager[object]]

BLOCK: ContextVar[int | None] = ContextVar("gpumem_block", default=None)
"""The innermost block or cell of this thread or task."""


def decorated(function: Any, name: str | None) -> Any:
    """Return ``function`` with each call recorded as a block."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorated(function.__func__, name))
    if inspect.isclass(function):
        message = f"record takes a function, not the class {function.__qualname__}"
        raise TypeError(message)
    if name is None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
    code = getattr(inspect.unwrap(function), "__code__", None)
    block = functools.partial(_gpumem._block_of, name, getattr(code, "co_filename", ""))
    if inspect.isasyncgenfunction(function):
        wrapper: Callable[..., Any] = _async_generator(function, block)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, block)
    elif inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, block)
    else:
        wrapper = _function(function, block)
    return functools.wraps(function)(wrapper)


def _function(function: Callable[..., Any], block: NewBlock) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with block():
            return function(*args, **kwargs)

    return wrapper


def _coroutine(function: Callable[..., Any], block: NewBlock) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with block():
            return await function(*args, **kwargs)

    return wrapper


def _generator(function: Callable[..., Any], block: NewBlock) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        outer = BLOCK.get()
        with block():
            inner = BLOCK.get()
            BLOCK.set(outer)
            return (yield from _Resumed(function(*args, **kwargs), inner))

    return wrapper


class _Resumed:
    """A generator that is inside a block while it runs."""

    def __init__(self, generator: Generator[Any, Any, Any], block: int | None) -> None:
        self._generator = generator
        self._block = block

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._inside(self._generator.__next__)

    def send(self, value: Any) -> Any:
        return self._inside(self._generator.send, value)

    def throw(self, *error: Any) -> Any:
        return self._inside(self._generator.throw, *error)

    def close(self) -> None:
        self._inside(self._generator.close)

    def _inside(self, step: Callable[..., Any], *args: Any) -> Any:
        outer = BLOCK.get()
        BLOCK.set(self._block)
        try:
            return step(*args)
        finally:
            BLOCK.set(outer)


def _async_generator(function: Callable[..., Any], block: NewBlock) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        outer = BLOCK.get()
        with block():
            inner = BLOCK.get()
            step = generator.__anext__()
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                finally:
                    BLOCK.set(outer)
                try:
                    sent = yield item
                except GeneratorExit:
                    await generator.aclose()
                    raise
                except BaseException as error:
                    step = generator.athrow(error)
                else:
                    step = generator.asend(sent)
                outer = BLOCK.get()
                BLOCK.set(inner)

    return wrapper
