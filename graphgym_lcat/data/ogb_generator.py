"""Random data in the shape and file layout of OGB's datasets, to try a grid without the real files or to measure at their size.

Features and edges depend on the classes, so that networks can learn something. Nothing else resembles the real data.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from graphgym_lcat.data.ogb import OGB_DATASETS, RELATIONS, SYNTHETIC_MARK, OgbSpec
from graphgym_lcat.data.registry import data_directory
from lcat_core.errors import DatasetError, unknown_name

_SHARES = {  # of training and validation nodes in OGB's splits
    "ogbn-arxiv": (0.537, 0.176),
    "ogbn-products": (0.080, 0.016),
    "ogbn-mag": (0.855, 0.088),
    "ogbn-proteins": (0.654, 0.160),
}
_MAG_NODES = {"author": 1_134_649, "field_of_study": 59_965, "institution": 8_740, "paper": 736_389}
_MAG_EDGES = dict(zip(RELATIONS, (1_043_998, 7_145_660, 5_416_271, 7_505_078), strict=True))
_MAX_DENSITY = 0.25  # of all pairs: a thousandth of the nodes of -proteins could not have a thousandth of its edges
_HOMOPHILY = 0.6
_SIGNAL = 1.5  # length of a class mean
_NOISE = 2.0  # length of the noise that is added to it
_PROTEIN_GROUPS = 8


@dataclass(frozen=True)
class _Target:
    """Where one dataset is written, how small it is, and its random generator."""

    spec: OgbSpec
    folder: Path
    scale: float
    rng: np.random.Generator

    def size(self, full: int, least: int = 4) -> int:
        return max(least, round(full / self.scale))

    def write(self, path: str, values: object, header: bool = False) -> None:
        """Write one ``.csv.gz`` file."""
        file = self.folder / f"{path}.csv.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        frame = values if isinstance(values, pd.DataFrame) else pd.DataFrame(np.asarray(values))
        compression = {"method": "gzip", "compresslevel": 1, "mtime": 0}
        frame.to_csv(file, header=header, index=False, float_format="%.4g", compression=compression)


def generate_ogb(
    name: str, scale: float = 1000.0, data_dir: str | os.PathLike[str] | None = None, seed: int = 0
) -> tuple[Path, int, int]:
    """Write a graph in the shape of ``name`` with ``1/scale`` of its nodes and edges; return its folder, nodes and edges.

    The folder is the one where the real dataset belongs, and must not exist. A file ``SYNTHETIC.txt`` marks it.
    """
    if name not in OGB_DATASETS:
        raise DatasetError(unknown_name("OGB dataset", name, OGB_DATASETS))
    if not (math.isfinite(scale) and scale >= 1):
        raise DatasetError(f"scale: expected a number of at least 1 (1000 for a thousandth), got {scale}")
    spec, root = OGB_DATASETS[name], data_directory(data_dir)
    home = spec.folder(root)
    if home.exists():
        what = "synthetic data" if spec.is_synthetic(root) else "other data"
        raise DatasetError(
            f"{home.absolute()} already holds {what}, which are not overwritten; delete them, or use another folder"
        )
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".generating-", dir=root) as scratch:
        target = _Target(spec, Path(scratch) / "dataset", scale, np.random.default_rng(seed))
        _WRITERS[name](target)
        (target.folder / f"RELEASE_v{spec.release}.txt").write_text("", encoding="ascii")
        note = f"Synthetic data in the shape of {name} at 1:{scale:g}, seed {seed}. Not the Open Graph Benchmark's.\n"
        (target.folder / SYNTHETIC_MARK).write_text(note, encoding="ascii")
        shutil.move(target.folder, home)
    size = spec.size_on_disk(root)
    return home, size.nodes, size.edges


def _write_classified(target: _Target) -> None:
    """Write -arxiv or -products: one label per node, features, and edges in one direction."""
    spec, rng = target.spec, target.rng
    nodes = target.size(spec.published.nodes, spec.published.classes)
    edges = target.size(spec.published.edges // (2 if spec.undirected else 1))
    labels = _labels(rng, nodes, spec.published.classes)
    target.write("raw/node-label", labels)
    target.write("raw/node-feat", _features(rng, labels, spec.published.classes, spec.published.features))
    _write_graph(target, nodes, _edges(rng, labels, labels, edges, symmetric=True))
    if spec.name == "ogbn-arxiv":
        target.write("raw/node_year", rng.integers(2000, 2021, nodes))
    _write_split(target, nodes)


def _write_proteins(target: _Target) -> None:
    """Write -proteins: hidden groups determine the 112 labels of a node and the 8 features of its edges."""
    spec, rng = target.spec, target.rng
    nodes = target.size(spec.published.nodes, 64)
    groups = _labels(rng, nodes, _PROTEIN_GROUPS)
    edges = _edges(rng, groups, groups, target.size(spec.published.edges // 2), symmetric=True)
    chance = rng.choice([0.1, 0.5], size=(_PROTEIN_GROUPS, spec.tasks))
    target.write("raw/node-label", (rng.random((nodes, spec.tasks)) < chance[groups]).astype(int))
    means = rng.random((_PROTEIN_GROUPS, spec.published.features))
    strength = (means[groups[edges[:, 0]]] + means[groups[edges[:, 1]]]) / 2
    noisy = strength + 0.1 * rng.standard_normal(strength.shape)
    target.write("raw/edge-feat", np.clip(noisy, 0.001, 0.999))
    target.write("raw/node_species", rng.integers(8, size=nodes))
    _write_graph(target, nodes, edges)
    _write_split(target, nodes)


def _write_mag(target: _Target) -> None:
    """Write -mag: nodes of all types have hidden classes, and those of papers are the labels."""
    spec, rng = target.spec, target.rng
    classes = spec.published.classes
    counts = {kind: target.size(count, classes if kind == "paper" else 4) for kind, count in _MAG_NODES.items()}
    hidden = {kind: _labels(rng, count, classes) for kind, count in counts.items()}
    target.write("raw/num-node-dict", pd.DataFrame({kind: [count] for kind, count in counts.items()}), header=True)
    target.write("raw/triplet-type-list", RELATIONS)
    target.write("raw/node-label/paper/node-label", hidden["paper"])
    target.write("raw/node-feat/paper/node-feat", _features(rng, hidden["paper"], classes, spec.published.features))
    target.write("raw/node-feat/paper/node_year", rng.integers(2010, 2020, counts["paper"]))
    only_paper = pd.DataFrame({kind: [kind == "paper"] for kind in counts})
    for path in ("raw/nodetype-has-feat", "raw/nodetype-has-label", f"split/{spec.split}/nodetype-has-split"):
        target.write(path, only_paper, header=True)
    for number, (relation, full) in enumerate(_MAG_EDGES.items()):
        sources, destinations = hidden[relation[0]], hidden[relation[2]]
        edges = _edges(rng, sources, destinations, target.size(full), symmetric=relation[0] == relation[2])
        folder = f"raw/relations/{'___'.join(relation)}"
        target.write(f"{folder}/edge", edges)
        target.write(f"{folder}/num-edge-list", [len(edges)])
        target.write(f"{folder}/edge_reltype", np.full(len(edges), number))
    _write_split(target, counts["paper"], "/paper")


_WRITERS: dict[str, Callable[[_Target], None]] = {
    "ogbn-arxiv": _write_classified,
    "ogbn-products": _write_classified,
    "ogbn-mag": _write_mag,
    "ogbn-proteins": _write_proteins,
}


def _write_graph(target: _Target, nodes: int, edges: np.ndarray) -> None:
    target.write("raw/edge", edges)
    target.write("raw/num-node-list", [nodes])
    target.write("raw/num-edge-list", [len(edges)])


def _write_split(target: _Target, nodes: int, kind: str = "") -> None:
    order = target.rng.permutation(nodes)
    bounds = [max(1, round(nodes * share)) for share in np.cumsum(_SHARES[target.spec.name])]
    bounds[1] = max(bounds[1], bounds[0] + 1)
    for part, members in zip(("train", "valid", "test"), np.split(order, bounds), strict=True):
        target.write(f"split/{target.spec.split}{kind}/{part}", np.sort(members))


def _labels(rng: np.random.Generator, count: int, classes: int) -> np.ndarray:
    """Draw labels; every class occurs if there are enough nodes."""
    return rng.permutation(np.arange(count) % classes)


def _features(rng: np.random.Generator, labels: np.ndarray, classes: int, width: int) -> np.ndarray:
    means = rng.standard_normal((classes, width))
    means *= _SIGNAL / np.linalg.norm(means, axis=1, keepdims=True)
    return means[labels] + rng.standard_normal((len(labels), width)) * (_NOISE / math.sqrt(width))


def _edges(
    rng: np.random.Generator, sources: np.ndarray, destinations: np.ndarray, wanted: int, symmetric: bool
) -> np.ndarray:
    """Draw distinct pairs, a share ``_HOMOPHILY`` of them within a class; no self-loops or reversed pairs if ``symmetric``."""
    n, m = len(sources), len(destinations)
    pairs = n * (n - 1) // 2 if symmetric else n * m
    wanted = max(1, min(wanted, int(_MAX_DENSITY * pairs)))
    by_class = np.argsort(destinations, kind="stable")
    first = np.searchsorted(destinations[by_class], np.arange(destinations.max() + 2))
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < wanted:
        u = rng.integers(n, size=wanted + 64)
        v = rng.integers(m, size=len(u))
        own = np.minimum(sources[u], destinations.max())
        room = first[own + 1] - first[own]
        near = (rng.random(len(u)) < _HOMOPHILY) & (room > 0)
        v[near] = by_class[(first[own] + (rng.random(len(u)) * room).astype(np.int64))[near]]
        if symmetric:
            u, v = np.minimum(u, v)[u != v], np.maximum(u, v)[u != v]
        candidates = np.concatenate([keys, u * m + v])
        _, seen = np.unique(candidates, return_index=True)
        keys = candidates[np.sort(seen)]
    return np.stack(np.divmod(keys[:wanted], m), axis=1)
