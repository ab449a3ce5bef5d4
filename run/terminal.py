"""What a terminal can show; without Unicode, λ, ± and the lines of tables are written in ASCII."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import unicodedata
from typing import Any, TextIO

_HANDLER = "lcat_ascii"
_STDERR = 2
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


class _Output(io.FileIO):
    """Standard output or standard error; what a closed terminal can no longer show is dropped."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # A reader of standard output that leaves (`lcat … | head`) ends the command; messages for nobody end nothing.
            if error.errno != errno.EIO and self.fileno() != _STDERR:
                raise
            return memoryview(data).nbytes


def survive_closed_terminal() -> None:
    """Let work continue when the terminal is closed, although every write to it fails from then on."""
    if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:  # somebody else collects the output
        return
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        stream.flush()
        output = io.BufferedWriter(_Output(stream.fileno(), "wb", closefd=False))
        lasting = io.TextIOWrapper(output, stream.encoding, stream.errors, line_buffering=stream.line_buffering)
        setattr(sys, name, lasting)


def can_show_bar(stream: TextIO) -> bool:
    """Whether it is a terminal of known size; tqdm shows nothing on one of 0 × 0, as containers and CI have them."""
    try:
        return stream.isatty() and 0 not in os.get_terminal_size(stream.fileno())
    except OSError:  # closed in between
        return False
