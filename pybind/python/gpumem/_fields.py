"""Entries of JSON as fields of a dataclass."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def known(cls: type[Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of ``cls``, lists as tuples: JSON may contain more than Python shows."""
    names = {field.name for field in fields(cls)}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in entry.items()
        if name in names
    }
