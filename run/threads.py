"""How many threads and worker processes to use, and how threads wait for each other."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

#: Below so many edges per thread, threads wait for each other longer than they work.
_EDGES_PER_THREAD = 50_000
#: How long a thread of libgomp spins before it sleeps. Its default, a hundred times as long, is no faster on an idle machine; on a
#: busy one it burns the time that the other threads need.
_SPIN_COUNT = "3000"


def available_cores() -> int:
    """Return how many cores this process may use, which on a shared machine are fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_for(edges: int) -> int:
    """Return how many threads pay on a graph with so many edges."""
    return max(1, min(available_cores(), edges // _EDGES_PER_THREAD))


def let_threads_sleep(environment: MutableMapping[str, str]) -> None:
    """Keep waiting threads from spinning, unless the user has decided; to be called before torch is imported."""
    if "OMP_WAIT_POLICY" not in environment:
        environment.setdefault("GOMP_SPINCOUNT", _SPIN_COUNT)


def workers_and_threads(jobs: int | None, threads: int | None, cores: int, gpus: int = 0) -> tuple[int, int]:
    """Return how many workers, with how many threads each; together at most ``cores`` unless both are given.

    With GPUs there is one worker per GPU, because two on one would compete for its memory.
    """
    if jobs is None and not gpus:
        threads = threads or 1
        return max(1, cores // threads), threads
    jobs = jobs or gpus
    return jobs, threads or max(1, cores // jobs)
