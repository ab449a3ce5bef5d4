"""The exception that only this package needs; all others come from ``lcat_core.errors``."""

from __future__ import annotations

from lcat_core.errors import ResultsError


class NotRecorded(ResultsError):
    """The results do not contain what a figure shows; a report omits the figure, whereas it names an unreadable file."""
