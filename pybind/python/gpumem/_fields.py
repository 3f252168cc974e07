"""Entries of JSON as dataclasses."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

Read = TypeVar("Read")

_types: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def read(cls: type[Read], entry: dict[str, Any]) -> Read:
    """Return ``entry`` as a ``cls``: JSON may contain more than Python shows."""
    types = _types(cls)
    return cls(**{name: _value(types[name], it) for name, it in entry.items() if name in types})


def _value(declared: Any, value: Any) -> Any:  # noqa: ANN401 (any field of any class)
    if isinstance(value, list):
        item = get_args(declared)[0]
        return tuple(_value(item, it) for it in value)
    kinds = get_args(declared) or (declared,)
    if isinstance(value, dict):
        cls: Any = next(filter(is_dataclass, kinds))
        return read(cls, value)
    # A number that does not fit JSON is a string there.
    number = next((it for it in kinds if it in {int, float}), None)
    return value if number is None or value is None else number(value)
