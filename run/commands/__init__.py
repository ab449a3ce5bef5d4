"""One module a subcommand of `lcat`.

Each module has ``HELP`` (one line), ``EXAMPLES`` (shown by ``--help``), ``configure(parser)`` and ``execute(args)``, which
returns an exit status or None. Modules import heavy packages inside ``execute``, so that ``lcat --help`` answers at once.
"""
