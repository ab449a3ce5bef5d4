"""Tables for a paper: LaTeX with booktabs, no wider than the text of an ICLR paper (5.5 inches), no longer than a page.

Columns that do not fit follow below in the same float, long names take two lines, and the methods are a note below the table.
"""

from __future__ import annotations

import re
import unicodedata

from lcat_analysis.cells import Cell, Row, Table
from lcat_core.errors import ResultsError

#: Width of the text, of a digit of 8-point type, and between two columns, in TeX points.
TEXT_WIDTH, _CHARACTER, _BETWEEN = 397.0, 4.25, 6.0
#: Rows on one page; a longer table continues on the next.
ROWS_PER_PAGE = 48
#: Longer names of columns take two lines.
_SHORT_NAME = 9

LATEX_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}":
    r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "λ": r"$\lambda$", "α":
    r"$\alpha$", "→": r"$\rightarrow$", "▼": r"$\triangledown$", "–": "--", "−": "$-$", "∞": r"$\infty$",
    "σ": r"$\sigma$", "≤": r"$\le$", "…": r"\ldots{}", "<": "$<$", ">": "$>$", "|": r"\textbar{}", "†": r"$^{\dagger}$",
    "²": "$^2$", "ρ": r"$\rho$", "μ": r"$\mu$", "×": r"$\times$", "τ": r"$\tau$", "χ": r"$\chi$", "\0": "{}",
}  # fmt: skip


def to_latex(table: Table, columns: int | None = None) -> str:
    """Return the table as one float, or several if it has too many rows for a page.

    Raises:
        ResultsError: ``columns`` is not positive.
    """
    if columns is not None and columns < 1:
        raise ResultsError(f"the number of columns side by side must be positive, got {columns}")
    blocks = _blocks(table, columns)
    per_page = max(ROWS_PER_PAGE // len(blocks), 1)
    pages = [table.rows[i : i + per_page] for i in range(0, len(table.rows), per_page)] or [[]]
    floats = []
    for number, rows in enumerate(pages):
        title = table.title if number == 0 else f"{table.title} (continued)"
        lines = [r"\begin{table*}[t]", r"\centering", rf"\caption{{{latex(title)}.}}"]
        lines += [rf"\label{{tab:{_slug(table.title)}}}"] if number == 0 else []
        lines += [r"\footnotesize", r"\setlength{\tabcolsep}{3pt}"]
        for i, block in enumerate(blocks):
            lines += [r"\par\medskip"] if i else []
            lines += _tabular(table, rows, block)
        if number == len(pages) - 1 and table.notes:
            lines += [r"\par\smallskip", r"\begin{minipage}{\linewidth}\scriptsize\raggedright"]
            lines += [latex(" ".join(table.notes)), r"\end{minipage}"]
        floats.append("\n".join([*lines, r"\end{table*}"]))
    return "% needs \\usepackage{booktabs,amssymb}\n" + "\n".join(floats) + "\n"


def _tabular(table: Table, rows: list[Row], block: list[int]) -> list[str]:
    width = len(table.label_names)
    sides = "".join("l" if table.columns[i] in table.left else "c" for i in block)
    lines = [rf"\begin{{tabular}}{{@{{}}{'l' * width}{sides}@{{}}}}", r"\toprule"]
    heads = [_head(table.columns[i], "l" if table.columns[i] in table.left else "c") for i in block]
    lines.append(_ampersands([*map(latex, table.label_names), *heads]))
    for label, texts in table.header:
        fields = [latex(texts[i]) if i < len(texts) else "" for i in block]
        lines.append(_ampersands([latex(label), *[""] * (width - 1), *fields]))
    lines.append(r"\midrule")
    for i, row in enumerate(rows):
        lines += [r"\midrule"] if row.rule and i else []
        lines.append(_ampersands([*map(latex, row.labels), *(_field(row.cells[i]) for i in block)]))
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _field(cell: Cell) -> str:
    text = latex(cell.text)
    if cell.mark == "better":
        text = rf"\textbf{{{text}}}"
    if cell.mark == "worse":
        text = rf"\textit{{{text}}}$^{{\triangledown}}$"
    return rf"\underline{{{text}}}" if cell.best else text


def _head(name: str, side: str) -> str:
    lines = two_lines(name)
    if len(lines) == 1:
        return latex(name)
    stacked = r"\\".join(map(latex, lines))
    return rf"\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}{stacked}\end{{tabular}}"


def two_lines(name: str) -> list[str]:
    """Split a long name where words or capitals begin, so that both parts are about equally long."""
    places = [m.start() for m in re.finditer(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[-_ .])(?=\S)", name)]
    if len(name) <= _SHORT_NAME or not places:
        return [name]
    place = min(places, key=lambda place: abs(2 * place - len(name)))
    return [name[:place].rstrip(), name[place:]]


def _blocks(table: Table, columns: int | None) -> list[list[int]]:
    """Return the columns that stand side by side, block by block: ``columns`` each, or evenly in as few blocks as fit."""
    chosen = [i for i, name in enumerate(table.columns) if not table.paper_columns or name in table.paper_columns]
    if columns is not None:
        return [chosen[i : i + columns] for i in range(0, len(chosen), columns)] or [[]]
    labels = [max([len(name), *(len(row.labels[i]) for row in table.rows)]) for i, name in enumerate(table.label_names)]
    labels[0] = max([labels[0], *(len(label) for label, _ in table.header)])
    available = TEXT_WIDTH - sum(size * _CHARACTER + _BETWEEN for size in labels)
    longest = {
        i: max([*map(len, two_lines(table.columns[i])), *(_length(row.cells[i]) for row in table.rows)]) for i in chosen
    }
    for count in range(1, len(chosen) + 1):
        size = -(-len(chosen) // count)
        blocks = [chosen[i : i + size] for i in range(0, len(chosen), size)]
        if all(sum(longest[i] * _CHARACTER + _BETWEEN for i in block) <= available for block in blocks):
            return blocks
    return [[i] for i in chosen] or [[]]


def _length(cell: Cell) -> int:
    return len(cell.text) + (cell.mark == "worse")


def latex(text: str) -> str:
    """Escape text for LaTeX."""
    parts = re.split(r"\bd_z\b", text.replace("\n", " "))
    return "$d_z$".join("".join(LATEX_SPECIAL.get(char, char) for char in _options(part)) for part in parts)


def _options(text: str) -> str:
    """Keep the two hyphens of an option such as ``--unit`` apart, which TeX would join to a dash."""
    return text.replace("--", "-\0-")


def _slug(title: str) -> str:
    """``Test accuracy (%)`` → ``test-accuracy``: letters that every TeX accepts in a label."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall(r"[a-z0-9]+", plain))


def _ampersands(fields: list[str]) -> str:
    """Return one row; the line break before it would read ``[`` or ``*`` as its option."""
    guard = "{}" if fields[0].startswith(("[", "*")) else ""
    return guard + " & ".join(fields) + r" \\"
