"""Sizes of the datasets, known before a file is opened."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Statistics:
    """Size of a graph as PyG counts it: both directions of every edge, and self-loops."""

    nodes: int
    edges: int
    features: int
    classes: int

    @property
    def avg_degree(self) -> float:
        return self.edges / self.nodes


#: The heterophily benchmark of Platonov et al. (ICLR 2023): datasets that played no part in the paper.
_HETEROPHILOUS = {
    "Tolokers": Statistics(11758, 1038000, 10, 2),
    "SquirrelFiltered": Statistics(2223, 93996, 2089, 5),
    "ChameleonFiltered": Statistics(890, 17708, 2325, 5),
    "Minesweeper": Statistics(10000, 78804, 7, 2),
    "Actor": Statistics(7600, 53318, 932, 5),
    "Roman-empire": Statistics(22662, 65854, 300, 18),
    "Amazon-ratings": Statistics(24492, 186100, 300, 5),
    "Questions": Statistics(48921, 307080, 301, 2),
}
HETEROPHILOUS = tuple(_HETEROPHILOUS)

#: The eleven datasets of the paper, from the highest to the lowest average degree, then OGB's and the heterophily benchmark's.
SIZES: dict[str, Statistics] = {
    "AmazonComputers": Statistics(13752, 491722, 767, 10),
    "AmazonPhoto": Statistics(7650, 238162, 745, 8),
    "GitHub": Statistics(37700, 578006, 128, 2),
    "FacebookPagePage": Statistics(22470, 342004, 128, 4),
    "CoauthorPhysics": Statistics(34493, 495924, 8415, 5),
    "TwitchEN": Statistics(7126, 77774, 128, 2),
    "CoauthorCS": Statistics(18333, 163788, 6805, 15),
    "DBLP": Statistics(17716, 105734, 1639, 4),
    "PubMed": Statistics(19717, 88648, 500, 3),
    "Cora": Statistics(2708, 10556, 1433, 7),
    "CiteSeer": Statistics(3327, 9104, 3703, 6),
    "ogbn-arxiv": Statistics(169343, 1166243, 128, 40),
    "ogbn-products": Statistics(2449029, 123718280, 100, 47),
    "ogbn-mag": Statistics(1939743, 21111007, 128, 349),
    "ogbn-proteins": Statistics(132534, 79122504, 8, 112),
    **_HETEROPHILOUS,
}
