"""One module per command of ``lcat``.

Each module has ``HELP`` (one line), ``EXAMPLES`` (shown by ``--help``), ``configure(parser)`` and ``execute(args)``, which
returns an exit status or None. Errors that users can act on are raised as ``LcatError`` and reported by ``cli.py``. Modules
import heavy packages inside functions, so that ``lcat --help`` answers at once.
"""
