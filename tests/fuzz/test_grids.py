"""Mutated grids and configurations: a plan, or one clear message."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
import yaml
from fake_worker import DEFAULTS
from fuzzing import ODD_VALUES, damage, mutate

from lcat_core.errors import LcatError
from lcat_run.sweep.grid import read_grid
from lcat_run.sweep.plan import make_plan

CASES = Path(__file__).with_name("cases")
GRID_WORDS = [
    "gcn",
    "lcat",
    "Cora",
    "model",
    "seed",
    "optim.base_lr",
    "dataset.name",
    "argmax",
    "accuracy",
    "lcat.heads",
]


class AnySettings:
    """A checker that accepts everything, so that planning sees every value."""

    def describe(self, base):
        return dict(DEFAULTS), {}

    def check(self, settings):
        return None


def texts(package: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(Path(str(resources.files(package))).glob("*.yaml"))]


def plan(path: Path) -> None:
    """Plan a sweep; the only error that may come is one short message."""
    try:
        make_plan(read_grid(path), AnySettings(), max_runs=500)
    except LcatError as error:
        assert 0 < len(str(error)) < 20_000 and error.exit_status == 2


def write_mutation(path: Path, originals: list[bytes], values, rng) -> None:
    original = rng.choice(originals)
    if rng.random() < 0.5:
        path.write_bytes(damage(original, rng))
        return
    tree = mutate(yaml.safe_load(original), rng, [*ODD_VALUES, *values])
    path.write_text(yaml.dump(tree, allow_unicode=True), encoding="utf-8", errors="surrogatepass")


def attempt_grid(folder):
    originals = texts("lcat_grids")
    path = folder / "grid.yaml"

    def attempt(rng):
        write_mutation(path, originals, GRID_WORDS, rng)
        plan(path)

    return attempt


def attempt_configuration(folder):
    from graphgym_lcat.gym.settings import check_settings, read_settings

    originals = texts("lcat_configs")
    path = folder / "config.yaml"

    def attempt(rng):
        write_mutation(path, originals, ["lcatconv", "auto", "relu", 0.5], rng)
        if b"plugins" in path.read_bytes():
            return  # would import the modules that it names
        try:
            check_settings(read_settings(path))
        except LcatError as error:
            assert 0 < len(str(error)) < 20_000 and error.exit_status == 2

    return attempt


def test_grids(fuzzer):
    fuzzer.run("grids", 400, attempt_grid(fuzzer.folder))


def test_configurations(fuzzer):
    fuzzer.run("configurations", 300, attempt_configuration(fuzzer.folder))


@pytest.mark.campaign
def test_many_grids(fuzzer):
    fuzzer.run("grids", 0, attempt_grid(fuzzer.folder))


@pytest.mark.campaign
def test_many_configurations(fuzzer):
    fuzzer.run("configurations", 0, attempt_configuration(fuzzer.folder))


@pytest.mark.parametrize("path", sorted((CASES / "grids").glob("*")), ids=lambda path: path.name)
def test_what_once_crashed_a_grid_is_a_message_now(path):
    plan(path)
