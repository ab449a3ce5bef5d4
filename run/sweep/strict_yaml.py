"""YAML as settings need it: no key twice, nothing but text, numbers, lists and mappings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lcat_run.errors import UserError


def read_yaml(path: Path) -> Any:
    """The document of a file, or one clear message about why it cannot be read."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error


class _Loader(yaml.SafeLoader):
    """Refuses what YAML forbids but PyYAML lets pass: a key that comes twice, of which the first would be forgotten."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.composer.ComposerError(None, None, f"{key.value!r} comes twice", key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
        return node


def check_plain(value: Any, where: str) -> None:
    """Refuses what YAML can say but a setting cannot be: dates, bytes, sets, infinities, a list that contains itself."""
    try:
        if isinstance(value, Mapping):
            for key, item in value.items():
                check_plain(item, f"{where}, {key}")
        elif isinstance(value, list):
            for item in value:
                check_plain(item, where)
        elif not isinstance(value, (str, int, float, type(None))) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            raise UserError(f"expected text, a number, true, false or null in {where}, got {value!r}")
    except RecursionError as error:
        raise UserError(f"{where.partition(',')[0]} contains itself") from error
