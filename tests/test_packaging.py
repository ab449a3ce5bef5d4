"""The wheel has every file, and works from any folder once installed into an empty environment."""

import configparser
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


def installed_packages() -> dict[str, str]:
    """Installed name → folder, from setup.cfg."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    pairs = (line.split("=") for line in setup["options"]["package_dir"].strip().splitlines())
    return {name.strip(): folder.strip() for name, folder in pairs}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build from a copy of the tracked files, so that nothing else in the working tree can help."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    names = tracked.stdout.split("\0")[:-1] if tracked.returncode == 0 else []
    if not names:
        pytest.skip("not a git checkout")
    for name in names:
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            path.write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", target, source],
        check=True,
        capture_output=True,
        env={**os.environ, "CFLAGS": "-O0"},  # optimising the kernels takes most of the time and does not matter here
    )
    return next(target.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """Create an environment with the wheel; it shares the dependencies of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    site = Path(
        subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        ).strip()
    )
    dependencies = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "dependencies.pth").write_text("\n".join([sysconfig.get_path("purelib"), *dependencies]))
    # Before the dependencies on the path, so that the editable installation of this environment is not found first.
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel],
        check=True,
        capture_output=True,
    )
    return folder


def run(environment, code, cwd):
    done = subprocess.run([environment / "bin" / "python", "-c", code], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_wheel_has_every_package_and_file(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for name in (
        "graphgym_lcat/nn/lcat_conv.py",
        "lcat_run/cli.py",
        "lcat_configs/real.yaml",
        "lcat_analysis/__init__.py",
        "lcat_core/py.typed",
    ):
        assert name in names
    for folder, package in (("grids", "lcat_grids"), ("configs", "lcat_configs")):
        for path in (ROOT / folder).glob("*.yaml"):
            assert f"{package}/{path.name}" in names
    files = {
        f"{package}/{path.relative_to(ROOT / folder)}"
        for package, folder in installed_packages().items()
        for path in (*(ROOT / folder).rglob("*.py"), *(ROOT / folder).glob("py.typed"))
    }
    assert sorted(files - set(names)) == []


def test_import_from_another_folder(environment, tmp_path):
    code = "import graphgym_lcat; print(graphgym_lcat.__file__, graphgym_lcat.nn.LCATConv(4, 2))"
    output = run(environment, code, tmp_path)
    assert str(environment) in output
    assert "LCATConv(4, 2, heads=1" in output


def test_command_finds_packaged_configurations(environment, tmp_path):
    code = (
        "from lcat_run.cli import main; import lcat_run; print(lcat_run.__file__); "
        "main('run --cfg real --threads 1 dataset.name KarateClub optim.max_epoch 2'.split())"
    )
    output = run(environment, code, tmp_path)
    assert str(environment) in output
    assert "lcat on KarateClub, seed 0: test accuracy" in output
    assert list(tmp_path.glob("results/real/runs/lcat-KarateClub-s0-*/result.json"))
