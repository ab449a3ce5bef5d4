"""Sections of a generated page, for scripts that make a page from several sweeps of which some may be gone."""

from pathlib import Path


def earlier_section(heading: str, page: Path) -> str | None:
    """The section with this heading (``## …``) as the page has it; None if it has none."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    _, found, rest = text.partition(heading + "\n")
    return found + rest.partition("\n## ")[0] if found else None
