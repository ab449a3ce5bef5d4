"""The targets of speed: each is a ratio of two times from the same run, with the value that it must and that it should reach.

Targets are measured in groups, and each group alternates its contenders in one process (training runs in processes of their own).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lcat_benchmarks import target_steps
from lcat_benchmarks.result import Keep, Progress, Result, Row, ignore, new_result
from lcat_core.text import count

Seconds = dict[str, float]


@dataclass(frozen=True)
class Target:
    """``numerator / denominator`` must reach ``must`` and should reach ``aim``, from above or from below.

    Attributes:
        what: The two contenders, for people.
        numerator, denominator: Their names in the measurements of the group.
        at_least: Whether a larger ratio is better.
        threads: The number of threads that the target is about; None for all.
    """

    what: str
    numerator: str
    denominator: str
    must: float
    aim: float
    at_least: bool = False
    threads: int | None = None

    def reaches(self, ratio: float, bound: float) -> bool:
        return ratio >= bound if self.at_least else ratio <= bound


@dataclass(frozen=True)
class Group:
    """Targets that are measured together; ``measure(threads, repeats, baseline)`` gives the seconds of every contender."""

    name: str
    measure: Callable[[int, int, str | None], Seconds]
    targets: tuple[Target, ...]


GROUPS = (
    Group(
        "layers",
        target_steps.layer_seconds,
        (
            Target("dropout 0.6 / plain, GAT", "lcat, dropout", "lcat", 2, 1.4),
            Target("dropout 0.6 / plain, GATv2", "lcatv2, dropout", "lcatv2", 2, 1.4),
            Target("edge_dim 16 / plain, GAT", "lcat, edge_dim", "lcat", 3, 2),
            Target("edge_dim 16 / plain, GATv2", "lcatv2, edge_dim", "lcatv2", 4, 2.5),
            Target("bfloat16 / float32, GAT", "lcat, bfloat16", "lcat", 1.1, 0.8),
            Target("bfloat16 / float32, GATv2", "lcatv2, bfloat16", "lcatv2", 1.1, 0.8),
            Target("attention weights / plain, GAT", "lcat, weights", "lcat", 2, 1.4),
            Target("attention weights / plain, GATv2", "lcatv2, weights", "lcatv2", 2, 1.4),
            Target("L-CAT / linear layer and sparse product", "lcat", "floor", 2.7, 2.2),
            Target("PyG PNAConv / ours with λ1 = 0", "PyG PNAConv", "lcat PNA, λ1 = 0", 8, 15, at_least=True),
        ),
    ),
    Group(
        "new-graphs",
        target_steps.new_graph_seconds,
        (
            Target(
                "64 new graphs of 25 nodes: L-CAT / PyG GATConv",
                "lcat, batch",
                "PyG GATConv, batch",
                0.6,
                0.4,
                threads=1,
            ),
            Target(
                "64 new graphs of 25 nodes: L-CATv2 / PyG GATv2Conv",
                "lcatv2, batch",
                "PyG GATv2Conv, batch",
                0.6,
                0.4,
                threads=1,
            ),
            Target(
                "new subgraph of 5,000 nodes, 50,000 edges: L-CAT / PyG GATConv",
                "lcat, subgraph",
                "PyG GATConv, subgraph",
                0.16,
                0.12,
                threads=1,
            ),
        ),
    ),
    Group(
        "busy",
        target_steps.busy_seconds,
        (
            Target(
                "Cora's size beside two busy processes: 2 threads / 1 thread",
                "2 threads",
                "1 thread",
                1.3,
                1.0,
                threads=2,
            ),
        ),
    ),
    Group(
        "epochs",
        target_steps.epoch_seconds,
        (
            Target("epoch on AmazonPhoto: L-PNACAT / L-CAT", "lpnacat, AmazonPhoto", "lcat, AmazonPhoto", 4, 2.5),
            Target("epoch on Cora: L-CAT / L-CAT of the baseline", "lcat, Cora", "lcat, Cora, baseline", 0.8, 0.6),
        ),
    ),
)


def measure_targets(
    groups: Sequence[str],
    threads: Sequence[int],
    repeats: int,
    baseline: str | None = None,
    earlier: Result | None = None,
    progress: Progress = ignore,
    keep: Keep = ignore,
) -> Result:
    """Measure the targets of some groups; ``earlier`` has those of the other groups.

    Args:
        groups: Names of groups.
        threads: Numbers of threads.
        repeats: How often every contender takes its turn.
        baseline: Python of an installation to compare with, where a target needs one.
        earlier: An earlier result, whose rows of other groups are kept.
        progress, keep: Called after each group and number of threads.
    """
    result = new_result("targets", {"repeats": repeats})
    rows = [] if earlier is None else earlier["measurements"]
    for group in (group for group in GROUPS if group.name in groups):
        for number in threads:
            if all(target.threads not in (None, number) for target in group.targets):
                continue
            rows = [row for row in rows if (row["group"], row["threads"]) != (group.name, number)]
            seconds = group.measure(number, repeats, baseline)
            rows += [
                _row(group, target, number, seconds) for target in group.targets if _applies(target, number, seconds)
            ]
            result["measurements"] = sorted(rows, key=_place)
            progress(f"{group.name}, {count(number, 'thread')}")
            keep(result)
    return result


def _applies(target: Target, threads: int, seconds: Seconds) -> bool:
    is_measured = target.numerator in seconds and target.denominator in seconds
    return is_measured and target.threads in (None, threads)


def _row(group: Group, target: Target, threads: int, seconds: Seconds) -> Row:
    ratio = seconds[target.numerator] / seconds[target.denominator]
    return {
        "group": group.name,
        "what": target.what,
        "threads": threads,
        "seconds": {name: seconds[name] for name in (target.numerator, target.denominator)},
        "ratio": ratio,
        "must": target.must,
        "aim": target.aim,
        "at_least": target.at_least,
        "verdict": verdict(target, ratio),
    }


def verdict(target: Target, ratio: float) -> str:
    """Whether a ratio reaches the aim, only what it must, or neither."""
    if target.reaches(ratio, target.aim):
        return "aim reached"
    return "met" if target.reaches(ratio, target.must) else "not met"


def _place(row: Row) -> tuple[int, int]:
    targets = [target.what for group in GROUPS for target in group.targets]
    return targets.index(row["what"]), row["threads"]


def text_table(result: Result) -> str:
    """Return one line per target and number of threads."""
    lines = [f"{'':<66}{'threads':>8}{'ratio':>8}{'must':>8}{'aim':>8}"]
    for row in result["measurements"]:
        must, aim = (f"{_sign(row)} {row[bound]:g}" for bound in ("must", "aim"))
        lines.append(f"{row['what']:<66}{row['threads']:>8}{row['ratio']:>8.3g}{must:>8}{aim:>8}  {row['verdict']}")
    return "\n".join(lines)


def markdown_table(result: Result) -> str:
    """Return the same for benchmarks/README.md."""
    lines = ["| ratio | threads | measured | must | aim | |", "|---|---:|---:|---:|---:|---|"]
    for row in result["measurements"]:
        must, aim = (f"{_sign(row)} {row[bound]:g}" for bound in ("must", "aim"))
        lines.append(f"| {row['what']} | {row['threads']} | {row['ratio']:.3g} | {must} | {aim} | {row['verdict']} |")
    return "\n".join(lines)


def _sign(row: Row) -> str:
    return "≥" if row["at_least"] else "≤"
