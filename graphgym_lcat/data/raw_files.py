"""Checks raw dataset files before PyG opens them, because some of them could run code.

PyG reads Planetoid's ``ind.*`` files with ``pickle`` and several ``.npz`` files with ``allow_pickle=True``. A pickle can name any
function to call, so each file is first read here by an unpickler that knows arrays, sparse matrices and plain containers, and
nothing else.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy.sparse import csr_matrix

from lcat_core.errors import DatasetError

#: What the files of Planetoid are made of, under its present names and those of older NumPy and SciPy.
_HARMLESS = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
    *((f"scipy.sparse.{module}", "csr_matrix") for module in ("csr", "_csr")),
    ("collections", "defaultdict"),
    *((builtins, name) for builtins in ("builtins", "__builtin__") for name in ("list", "dict", "set", "object")),
    *((module, "_reconstructor") for module in ("copyreg", "copy_reg")),
    ("_codecs", "encode"),
}


class _HarmlessUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _HARMLESS:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, which graph data does not need")
        if name == "csr_matrix":
            return csr_matrix  # the old name of its module is deprecated
        return super().find_class(module, name)


def check_raw_file(path: Path) -> None:
    """Raise :class:`DatasetError` if reading the file could run code; other kinds of damage are left to the reader."""
    try:
        with open(path, "rb") as file:
            if path.suffix == ".npz":
                _check_arrays(file)
            elif path.name.startswith("ind.") and not path.name.endswith(".test.index"):
                _check_pickle(file)
    except FileNotFoundError:
        return
    except pickle.UnpicklingError as error:
        raise DatasetError(f"{path} was not opened, because it could run code: {error}") from error
    except Exception as error:  # damaged bytes lead the unpickler and zipfile to errors of every kind
        raise DatasetError(
            f"{path} is damaged ({type(error).__name__}: {error}); delete it and fetch it again"
        ) from error


def _check_pickle(file: BinaryIO) -> None:
    content = file.read()
    for opcode, argument, _ in pickletools.genops(content):
        # The unpickler allocates memory for every smaller number as well.
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and isinstance(argument, int) and argument > len(content):
            raise ValueError(f"it remembers an object under the number {argument}")
    _HarmlessUnpickler(io.BytesIO(content), encoding="latin1").load()


def _check_arrays(file: BinaryIO) -> None:
    try:
        with np.load(file, allow_pickle=False) as archive:
            for name in archive.files:
                archive[name]
    except ValueError as error:
        if "allow_pickle" not in str(error) and "Object arrays" not in str(error):
            raise
        raise pickle.UnpicklingError("it contains pickled objects where arrays of numbers are expected") from error
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from error
