"""Optional packages: what needs each, and the message if one is missing, which works in a clone too."""

from __future__ import annotations

from importlib.util import find_spec

from lcat_core.errors import MissingPackage

_ANALYSIS = "jinja2 matplotlib statsmodels"
#: Importable name → (packages to install, what needs them).
_PACKAGES = {
    "jinja2": (_ANALYSIS, "the analysis"),
    "matplotlib": (_ANALYSIS, "the analysis"),
    "statsmodels": (_ANALYSIS, "the analysis"),
    "pyarrow": ("pyarrow", "a .parquet file"),
    "submitit": ("submitit", "--engine slurm"),
    "ogb": ("ogb", "ogbn-*"),
    "tensorboardX": ("tensorboardX", "tensorboard_each_run"),
}


def missing_package(name: str | None) -> MissingPackage | None:
    """Return the error for an optional package that is not installed; None for a module that is not one of them."""
    package = (name or "").partition(".")[0]
    if package not in _PACKAGES:
        return None
    packages, user = _PACKAGES[package]
    return MissingPackage(f"{package} is not installed; {user} needs: pip install {packages}")


def require(name: str) -> None:
    """Raise :class:`~lcat_core.errors.MissingPackage` now, before anything is written, if the package is not installed."""
    try:
        found = find_spec(name) is not None
    except ValueError:  # a module that is already imported without a spec
        found = True
    error = None if found else missing_package(name)
    if error is not None:
        raise error
