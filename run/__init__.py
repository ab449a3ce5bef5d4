"""The ``lcat`` command and the sweeps. Imports torch only inside the commands that train."""
