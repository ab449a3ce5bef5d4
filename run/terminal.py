"""What a terminal can show; without Unicode, λ, ± and the lines of tables are written in ASCII."""

from __future__ import annotations

import codecs
import os
import sys
import unicodedata
from typing import TextIO

_HANDLER = "lcat_ascii"
_SPELLED = {
    "λ": "lambda",
    "±": "+-",
    "−": "-",
    "–": "-",
    "─": "-",
    "┈": "-",
    "▼": "v",
    "×": "x",
    "→": "->",
    "…": "...",
    "·": "*",
    "≤": "<=",
    "α": "alpha",
    "σ": "sigma",
    "μ": "mu",
    "‖": "|",
    "█": "#",
}


def spell(error: UnicodeError) -> tuple[str, int]:
    """Error handler for codecs: write characters that the encoding lacks in ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_spell_character, error.object[error.start : error.end])), error.end


def _spell_character(character: str) -> str:
    plain = _SPELLED.get(character) or unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return plain or "?"


def write_any_text() -> None:
    """Let standard output and standard error accept every character, whatever their encoding."""
    codecs.register_error(_HANDLER, spell)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and stream.errors in ("strict", "backslashreplace", "surrogateescape"):
            stream.reconfigure(errors=_HANDLER)


def can_show_bar(stream: TextIO) -> bool:
    """Whether it is a terminal of known size; tqdm shows nothing on one of 0 × 0, as containers and CI have them."""
    return stream.isatty() and 0 not in os.get_terminal_size(stream.fileno())
