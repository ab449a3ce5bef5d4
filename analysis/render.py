"""One table in every format: Markdown, CSV, HTML, terminal, and LaTeX, which has its own module."""

from __future__ import annotations

import html
import re
import shutil
import textwrap
from collections.abc import Callable

from lcat_analysis.cells import Cell, Row, Table
from lcat_analysis.latex import to_latex
from lcat_core.errors import ResultsError, unknown_name


def render(table: Table, style: str, columns: int | None = None) -> str:
    """Return ``table`` as text.

    Args:
        style: A key of `FORMATS`.
        columns: In LaTeX, the columns that stand side by side; others follow below. By default as many as fit the page.
    """
    if style not in FORMATS:
        raise ResultsError(unknown_name("format", style, FORMATS))
    return to_latex(table, columns) if style == "latex" else FORMATS[style](table)


def to_markdown(table: Table) -> str:
    def field(cell: Cell) -> str:
        text = markdown(cell.text)
        if cell.best:
            text = f"<u>{text}</u>"
        if cell.mark == "better":
            text = f"**{text}**"
        return f"{text} ▼" if cell.mark == "worse" else text

    width = len(table.label_names)
    lines = [f"**{markdown(table.title)}**", ""]
    lines.append(_pipe([markdown(name) for name in [*table.label_names, *table.columns]]))
    sides = [":---" if name in table.left else "---:" for name in table.columns]
    lines.append(_pipe(["---"] * width + sides))
    for label, texts in table.header:
        lines.append(_pipe([markdown(label), *[""] * (width - 1), *map(markdown, texts), *_pad(table, texts)]))
    for row in table.rows:
        lines.append(_pipe([*map(markdown, row.labels), *map(field, row.cells)]))
    lines += ["", *(f"{markdown(note)}  " for note in table.notes)]
    return "\n".join(lines).rstrip() + "\n"


def markdown(text: str) -> str:
    """Escape text for a Markdown table, whatever it contains."""
    text = html.escape(text, quote=False).replace("\n", " ")
    return re.sub(r"([\\`*_|\[\]~])", r"\\\1", text)


def to_csv(table: Table) -> str:
    """Return the numbers with full precision, one row per cell of the table."""
    return table.data.to_csv(index=False, lineterminator="\n")


def to_html(table: Table, *, notes: bool = True) -> str:
    """Return a ``<table>`` with a caption and, if ``notes``, the footer; every text is escaped."""
    names = [*table.label_names, *table.columns]
    head = "".join(f'<th scope="col"{_left(name, table)}>{html.escape(name)}</th>' for name in names)
    lines = [f"<table><caption>{html.escape(table.title)}</caption>", f"<thead><tr>{head}</tr>"]
    for label, texts in table.header:
        padded = [label, *[""] * (len(table.label_names) - 1), *texts, *_pad(table, texts)]
        cells = "".join(f"<td>{html.escape(text)}</td>" for text in padded)
        lines.append(f'<tr class="extra">{cells}</tr>')
    lines.append("</thead><tbody>")
    lines += [_html_row(row, table) for row in table.rows]
    lines.append("</tbody>")
    if notes and table.notes:
        text = "<br>".join(map(html.escape, table.notes))
        lines.append(f'<tfoot><tr><td class="left" colspan="{len(names)}">{text}</td></tr></tfoot>')
    return "\n".join([*lines, "</table>"]) + "\n"


def _left(name: str, table: Table) -> str:
    return ' class="left"' if name in (*table.left, *table.label_names) else ""


def _html_row(row: Row, table: Table) -> str:
    labels = "".join(f'<th scope="row">{html.escape(label)}</th>' for label in row.labels)
    cells = []
    for name, cell in zip(table.columns, row.cells, strict=True):
        left = "left" if name in table.left else ""
        classes = " ".join(filter(None, (cell.mark, "best" if cell.best else "", left)))
        attributes = f' class="{classes}"' if classes else ""
        attributes += "" if cell.sort is None else f' data-sort="{cell.sort:.10g}"'
        text = html.escape(cell.text)
        text = f"<u>{text}</u>" if cell.best else text
        text = f"<b>{text}</b>" if cell.mark == "better" else text
        text += ' <span title="worse than its baseline">▼</span>' if cell.mark == "worse" else ""
        cells.append(f"<td{attributes}>{text}</td>")
    opening = '<tr class="rule">' if row.rule else "<tr>"
    return f"{opening}{labels}{''.join(cells)}</tr>"


def to_terminal(table: Table, *, colour: bool = False, width: int | None = None) -> str:
    """Return aligned text; columns that do not fit the terminal follow in further blocks.

    Without ``colour`` (in a pipe or a file) marks are characters: ``*`` better, ``▼`` worse, ``_…_`` best.
    """
    width = width or shutil.get_terminal_size((120, 24)).columns
    texts = [[_terminal_text(cell, colour) for cell in row.cells] for row in table.rows]
    label_width = [
        max([len(name), *(len(row.labels[i]) for row in table.rows), *(len(t) for t, _ in table.header if not i)])
        for i, name in enumerate(table.label_names)
    ]
    sizes = [
        max([len(name), *(_visible(row[i]) for row in texts), *(len(t[i]) for _, t in table.header if i < len(t))])
        for i, name in enumerate(table.columns)
    ]
    lines = [table.title]
    for block in _blocks(sizes, width - sum(label_width) - 2 * len(label_width)):
        lines.append("")
        lines += _terminal_block(table, texts, block, label_width, sizes)
    numbers = [cell for row in table.rows for cell in row.cells if cell.sort is not None]
    marked = any(cell.mark or cell.best for cell in numbers)
    legend = ["In plain text: * better, ▼ worse, _…_ best."] if marked and not colour else []
    wrapped = [textwrap.fill(note, max(width, 40), subsequent_indent="  ") for note in table.notes]
    return "\n".join([*lines, "", *wrapped, *legend]) + "\n"


def _terminal_block(
    table: Table, texts: list[list[str]], block: list[int], label_width: list[int], sizes: list[int]
) -> list[str]:
    def line(labels: tuple[str, ...] | list[str], fields: list[str]) -> str:
        left = "  ".join(label.ljust(size) for label, size in zip(labels, label_width, strict=True))
        right = "  ".join(
            _align(text, sizes[i], table.columns[i] in table.left) for i, text in zip(block, fields, strict=True)
        )
        return f"{left}  {right}".rstrip()

    first = line(table.label_names, [table.columns[i] for i in block])
    length = sum(label_width) + 2 * (len(label_width) - 1) + sum(sizes[i] + 2 for i in block)
    lines = [first]
    for label, extra in table.header:
        padded = [*extra, *_pad(table, extra)]
        lines.append(line([label, *[""] * (len(label_width) - 1)], [padded[i] for i in block]))
    lines.append("─" * length)
    for row, fields in zip(table.rows, texts, strict=True):
        if row.rule:
            lines.append("┈" * length)
        lines.append(line(row.labels, [fields[i] for i in block]))
    return lines


def _terminal_text(cell: Cell, colour: bool) -> str:
    worse = "▼" if cell.mark == "worse" else ""
    if not colour and cell.sort is None:  # a word such as "better" needs no mark
        return cell.text
    if not colour:
        better = "*" if cell.mark == "better" else ""
        return (f"_{cell.text}_" if cell.best else cell.text) + better + worse
    codes = (["1"] if cell.mark == "better" else []) + (["4"] if cell.best else [])
    return (f"\x1b[{';'.join(codes)}m{cell.text}\x1b[0m" if codes else cell.text) + worse


def _align(text: str, size: int, left: bool) -> str:
    padding = " " * (size - _visible(text))
    return text + padding if left else padding + text


def _visible(text: str) -> int:
    return len(re.sub(r"\x1b\[[0-9;]*m", "", text))


def _blocks(sizes: list[int], available: int) -> list[list[int]]:
    blocks: list[list[int]] = [[]]
    used = 0
    for i, size in enumerate(sizes):
        if blocks[-1] and used + size + 2 > available:
            blocks.append([])
            used = 0
        blocks[-1].append(i)
        used += size + 2
    return blocks


def _pad(table: Table, texts: list[str]) -> list[str]:
    return [""] * (len(table.columns) - len(texts))


def _pipe(fields: list[str]) -> str:
    return f"| {' | '.join(fields)} |"


FORMATS: dict[str, Callable[[Table], str]] = {
    "terminal": to_terminal,
    "markdown": to_markdown,
    "latex": to_latex,
    "csv": to_csv,
    "html": to_html,
}
SUFFIXES = {".md": "markdown", ".tex": "latex", ".csv": "csv", ".html": "html", ".txt": "terminal"}
