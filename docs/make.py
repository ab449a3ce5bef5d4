"""Write every generated page and figure of the documentation. Nothing is trained: results come from docs/results.

python docs/make.py
"""

from __future__ import annotations

from pathlib import Path

import accuracy_table
import reference
import reproduction
import robustness
import trend

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
COMMAND = "python docs/make.py"


def pages(images: Path | None = None) -> dict[Path, str]:
    """Return the text of every generated page by path; with ``images``, also draw the figures into that folder."""
    readme, grids, layer = DOCS.parent / "README.md", DOCS / "grids.md", DOCS / "layer.md"
    return {
        readme: accuracy_table.fill(readme.read_text(encoding="utf-8")),
        grids: reference.grids_page(grids.read_text(encoding="utf-8")),
        layer: reference.layer_page(layer.read_text(encoding="utf-8")),
        DOCS / "configuration.md": reference.configuration(),
        DOCS / "reproduction.md": reproduction.page(images=images),
        DOCS / "robustness.md": robustness.page(images=images),
        DOCS / "trend.md": trend.page(images=images),
    }


def main() -> None:
    for path, text in pages(IMAGES).items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
