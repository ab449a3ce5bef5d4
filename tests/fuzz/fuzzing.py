"""Fuzzing: seeded cases, each limited in time and memory, and mutations of bytes and of documents."""

from __future__ import annotations

import copy
import random
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS_PER_CASE = 5.0  # of computing: a busy machine may take longer
SECONDS_OF_WAITING = 60.0
MAX_MEMORY = 2**30

#: Values that programs tend not to expect.
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, -(10**20), 0.0, -0.0, 1e308, float("inf"), float("nan"), 1e-320,
    "", " ", "x", "λ", "\x00", "\n", "null", "1e-3", "-1", "../..", "/etc/passwd", "a" * 10_000, "%s%n", "\ud800", "☃" * 300,
    [], [[]], [None], [1, "a", {}], {}, {"": None}, {"a": {"b": {"c": []}}}, {1: 2}, {None: 3},
]  # fmt: skip
ODD_TOKENS = [
    b"\x00", b"\xff\xfe", b"[" * 200, b"{" * 60, b"*a", b"&a ", b"<<: ", b"!!python/name:os.system", b"!!int ", b"- ", b": ",
    b"NaN", b"Infinity", b"1" * 500, b"2001-99-99", b"\n\n---\n", b"\t", b"'", b'"', b"|", b">", b"%", b"@", b"`", b"#", b"\r",
]  # fmt: skip


class Hang(BaseException):
    """A case took too long; nothing under test may catch it."""


class Fuzzer:
    """Makes numbered cases; case ``n`` is the same in every run, so a failure is repeated with ``--fuzz-from n``."""

    def __init__(self, folder: Path, first: int, seconds: float | None):
        self.folder = folder
        self._first = first
        self._seconds = seconds

    def run(self, subject: str, count: int, attempt: Callable[[random.Random], object]) -> int:
        """Call ``attempt`` with a seeded generator ``count`` times, or in a campaign until its time is over."""
        before = _peak_memory()
        start = time.monotonic()
        made = 0
        failures: dict[str, str] = {}
        for number in self._numbers(count, start):
            try:
                with _limited_time():
                    attempt(random.Random(f"{subject} {number}"))
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                failures.setdefault(_place(error), f"--fuzz-from {number}: {type(error).__name__}: {error!s:.300}")
            made += 1
        grown = _peak_memory() - before
        print(f"{subject}: {made} cases in {time.monotonic() - start:.0f} s, {grown / 2**20:.0f} MiB")
        assert made > 0
        assert not failures, "\n".join(f"{place} ({text})" for place, text in failures.items())
        assert grown < MAX_MEMORY, f"{subject} needed {grown / 2**20:.0f} MiB"
        return made

    def _numbers(self, count: int, start: float) -> Iterator[int]:
        number = self._first
        while number < self._first + count if self._seconds is None else time.monotonic() - start < self._seconds:
            yield number
            number += 1


@contextmanager
def _limited_time() -> Iterator[None]:
    """Stop a case that computes for too long, or waits for ever."""

    def stop(*_: object) -> None:
        raise Hang("it hangs")

    limits = {
        signal.SIGPROF: (signal.ITIMER_PROF, SECONDS_PER_CASE),
        signal.SIGALRM: (signal.ITIMER_REAL, SECONDS_OF_WAITING),
    }
    before = {number: signal.signal(number, stop) for number in limits}
    for timer, seconds in limits.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, _ in limits.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _place(error: BaseException) -> str:
    """Where an error was raised, so that equal failures are listed once."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [
        f"{Path(name).name}:{line}"
        for name, line in frames
        if "site-packages" not in name and "/lib/python" not in name
    ]
    return f"{type(error).__name__} at {' > '.join(ours[-4:])}"


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def damage(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, repeat, insert or overwrite some bytes; the result differs from ``data``."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        place = rng.randrange(len(result) + 1)
        end = min(len(result), place + rng.choice((1, 1, 4, 30, 500)))
        match rng.randrange(6):
            case 0 if place < len(result):
                result[place] ^= 1 << rng.randrange(8)
            case 1:
                del result[place:end]
            case 2:
                result[place:place] = result[place:end]
            case 3:
                result[place:place] = rng.choice(ODD_TOKENS)
            case 4:
                result[place:end] = rng.randbytes(end - place)
            case _:
                del result[place:]
    return bytes(result) if result != data else data + b"\x00"


def mutate(tree: Any, rng: random.Random, values: list[Any] | None = None) -> Any:
    """Return a document with some of its values replaced, removed, moved or renamed."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(_places(tree))
        if not places:
            return rng.choice(ODD_VALUES)
        container, key = rng.choice(places)
        match rng.randrange(6):
            case 0 | 1:
                container[key] = copy.deepcopy(rng.choice(values or ODD_VALUES))
            case 2:
                del container[key]
            case 3:
                other, source = rng.choice(places)
                container[key] = copy.deepcopy(other[source])
            case 4 if isinstance(container, dict):
                container[rng.choice(("", "x", f"{key} ", str(key).upper(), f"{key}.a", "seed"))] = container.pop(key)
            case _:
                container[key] = rng.choice(
                    ([container[key]], {"a": container[key]}, str(container[key]), [container[key]] * 3)
                )
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(items):
        yield tree, key
        yield from _places(value)
