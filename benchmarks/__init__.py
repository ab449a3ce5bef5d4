"""Our layers beside their peers, in one process; and how far one machine goes."""
