"""Registries that survive the reload of a module."""

from __future__ import annotations

from typing import Any


def is_same_definition(first: Any, second: Any) -> bool:
    """Whether two functions or classes come from the same place in the code; a reload makes new objects of them."""
    return (first.__module__, first.__qualname__) == (second.__module__, second.__qualname__)
