"""`load_run`: a trained network, back in Python."""

import copy
import io

import pytest
import torch
from torch_geometric.graphgym.config import cfg

from graphgym_lcat.gym.runner import Run, execute
from graphgym_lcat.gym.trained import load_run
from lcat_core.errors import ResultsError
from lcat_run import cli


def test_the_network_scores_what_the_run_says(tmp_path, small):
    run = Run(tmp_path / "run", "lcat", {**small, "lcat.save_model": True, "optim.max_epoch": 12}, params={})
    result = execute(run)
    cfg.lcat.heads = 7  # whatever was configured since
    model, data = load_run(run.run_dir)
    assert not model.training
    with torch.no_grad():
        outputs, _ = model(copy.copy(data))
    for split in ("train", "val", "test"):
        nodes = data[f"{split}_mask"]
        accuracy = (outputs[nodes].argmax(dim=1) == data.y[nodes]).float().mean().item()
        assert accuracy == pytest.approx(result[split]["accuracy"])
    assert [layer.lambdas() for layer in model.modules() if hasattr(layer, "lambdas") and hasattr(layer, "heads")] == [
        tuple(pair) for pair in result["lambdas"]
    ]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(flipped(path.read_bytes())), "model.pt is damaged .wrong checksum of"),
        (lambda path: path.write_bytes(path.read_bytes()[:-50]), "model.pt is damaged"),
        (lambda path: torch.save([1, 2], path), "model.pt does not fit the network of its run"),
        (lambda path: torch.save({"weight": torch.zeros(3)}, path), "model.pt does not fit the network of its run"),
    ],
)
def test_damaged_weights_are_refused(tmp_path, small, damage, message):
    run = Run(tmp_path / "run", "lcat", {**small, "lcat.save_model": True}, params={})
    execute(run)
    damage(run.run_dir / "model.pt")
    with pytest.raises(ResultsError, match=message):
        load_run(run.run_dir)


def flipped(content):
    """One wrong bit in the middle of the largest tensor."""
    weights = max(torch.load(io.BytesIO(content), weights_only=True).values(), key=torch.numel).numpy().tobytes()
    place = content.index(weights) + len(weights) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def test_a_run_without_weights_says_how_to_get_them(tmp_path, small):
    run = Run(tmp_path / "run", "lcat", small, params={})
    execute(run)
    with pytest.raises(ResultsError, match=r"has no model\.pt: repeat the run with `lcat\.save_model true`"):
        load_run(run.run_dir)


def test_a_folder_that_is_not_a_finished_run_is_refused(tmp_path):
    with pytest.raises(ResultsError, match="is not a finished run"):
        load_run(tmp_path)


def test_the_attention_of_every_layer_sums_to_one_per_receiver(tmp_path, small):
    run = Run(tmp_path / "run", "lcat", {**small, "lcat.save_model": True}, params={})
    result = execute(run)
    trained = load_run(run.run_dir)
    layers = trained.attention()
    assert [[layer.lambda1, layer.lambda2] for layer in layers] == result["lambdas"]
    for layer in layers:
        assert layer.alpha.shape == (layer.edge_index.size(1), 2)
        sums = torch.zeros(trained.data.num_nodes, 2).index_add_(0, layer.edge_index[1], layer.alpha)
        torch.testing.assert_close(sums, torch.ones_like(sums))
    outputs, _ = trained.model(copy.copy(trained.data))  # the hooks are gone, and the network still works
    assert outputs.size(0) == trained.data.num_nodes


def test_a_network_without_attention_says_so(tmp_path, small):
    run = Run(tmp_path / "run", "dense", {**small, "gnn.layer_type": "linear", "lcat.save_model": True}, params={})
    execute(run)
    with pytest.raises(ResultsError, match="no layer of the types lcatconv and catconv"):
        load_run(run.run_dir).attention()


def test_the_attention_of_a_run_is_drawn(tmp_path, small, capsys):
    run = Run(tmp_path / "run", "lcat", {**small, "lcat.save_model": True}, params={})
    execute(run)
    assert cli.main(["plot", str(run.run_dir), "attention", "-o", str(tmp_path / "attention.svg")]) == 0
    assert (tmp_path / "attention.svg").stat().st_size > 1000
    assert cli.main(["plot", str(tmp_path), "attention"]) == 2
    assert "is not a finished run" in capsys.readouterr().err
