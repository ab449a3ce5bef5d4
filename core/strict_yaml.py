"""YAML as configurations and grids need it: no duplicate keys, and only text, numbers, lists and mappings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lcat_core.errors import LcatError, UserError
from lcat_core.files import read_bytes

#: Limits of a document; grids and configurations are far below them.
MAX_BYTES = 4 * 2**20
MAX_VALUE = 2**16
MAX_DEPTH = 50
MAX_NODES = 200_000

_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path, error_type: type[LcatError] = UserError) -> Any:
    """Read the document of a file that a person has written.

    Raises:
        error_type: The file cannot be read, is not valid YAML, has a duplicate key, is unreasonably large or deep, or contains
            what a setting cannot be.
    """
    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8")
    except OSError as error:
        raise error_type(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise error_type(f"{path} is not valid YAML: {_one_line(error)}") from error
    return _parse(text, str(path), error_type)


def read_generated_yaml(path: Path) -> Any:
    """Read a file that a run has written, with the fast parser where there is one: an analysis reads thousands.

    Raises:
        ValueError: The file is not valid YAML.
        OSError: It cannot be read.
    """
    text = read_bytes(path, MAX_BYTES)
    # The fast parser has no limits of its own; what a run writes has no aliases, and little depth.
    loader = _StrictLoader if b"*" in text or b"[[[[" in text or b"{{{{" in text else _FastLoader
    try:
        return yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"not valid YAML: {_one_line(error)}") from error


def parse_scalar(text: str, error_type: type[LcatError] = UserError) -> Any:
    """Parse a value from a command line, such as ``0.01``, ``null`` or ``[1, 2]``."""
    if len(text) > MAX_VALUE:
        raise error_type(f"a value on the command line has {len(text)} characters, but at most {MAX_VALUE} are allowed")
    subject = f"the value {shortened(text)} on the command line"
    value = _parse(text, "the command line", error_type, subject)
    if isinstance(value, str) and len(text.splitlines()) > 1:
        raise error_type(f'{subject} has a line break, which YAML reads as a space; write it as "…\\n…" if it is meant')
    return value


def _parse(text: str, where: str, error_type: type[LcatError], subject: str | None = None) -> Any:
    try:
        document = yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise error_type(f"{subject or where} is not valid YAML: {_one_line(error)}") from error
    check_plain(document, where, error_type)
    return document


class _StrictLoader(yaml.SafeLoader):
    """Refuses what YAML forbids but PyYAML accepts (duplicate keys), and documents that explode when they are read."""

    def __init__(self, stream: Any):
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise yaml.composer.ComposerError(
                None, None, f"nested more than {MAX_DEPTH} levels deep", self.peek_event().start_mark
            )
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.composer.ComposerError(
                    None, None, f"the key {shortened(key.value)} appears twice", key.start_mark
                )
            seen.add(key.value)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except (
            ValueError,
            LookupError,
            AttributeError,
            OverflowError,
        ) as error:  # a date or number that does not exist
            raise yaml.constructor.ConstructorError(
                None, None, f"invalid value {shortened(node.value, 80)} ({error})", node.start_mark
            ) from error

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and _expanded_size(node, {}) > MAX_NODES:
            raise yaml.composer.ComposerError(
                None, None, f"aliases expand it to more than {MAX_NODES} values", node.start_mark
            )
        return node


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the values of a document with its aliases written out; a value that contains itself counts as too many."""
    identity = id(node)
    if identity not in known:
        known[identity] = MAX_NODES + 1  # while it is being counted: only met again if it contains itself
        if isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        else:
            children = node.value if isinstance(node, yaml.SequenceNode) else []
        known[identity] = min(1 + sum(_expanded_size(child, known) for child in children), MAX_NODES + 1)
    return known[identity]


def shortened(value: object, limit: int = 200) -> str:
    """Return the representation of a value for a message, cut if it is long."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def check_plain(value: Any, where: str, error_type: type[LcatError] = UserError) -> None:
    """Refuse what YAML can express but a setting cannot be: dates, bytes, sets, infinities, huge numbers."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not _is_ordinary(str(key)):
                raise error_type(f"expected text as a key in {where}, got {shortened(key)}")
            check_plain(item, f"{where}, {shortened(str(key), 80)[1:-1]}", error_type)
    elif isinstance(value, list):
        for item in value:
            check_plain(item, where, error_type)
    elif not isinstance(value, (str, int, float, type(None))) or not _is_ordinary(value):
        raise error_type(f"expected text, a number, true, false or null in {where}, got {shortened(value)}")


def _is_ordinary(value: str | float | None) -> bool:
    """Whether a number is finite and could be stored as a float, and text can be written to a file."""
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, int):
        return abs(value) < 2**1023
    return not isinstance(value, float) or math.isfinite(value)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    mark = getattr(error, "problem_mark", None)
    if isinstance(error, yaml.scanner.ScannerError | yaml.parser.ParserError) and isinstance(mark, yaml.Mark):
        snippet = (mark.get_snippet(indent=0, max_length=60) or "").partition("\n")[0].strip()
        opened = error.context_mark
        begun = f" ({error.context}, begun in line {opened.line + 1})" if opened is not None and error.context else ""
        text = f"line {mark.line + 1}, {snippet!r}: {error.problem}{begun}" if snippet else text
    return text if len(text) <= 300 else f"{text[:300]}…"
