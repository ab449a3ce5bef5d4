"""Our layers and their peers, measured in one process, and how far one machine goes."""
