"""Engines: what executes the runs of a sweep, on this machine or elsewhere.

:mod:`lcat_run.engines.engine` is the contract. ``local`` and ``slurm`` are included; other packages add theirs through the
entry point group ``lcat.engines``.
"""
