"""Optional packages: which extra of this package installs each, and the message if one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from lcat_core.errors import MissingPackage

#: Importable name → (extra, what needs it).
_EXTRAS = {
    "jinja2": ("analysis", "the analysis"),
    "matplotlib": ("analysis", "the analysis"),
    "statsmodels": ("analysis", "the analysis"),
    "pyarrow": ("parquet", "a .parquet file"),
    "submitit": ("slurm", "--engine slurm"),
    "ogb": ("ogb", "ogbn-*"),
    "tensorboardX": ("tensorboard", "tensorboard_each_run"),
}


def missing_package(name: str | None) -> MissingPackage | None:
    """Return the error for an optional package that is not installed; None for a module that is not one of them."""
    package = (name or "").partition(".")[0]
    if package not in _EXTRAS:
        return None
    extra, user = _EXTRAS[package]
    return MissingPackage(f"{package} is not installed; {user} needs: pip install 'graphgym-lcat[{extra}]'")


def require(name: str) -> None:
    """Raise :class:`~lcat_core.errors.MissingPackage` now, before anything is written, if the package is not installed."""
    try:
        found = find_spec(name) is not None
    except ValueError:  # a module that is already imported without a spec
        found = True
    error = None if found else missing_package(name)
    if error is not None:
        raise error
