"""Writes what the documentation takes from the code: docs/configuration.md, and the list of grids in docs/grids.md.

python docs/reference.py
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import yaml

from graphgym_lcat.gym.config import KEYS, Key

DOCS = Path(__file__).parent
COMMAND = "python docs/reference.py"
GRIDS_BEGIN, GRIDS_END = f"<!-- made by: {COMMAND} -->", "<!-- end -->"

INTRODUCTION = f"""\
# Configuration

<!-- made by: {COMMAND} -->

Importing `graphgym_lcat` adds these keys to GraphGym's configuration. They are set as any other: in a YAML file, at the
end of a command (`lcat run --cfg real.yaml dataset.name Cora lcat.heads 8`), or in a [grid](grids.md). A key that does not
exist, or a value out of its range, is refused before anything starts, with the nearest right name. GraphGym's own keys
(`gnn.*`, `optim.*`, `dataset.*`, …) keep their meaning and defaults; [configs/real.yaml](../configs/real.yaml) sets those of
the paper.
"""
GROUPS = {
    "lcat": "The layer, its training and what a run writes.",
    "dataset": "Beside GraphGym's own `dataset.*`; `dataset.format: lcat` chooses our loader.",
    "block_model": "A generated graph, `dataset.name: BlockModel`.",
    "csbm": "The contextual stochastic block model, `dataset.name: csbm`, and the [synthetic experiments](synthetic.md), "
    "`lcat.loop: csbm`.",
}


def configuration() -> str:
    """The page of all keys, by group."""
    groups: dict[str, list[Key]] = {}
    for key in KEYS:
        groups.setdefault(key.name.split(".")[0], []).append(key)
    parts = [INTRODUCTION]
    for group, keys in groups.items():
        lead = f"{GROUPS[group]}\n\n" if group in GROUPS else ""
        rows = "\n".join(_key_row(key) for key in keys)
        parts.append(f"## {group}\n\n{lead}| key | default | may be | meaning |\n|---|---|---|---|\n{rows}\n")
    return "\n".join(parts)


def grids_page(text: str) -> str:
    """docs/grids.md with its list of grids as they are."""
    rows = "\n".join(_grid_row(path) for path in sorted(Path(str(resources.files("lcat_grids"))).glob("*.yaml")))
    table = f"{GRIDS_BEGIN}\n| grid | what it is |\n|---|---|\n{rows}\n{GRIDS_END}"
    begin, end = text.index(GRIDS_BEGIN), text.index(GRIDS_END) + len(GRIDS_END)
    return text[:begin] + table + text[end:]


def _key_row(key: Key) -> str:
    default = yaml.safe_dump(key.default, default_flow_style=True, allow_unicode=True).removesuffix("...\n").strip()
    default = f"`{default}`" if key.default != "" else "empty"
    return f"| `{key.name}` | {default} | {key.range.text} | {key.meaning} |"


def _grid_row(path: Path) -> str:
    """The comment that a grid begins with."""
    comment = re.match(r"(?:#.*\n)+", path.read_text(encoding="utf-8"))
    words = comment[0].replace("#", " ").split() if comment else []
    return f"| [`{path.stem}`](../grids/{path.name}) | {' '.join(words)} |"


def main() -> None:
    (DOCS / "configuration.md").write_text(configuration(), encoding="utf-8")
    grids = DOCS / "grids.md"
    grids.write_text(grids_page(grids.read_text(encoding="utf-8")), encoding="utf-8")
    print("wrote docs/configuration.md and docs/grids.md")


if __name__ == "__main__":
    main()
