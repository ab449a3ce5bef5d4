"""Sections of a generated page, for scripts that write a page from several sweeps, some of which may be absent."""

from pathlib import Path


def earlier_section(heading: str, page: Path) -> str | None:
    """Return the section with this heading (``## …``) as the page has it now, or None."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    _, found, rest = text.partition(heading + "\n")
    return found + rest.partition("\n## ")[0] if found else None
