"""Charts of the measurements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcat_benchmarks.child import DONE, OUT_OF_MEMORY
from lcat_benchmarks.result import Result, Row
from lcat_core.text import count

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # readable over the line at 1
COLORS = {
    "floor": "#8a8a8a",
    "ours": "#0b6e4f",
    "ours, torch path": "#8fbfa8",
    "PyG": "#c8553d",
    "DGL": "#3d5a80",
}


def layer_chart(result: Result) -> Figure:
    """Draw time as multiples of the floor, one panel per graph and shape, for the largest number of threads."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    rows = result["measurements"]
    threads = max(row["threads"] for row in rows)
    panels: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["threads"] == threads:
            panels.setdefault((row["graph"], row["heads"], row["channels"]), []).append(row)
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    tallest = max(len(panel) for panel in panels.values())
    figure = Figure(figsize=(1.5 + 4.6 * columns, 1.1 + lines * (0.7 + 0.26 * tallest)), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, ((graph, heads, channels), panel) in zip(axes.flat, panels.items(), strict=False):
        _bars(axis, panel, right=6 * max(row["times_floor"] for row in rows))
        edges = panel[0]["edges"]
        axis.set_title(f"{graph}, {edges:,} edges, {heads} × {channels}", fontsize=10, loc="left")
    families = dict.fromkeys(row["family"] for row in rows)
    figure.legend(
        handles=[Patch(color=COLORS[family], label=family) for family in families],
        loc="outside lower center",
        ncols=len(families),
        frameon=False,
    )
    figure.suptitle(
        f"One layer, forward + backward, float32, {count(threads, 'thread')}: time as a multiple of a linear layer and one "
        "sparse product",
        fontsize=11,
    )
    return figure


def _bars(axis: Axes, rows: list[Row], right: float) -> None:
    ratios = [row["times_floor"] for row in rows]
    axis.barh(range(len(rows)), ratios, color=[COLORS[row["family"]] for row in rows], height=0.72)
    axis.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=8)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlim(left=0.5, right=right)
    axis.axvline(1, color="#8a8a8a", linewidth=0.8, zorder=0)
    axis.spines[["top", "right"]].set_visible(False)
    for position, (row, ratio) in enumerate(zip(rows, ratios, strict=True)):
        milliseconds = 1e3 * min(row["seconds"])
        times = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
        spent = f"{milliseconds:.1f}" if milliseconds < 100 else f"{milliseconds:,.0f}"
        axis.text(max(ratio, 0.5) * 1.06, position, f"{times} ×  ({spent} ms)", va="center", fontsize=7, bbox=LABEL)


def scale_chart(result: Result) -> Figure:
    """Draw seconds and peak memory of a training step against the number of edges, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    time_axis, memory_axis = figure.subplots(1, 2)
    limit = result["settings"]["memory_gib"]
    colors = {"lcat": COLORS["ours"], "PyG GATConv": COLORS["PyG"]}
    for name, color in colors.items():
        rows = [row for row in result["measurements"] if row["name"] == name]
        done = [row for row in rows if row["outcome"] == DONE]
        edges = [row["edges"] for row in done]
        time_axis.plot(edges, [row["seconds"] for row in done], "o-", color=color, label=name)
        memory_axis.plot(edges, [row["peak_bytes"] / 2**30 for row in done], "o-", color=color, label=name)
        for row in rows:
            if row["outcome"] == OUT_OF_MEMORY:
                memory_axis.plot(row["edges"], limit, "x", color=color, markersize=9)
                memory_axis.annotate(
                    OUT_OF_MEMORY, (row["edges"], limit), (0, 6), textcoords="offset points", color=color, ha="center"
                )
    memory_axis.axhline(limit, color="#8a8a8a", linewidth=0.8, linestyle="--", label=f"limit: {limit:.3g} GiB")
    memory_axis.margins(y=0.12)
    for axis, title in ((time_axis, "seconds per step"), (memory_axis, "peak memory of the process, GiB")):
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("edges")
        axis.set_title(title, fontsize=10, loc="left")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False)
    s = result["settings"]
    figure.suptitle(
        f"One full-batch training step, {s['layers']} layers, {s['width']} wide, {s['heads']} heads, "
        f"{count(s['threads'], 'thread')}",
        fontsize=11,
    )
    return figure


def epoch_chart(result: Result) -> Figure:
    """Draw milliseconds per epoch, ours beside stock GraphGym's, one group per dataset."""
    from matplotlib.figure import Figure

    rows = result["measurements"]
    threads = max(row["threads"] for row in rows)
    rows = [row for row in rows if row["threads"] == threads]
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    figure = Figure(figsize=(8, 1.2 + 0.75 * len(datasets)), layout="constrained")
    axis = figure.subplots()
    for offset, (flow, color) in enumerate((("ours", COLORS["ours"]), ("stock", COLORS["PyG"]))):
        part = [row for row in rows if row["flow"] == flow]
        places = [datasets.index(row["dataset"]) + 0.36 * offset for row in part]
        milliseconds = [1e3 * row["seconds"] for row in part]
        axis.barh(places, milliseconds, height=0.34, color=color, label=part[0]["name"])
        for place, row, value in zip(places, part, milliseconds, strict=True):
            times = "" if flow == "ours" else f"  ({row['times_ours']:.1f} ×)"
            axis.text(value * 1.06, place, f"{value:,.0f} ms{times}", va="center", fontsize=8)
    axis.set_yticks([place + 0.18 for place in range(len(datasets))], datasets)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlim(left=1, right=4 * max(1e3 * row["seconds"] for row in rows))
    axis.set_xlabel("ms per epoch")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, loc="upper right")
    axis.set_title(
        f"An epoch with 4 layers and 4 heads of 8: forward, backward, scores ({count(threads, 'thread')})",
        loc="left",
        fontsize=10,
    )
    return figure


def arxiv_chart(result: Result) -> Figure:
    """Draw seconds and peak memory of an epoch, one row of panels per number of heads."""
    from matplotlib.figure import Figure

    rows = result["measurements"]
    heads = sorted({row["heads"] for row in rows})
    names = list(dict.fromkeys(row["name"] for row in rows))
    figure = Figure(figsize=(10, 0.9 + len(heads) * (0.6 + 0.28 * len(names))), layout="constrained")
    axes = figure.subplots(len(heads), 2, squeeze=False, sharex="col", sharey="row")
    for line, number in zip(axes, heads, strict=True):
        own = [row for row in rows if row["heads"] == number]
        for axis, title, value in (
            (line[0], "seconds per epoch", lambda row: min(row["seconds"])),
            (line[1], "peak memory of the process, GiB", lambda row: row["peak_bytes"] / 2**30),
        ):
            _arxiv_bars(axis, own, value)
            axis.set_title(f"{title}, {count(number, 'head')}", fontsize=10, loc="left")
    s, done = result["settings"], next((row for row in rows if row["outcome"] == DONE), None)
    size = "" if done is None else f", {done['nodes']:,} nodes, {done['edges']:,} edges"
    figure.suptitle(f"An epoch of the ogbn-arxiv network{size}, {count(s['threads'], 'thread')}", fontsize=11)
    return figure


def _arxiv_bars(axis: Axes, rows: list[Row], value: Callable[[Row], float]) -> None:
    values = [value(row) if row["outcome"] == DONE else 0 for row in rows]
    axis.barh(range(len(rows)), values, color=[COLORS[row["family"]] for row in rows], height=0.72)
    axis.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=8)
    if not axis.yaxis_inverted():
        axis.invert_yaxis()
    axis.margins(x=0.15)
    axis.spines[["top", "right"]].set_visible(False)
    for position, (row, size) in enumerate(zip(rows, values, strict=True)):
        text = f" {size:.2f}" if row["outcome"] == DONE else f" {row['outcome']}"
        axis.text(size, position, text, va="center", fontsize=7)


LONGEST_SHARE = 2.0  # of a limit; longer bars are cut off


def target_chart(result: Result) -> Figure:
    """Draw each ratio beside what it must and should reach, divided by what it must reach; shorter is better."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    rows = result["measurements"]
    colors = {"aim reached": COLORS["ours"], "met": "#8fbfa8", "not met": COLORS["PyG"]}
    figure = Figure(figsize=(10, 1.4 + 0.27 * len(rows)), layout="constrained")
    axis = figure.subplots()
    for position, row in enumerate(rows):
        share, aim = (
            row["must"] / value if row["at_least"] else value / row["must"] for value in (row["ratio"], row["aim"])
        )
        axis.barh(position, share, color=colors[row["verdict"]], height=0.72)
        axis.plot([aim, aim], [position - 0.4, position + 0.4], color="black", linewidth=1.4)
        text = f"{row['ratio']:.3g}" + ("" if share <= LONGEST_SHARE else " →")
        axis.text(1.02, position, text, va="center", fontsize=8, transform=axis.get_yaxis_transform())
    names = [f"{row['what']}, {count(row['threads'], 'thread')}" for row in rows]
    axis.set_yticks(range(len(rows)), names, fontsize=8)
    axis.invert_yaxis()
    axis.axvline(1, color="#8a8a8a", linewidth=1, linestyle="--", zorder=0)
    axis.set_xlim(0, LONGEST_SHARE)
    axis.margins(y=0.01)
    axis.set_xlabel("share of the limit, shorter is better; at the right the ratio itself")
    axis.spines[["top", "right"]].set_visible(False)
    handles: list[Artist] = [Patch(color=color, label=text) for text, color in colors.items()]
    handles.append(Line2D([], [], color="black", linewidth=1.4, label="aim"))
    handles.append(Line2D([], [], color="#8a8a8a", linewidth=1, linestyle="--", label="limit"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


#: Chart by the kind of result.
CHARTS: dict[str, Callable[[Result], Figure]] = {
    "layers": layer_chart,
    "adjacency": layer_chart,
    "scale": scale_chart,
    "epochs": epoch_chart,
    "arxiv": arxiv_chart,
    "targets": target_chart,
}


def save_chart(result: Result, folder: Path) -> list[Path]:
    """Write the chart of a result as PNG and SVG; return the files. A few numbers, as those of sampling, have none."""
    if result["kind"] not in CHARTS:
        return []
    figure = CHARTS[result["kind"]](result)
    paths = [folder / f"{result['kind']}.{suffix}" for suffix in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths
