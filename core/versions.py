"""The versions that results are computed with."""

from __future__ import annotations

import platform
from importlib import metadata

_PACKAGES = ("graphgym-lcat", "torch", "torch-geometric", "numpy")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that the numbers depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
