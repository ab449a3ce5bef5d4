"""Find configurations and grids: a path first, then the name of a file that comes with the package."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from lcat_core.errors import UserError, did_you_mean
from lcat_core.strict_yaml import shortened


def find_yaml(name: str, package: str) -> Path:
    """Return the path ``name``, or that of ``name`` or ``name.yaml`` in ``package`` (``lcat_configs`` or ``lcat_grids``).

    Raises:
        UserError: There is neither.
    """
    if os.path.isfile(name):  # unlike Path.is_file, not an error for a name that no file can have
        return Path(name)
    folder = Path(str(files(package)))
    packaged = {path.name: path for path in sorted(folder.glob("*.yaml"))}
    for candidate in (name, f"{name}.yaml"):
        if candidate in packaged:
            return packaged[candidate]
    stems = [path.stem for path in packaged.values()]
    hint = did_you_mean(Path(name).stem, stems) or "."
    raise UserError(f"{shortened(name)} is neither a file nor an included name{hint} Known: {', '.join(stems)}")
