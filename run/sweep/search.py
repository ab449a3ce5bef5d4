"""Random search: ``trials`` points of the distributions in ``search``, drawn by counter.

The value of a key in a trial depends on the seed, the number of the trial and the key alone. A sweep that was killed therefore
proposes the same points again, more ``trials`` only add points, and every model gets the same ones.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lcat_core.errors import UserError, unknown_name
from lcat_core.settings import Settings, flatten
from lcat_run.sweep.grid_fields import as_mapping
from lcat_run.sweep.grid_types import Axis

#: The name of the axis that holds the drawn points.
TRIAL = "trial"
_MAX_TRIALS = 100_000
_MAX_ATTEMPTS = 1000
_DIGITS = 6


@dataclass(frozen=True)
class Distribution:
    """How a value is drawn.

    Attributes:
        expects: What must follow its name, for messages.
        accepts: Whether that is so.
        draw: The value at a position in [0, 1).
    """

    expects: str
    accepts: Callable[[Any], bool]
    draw: Callable[[Any, float], Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_interval(bounds: Any) -> bool:
    return isinstance(bounds, list) and len(bounds) == 2 and all(map(_is_number, bounds)) and bounds[0] < bounds[1]


def _is_integer_interval(bounds: Any) -> bool:
    return _is_interval(bounds) and all(isinstance(bound, int) for bound in bounds)


def _uniform(bounds: Any, position: float) -> float:
    return _rounded(bounds[0] + (bounds[1] - bounds[0]) * position)


def _log_uniform(bounds: Any, position: float) -> float:
    return _rounded(bounds[0] * (bounds[1] / bounds[0]) ** position)


def _integers(bounds: Any, position: float) -> int:
    return int(bounds[0]) + int((bounds[1] - bounds[0] + 1) * position)


def _log_integers(bounds: Any, position: float) -> int:
    return min(int(bounds[1]), int(bounds[0] * ((bounds[1] + 1) / bounds[0]) ** position))


def _rounded(value: float) -> float:
    """Round to a number that people can read and YAML writes exactly."""
    return float(f"{value:.{_DIGITS}g}")


DISTRIBUTIONS = {
    "uniform": Distribution("[low, high]", _is_interval, _uniform),
    "log_uniform": Distribution(
        "[low, high] with 0 < low", lambda bounds: _is_interval(bounds) and bounds[0] > 0, _log_uniform
    ),
    "integers": Distribution("[low, high], whole numbers, both included", _is_integer_interval, _integers),
    "log_integers": Distribution(
        "[low, high], whole numbers with 0 < low, both included",
        lambda bounds: _is_integer_interval(bounds) and bounds[0] > 0,
        _log_integers,
    ),
    "choice": Distribution(
        "a list of at least two values",
        lambda values: isinstance(values, list) and len(values) > 1,
        lambda values, position: values[int(len(values) * position)],
    ),
}


def parse_search(document: Mapping[str, Any], source: str) -> Axis | None:
    """Return the drawn points as an axis of linked keys; None if the grid searches nothing.

    Raises:
        UserError: ``trials``, ``search`` or ``search_seed`` is invalid, or there are fewer different points than trials.
    """
    if "trials" not in document and "search" not in document:
        return None
    trials, seed = document.get("trials"), document.get("search_seed", 0)
    if not isinstance(trials, int) or isinstance(trials, bool) or not 0 < trials <= _MAX_TRIALS:
        raise UserError(f"`trials` in {source} must be a whole number from 1 to {_MAX_TRIALS}, got {trials!r}")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise UserError(f"`search_seed` in {source} must be a whole number, got {seed!r}")
    space = _parse_space(document.get("search"), source)
    return Axis(TRIAL, tuple(_draw_points(space, trials, seed, source)))


def _parse_space(entry: Any, source: str) -> dict[str, tuple[str, Any]]:
    """Return name and arguments of the distribution of every key."""
    example = "`search: {optim.base_lr: {log_uniform: [1e-4, 1e-1]}}`"
    if not entry:
        raise UserError(f"`trials` in {source} needs distributions to draw from, such as {example}")
    space: dict[str, tuple[str, Any]] = {}
    for flat, arguments in flatten(as_mapping(entry, "`search`", source), source).items():
        key, _, name = flat.rpartition(".")
        if name not in DISTRIBUTIONS:
            raise UserError(
                f"`search` in {source}: {unknown_name('distribution', name, DISTRIBUTIONS)}; for example {example}"
            )
        arguments = [float(item) if _is_text_number(item) else item for item in _listed(arguments)]
        if not DISTRIBUTIONS[name].accepts(arguments):
            raise UserError(
                f"`search.{flat}` in {source} must be {DISTRIBUTIONS[name].expects}, got {arguments!r:.200}"
            )
        if key in space:
            raise UserError(f"`search` in {source} has {key!r} twice")
        if key == "seed":
            raise UserError(f"`search` in {source} has `seed`, but `seeds` gives every run its seed")
        space[key] = (name, arguments)
    return space


def _listed(arguments: Any) -> list[Any]:
    return list(arguments) if isinstance(arguments, list) else [arguments]


def _is_text_number(item: Any) -> bool:
    """Whether YAML read a number such as 1e-4, without a point, as text."""
    if not isinstance(item, str) or not item[:1].isdigit():
        return False
    try:
        return math.isfinite(float(item))
    except ValueError:
        return False


def _draw_points(space: Mapping[str, tuple[str, Any]], trials: int, seed: int, source: str) -> Sequence[Settings]:
    points: list[Settings] = []
    known: set[str] = set()
    for trial in range(trials):
        for attempt in range(_MAX_ATTEMPTS):
            point = {
                key: DISTRIBUTIONS[name].draw(arguments, _position(seed, trial, attempt, key))
                for key, (name, arguments) in space.items()
            }
            if repr(point) not in known:
                break
        else:
            raise UserError(
                f"`search` in {source} has only {len(points)} different points or a few more: lower `trials`"
            )
        known.add(repr(point))
        points.append(point)
    return points


def _position(seed: int, trial: int, attempt: int, key: str) -> float:
    """Return a number in [0, 1) that depends on these four alone."""
    digest = hashlib.sha256(f"{seed}/{trial}/{attempt}/{key}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53
