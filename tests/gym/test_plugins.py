"""Modules of the user that `lcat.plugins` names."""

import subprocess
import sys
import textwrap

import pytest
import torch
from torch_geometric.graphgym.register import layer_dict

from graphgym_lcat.gym.plugins import import_plugins
from graphgym_lcat.gym.settings import check_settings, default_settings, read_settings
from graphgym_lcat.nn import LCATConv
from graphgym_lcat.nn.scores import SCORES
from lcat_core.errors import SettingsError


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """Writes a module into the working directory; what it did to the import system is undone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")

    return write


def test_a_module_of_the_working_directory_is_imported_once(write_module):
    write_module("counted", "import sys\nsys.counted = getattr(sys, 'counted', 0) + 1\n")
    import_plugins(["counted"])
    import_plugins(["counted"])
    assert sys.counted == 1
    del sys.counted


def test_a_name_that_is_not_a_module_is_reported_with_the_folder(write_module, tmp_path):
    with pytest.raises(SettingsError, match=f"'absent', which is neither a module in {tmp_path} nor an installed one"):
        import_plugins(["absent"])


def test_a_file_name_gets_a_hint(write_module):
    write_module("mine", "")
    with pytest.raises(SettingsError, match=r"without \.py"):
        import_plugins(["mine.py"])


def test_a_module_that_needs_another_one_says_which(write_module):
    write_module("needy", "import certainly_not_installed\n")
    with pytest.raises(SettingsError, match="'needy', which needs 'certainly_not_installed'"):
        import_plugins(["needy"])


def test_a_module_that_fails_says_how(write_module):
    write_module("failing", "1 / 0\n")
    with pytest.raises(SettingsError, match="'failing', which fails on import: ZeroDivisionError: division by zero"):
        import_plugins(["failing"])


def test_settings_name_the_key_and_the_file(write_module, tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("lcat: {plugins: [absent]}\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=rf"`lcat.plugins` names 'absent'.*\(in {path}\)") as raised:
        read_settings(path)
    assert raised.value.key == "lcat.plugins"


@pytest.mark.parametrize("value", ["my_dataset", [1]])
def test_a_value_that_is_not_a_list_of_modules_is_refused(value):
    with pytest.raises(SettingsError, match=r"`lcat.plugins` must be a list"):
        check_settings({"lcat.plugins": value})


def test_a_plugin_brings_keys_a_layer_and_a_dataset_to_a_run(write_module, tmp_path):
    write_module(
        "mine",
        """
        import torch
        from torch_geometric.data import Data
        from torch_geometric.graphgym.register import register_config, register_layer, register_loader
        from torch_geometric.graphgym.config import cfg
        from yacs.config import CfgNode
        from graphgym_lcat.gym.layers import LCATConvLayer

        @register_config("mine")
        def add_keys(cfg):
            cfg.mine = CfgNode({"nodes": 20})

        register_layer("minelayer", LCATConvLayer)

        @register_loader("mine")
        def load(format, name, folder):
            n = cfg.mine.nodes
            return [Data(x=torch.eye(n), y=torch.arange(n) % 2, edge_index=torch.arange(n).repeat(2, 1))]
        """,
    )
    (tmp_path / "run.yaml").write_text(
        "lcat: {plugins: [mine]}\nmine: {nodes: 30}\ndataset: {name: Ring}\ngnn: {layer_type: minelayer}\n"
        "model: {type: lcat}\noptim: {max_epoch: 2}\n",
        encoding="utf-8",
    )
    # In a process of its own: what a plugin registers stays.
    command = [sys.executable, "-m", "lcat_run.cli", "run", "--cfg", "run.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "on Ring, seed 0: test accuracy" in done.stdout
    (result,) = tmp_path.glob("results/run/runs/*/result.json")
    assert '"nodes": 30' in result.read_text(encoding="utf-8")
    assert "mine.nodes" not in default_settings()


def test_a_layer_of_a_plugin_is_not_ours_because_of_its_name(write_module, monkeypatch):
    monkeypatch.setitem(layer_dict, "category_conv", torch.nn.Module)
    monkeypatch.setitem(layer_dict, "lcatalogue", torch.nn.Module)
    for name in ("category_conv", "lcatalogue"):
        settings = {"gnn.layer_type": name, "gnn.dim_inner": 10, "lcat.heads": 4, "lcat.lambda1": 0.5}
        settings["dataset.split_mode"] = "random"
        assert check_settings(settings) == settings


def test_a_score_is_named_by_its_module(write_module):
    write_module("my_scores", "def dot(u, v):\n    return (u * v).sum(dim=-1)\n")
    try:
        assert check_settings({"lcat.score": "my_scores.dot"})["lcat.score"] == "my_scores.dot"
        conv = LCATConv(4, 2, heads=2, score="my_scores.dot")
        assert conv(torch.ones(3, 4), torch.tensor([[0, 1], [1, 2]])).shape == (3, 4)
    finally:
        SCORES.pop("my_scores.dot", None)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ("my_scores.dott", "`lcat.score` names 'my_scores.dott', but my_scores has no 'dott'; did you mean 'dot'"),
        ("other.dot", "`lcat.score` names 'other', which is neither a module in"),
        ("my_scores.number", "`lcat.score` names 'my_scores.number': `score` must be a function"),
    ],
)
def test_a_score_that_a_module_does_not_have_is_named(write_module, score, message):
    write_module("my_scores", "number = 3\ndef dot(u, v):\n    return (u * v).sum(dim=-1)\n")
    with pytest.raises(SettingsError, match=message):
        check_settings({"lcat.score": score})
