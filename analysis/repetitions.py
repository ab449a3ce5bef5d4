"""The repetitions of one experiment: splits, seeds, and the values of a metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Repetitions:
    """The runs of one model under one condition, sorted by split and seed."""

    split_seed: np.ndarray
    seed: np.ndarray
    values: np.ndarray
    diverged: np.ndarray

    @classmethod
    def empty(cls) -> Repetitions:
        return cls(*(np.array([]) for _ in range(4)))

    def series(self) -> pd.Series:
        """Return the values, indexed by (split_seed, seed)."""
        index = pd.MultiIndex.from_arrays([self.split_seed, self.seed], names=["split_seed", "seed"])
        return pd.Series(self.values, index, name="value")

    def can_be_paired(self, other: Repetitions) -> bool:
        """Whether both have the same splits and seeds, once each, and only finite values."""
        same = np.array_equal(self.split_seed, other.split_seed) and np.array_equal(self.seed, other.seed)
        if not same or not (np.isfinite(self.values).all() and np.isfinite(other.values).all()):
            return False
        return bool(((np.diff(self.split_seed) != 0) | (np.diff(self.seed) != 0)).all())

    def shared_with(self, other: Repetitions) -> Repetitions:
        """Return the finite runs whose split and seed ``other`` has a finite run of as well."""
        theirs = np.isfinite(other.values)
        known = set(zip(other.split_seed[theirs], other.seed[theirs], strict=True))
        keys = zip(self.split_seed, self.seed, strict=True)
        kept = np.array([key in known for key in keys], dtype=bool) & np.isfinite(self.values)
        return Repetitions(self.split_seed[kept], self.seed[kept], self.values[kept], self.diverged[kept])

    def split_means(self) -> np.ndarray:
        """Return the mean of each split over its seeds."""
        _, split = np.unique(self.split_seed, return_inverse=True)
        return np.bincount(split, self.values) / np.bincount(split)
