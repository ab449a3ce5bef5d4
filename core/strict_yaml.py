"""YAML as configurations and grids need it: no duplicate keys, and only text, numbers, lists and mappings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lcat_core.errors import LcatError, UserError

_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path, error_type: type[LcatError] = UserError) -> Any:
    """Read the document of a file that a person has written.

    Raises:
        error_type: The file cannot be read, is not valid YAML, has a duplicate key, or contains what a setting cannot be.
    """
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except OSError as error:
        raise error_type(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise error_type(f"{path} is not valid YAML: {_one_line(error)}") from error
    check_plain(document, str(path), error_type)
    return document


def read_generated_yaml(path: Path) -> Any:
    """Read a file that a run has written, with the fast parser where there is one: an analysis reads thousands.

    Raises:
        ValueError: The file is not valid YAML.
    """
    try:
        return yaml.load(path.read_bytes(), Loader=_FastLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not valid YAML: {_one_line(error)}") from error


def parse_scalar(text: str, error_type: type[LcatError] = UserError) -> Any:
    """Parse a value from a command line, such as ``0.01``, ``null`` or ``[1, 2]``."""
    try:
        value = yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise error_type(f"the value {text!r} on the command line is not valid YAML: {_one_line(error)}") from error
    check_plain(value, "the command line", error_type)
    return value


class _StrictLoader(yaml.SafeLoader):
    """Refuses duplicate keys, which YAML forbids but PyYAML accepts, silently ignoring the first one."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.composer.ComposerError(None, None, f"the key {key.value!r} appears twice", key.start_mark)
            seen.add(key.value)
        return node


def check_plain(value: Any, where: str, error_type: type[LcatError] = UserError) -> None:
    """Refuse what YAML can express but a setting cannot be: dates, bytes, sets, infinities, a list that contains itself."""
    try:
        if isinstance(value, Mapping):
            for key, item in value.items():
                check_plain(item, f"{where}, {key}", error_type)
        elif isinstance(value, list):
            for item in value:
                check_plain(item, where, error_type)
        elif not isinstance(value, (str, int, float, type(None))) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            raise error_type(f"expected text, a number, true, false or null in {where}, got {value!r}")
    except RecursionError as error:
        raise error_type(f"{where.partition(',')[0]} contains itself") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
