"""Which package may import which."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Installed name → folder, and what of ours its modules may import at the top.
PACKAGES = {
    "lcat_core": "core",
    "graphgym_lcat.kernels": "graphgym_lcat/kernels",
    "graphgym_lcat.nn": "graphgym_lcat/nn",
    "graphgym_lcat.data": "graphgym_lcat/data",
    "graphgym_lcat.synthetic": "graphgym_lcat/synthetic",
    "graphgym_lcat.gym": "graphgym_lcat/gym",
    "lcat_run": "run",
    "lcat_analysis": "analysis",
    "lcat_benchmarks": "benchmarks",
}
MAY_IMPORT = {
    "lcat_core": set(),
    "graphgym_lcat.kernels": set(),
    "graphgym_lcat.nn": {"graphgym_lcat.kernels"},
    "graphgym_lcat.data": {"graphgym_lcat.kernels"},
    "graphgym_lcat.synthetic": {"graphgym_lcat.data", "graphgym_lcat.kernels", "graphgym_lcat.nn"},
    "graphgym_lcat.gym": {
        "graphgym_lcat.kernels",
        "graphgym_lcat.nn",
        "graphgym_lcat.data",
        "graphgym_lcat.synthetic",
    },
    "lcat_run": set(),
    "lcat_analysis": set(),
    "lcat_benchmarks": {"graphgym_lcat"},
}
#: Parts of lcat_run, and the parts that each may import at the top: commands ← launch ← engines ← sweep.
PARTS_OF_RUN = {"sweep": {"sweep"}, "engines": {"engines", "sweep"}, "commands": {"commands"}}
OURS = ("graphgym_lcat", "lcat_core", "lcat_run", "lcat_analysis", "lcat_benchmarks", "lcat_configs", "lcat_grids")
LIGHT = ("lcat_core", "lcat_run", "lcat_analysis")
HEAVY = ("torch", "torch_geometric", "pandas", "matplotlib", "statsmodels", "scipy", "submitit")


def imports(path, inside_functions):
    """Yield the modules that a file imports; those inside functions only on request."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(tree) if inside_functions else tree.body
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files():
    for package, folder in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield pytest.param(package, path, id=str(path.relative_to(ROOT)))


@pytest.mark.parametrize(("package", "path"), list(files()))
def test_imports_point_one_way(package, path):
    # The command line may import everything, but only inside functions.
    everywhere = package != "lcat_run"
    for name in imports(path, inside_functions=everywhere):
        if name.split(".")[0] not in OURS or f"{name}.".startswith(f"{package}."):
            continue
        allowed = any(f"{name}.".startswith(f"{other}.") for other in {"lcat_core", *MAY_IMPORT[package]})
        registers_itself = name == "graphgym_lcat" and package == "graphgym_lcat.gym"
        assert allowed or registers_itself, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize(("package", "path"), [p for p in files() if p.values[0] in LIGHT])
def test_heavy_packages_are_imported_late_or_not_at_all(package, path):
    heavy = ("torch", "torch_geometric") if package == "lcat_analysis" else HEAVY
    for name in imports(path, inside_functions=package != "lcat_run"):
        assert name.split(".")[0] not in heavy, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("part", PARTS_OF_RUN)
def test_parts_of_run_import_one_way(part):
    for path in sorted((ROOT / "run" / part).rglob("*.py")):
        for name in imports(path, inside_functions=False):
            package, _, rest = name.partition("lcat_run.")
            imported = rest.partition(".")[0]
            if not package and imported in (*PARTS_OF_RUN, "launch", "cli"):
                assert imported in PARTS_OF_RUN[part], f"{path.relative_to(ROOT)} imports {name}"


def test_only_gym_touches_graphgym():
    for package, folder in PACKAGES.items():
        if package in ("graphgym_lcat.gym", "lcat_run", "lcat_benchmarks"):
            continue
        for path in (ROOT / folder).rglob("*.py"):
            assert not any(name.startswith("torch_geometric.graphgym") for name in imports(path, True)), path


@pytest.mark.parametrize(
    "code",
    [
        "from lcat_run.cli import build_parser; build_parser()",
        "from lcat_run.engines.registry import load_engines; load_engines()",
        "import lcat_run.launch",
        "import lcat_analysis",
        "import lcat_core.run_folder",
    ],
)
def test_torch_is_not_loaded_where_it_is_not_needed(code):
    check = f"import sys; {code}; print([m for m in ('torch', 'torch_geometric') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
