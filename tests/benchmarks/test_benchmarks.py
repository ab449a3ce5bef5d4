"""The benchmarks measure what they claim to, on graphs small enough for a test."""

import json
from pathlib import Path

import pytest
import torch

from lcat_benchmarks import (
    arxiv,
    arxiv_process,
    charts,
    contenders,
    epochs,
    graphs,
    layers,
    measure,
    on_device,
    roofline,
    sampling,
    scale,
)
from lcat_run.cli import main

pytestmark = pytest.mark.slow

TINY = graphs.Size("tiny", 60, 400)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(graphs.SIZES, "cora", TINY)


@pytest.fixture(scope="module")
def result():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(graphs.SIZES, "cora", TINY)
        return layers.measure_layers(["cora"], [(2, 8)], [1], repeats=2, budget=60.0)


def test_every_contender_is_measured_as_often_as_asked(result):
    names = [row["name"] for row in result["measurements"]]
    assert names == [contender.name for contender in contenders.available()]
    assert all(len(row["seconds"]) == 2 and min(row["seconds"]) > 0 for row in result["measurements"])


def test_ratios_are_multiples_of_the_floor(result):
    floor = next(row for row in result["measurements"] if row["name"] == contenders.FLOOR)
    assert floor["times_floor"] == 1
    for row in result["measurements"]:
        assert row["times_floor"] == min(row["seconds"]) / min(floor["seconds"])


def test_results_are_json_and_have_a_table_and_a_chart(result):
    assert json.loads(json.dumps(result)) == result
    table = layers.text_table(result)
    assert "60 nodes, 400 edges; 16 → 2 heads of 8; 1 thread" in table
    assert all(row["name"] in table for row in result["measurements"])
    (axis,) = charts.layer_chart(result).axes
    assert [text.get_text() for text in axis.get_yticklabels()] == [row["name"] for row in result["measurements"]]


def test_our_contenders_compute_the_same_on_both_paths(tiny):
    graph = graphs.load_graph("cora")
    x = torch.randn(60, 16)
    by_name = {contender.name: contender for contender in contenders.available()}
    for name in ("lcat", "lcatv2"):
        outs = []
        for variant in (name, f"{name}, torch path"):
            torch.manual_seed(0)
            outs.append(by_name[variant].build(graph, 2, 8)(x))
        torch.testing.assert_close(*outs)


def test_the_floor_is_a_sparse_product(tiny):
    graph = graphs.load_graph("cora")
    floor = next(c for c in contenders.available() if c.name == contenders.FLOOR)
    torch.manual_seed(0)
    layer = floor.build(graph, 2, 8)
    torch.manual_seed(0)
    linear = torch.nn.Linear(16, 16)
    x = torch.randn(60, 16, requires_grad=True)
    src, dst = graph.edge_index
    expected = torch.zeros(60, 16).index_add(0, dst, linear(x)[src])
    out = layer(x)
    torch.testing.assert_close(out, expected)
    direction = torch.randn(60, 16)
    torch.testing.assert_close(
        *(torch.autograd.grad(y, x, direction, retain_graph=True)[0] for y in (out, expected)), rtol=1e-4, atol=1e-5
    )


def test_generated_graphs_are_undirected_and_skewed():
    edge_index = graphs.skewed_graph(1000, 20_000)
    assert edge_index.shape == (2, 20_000)
    backward = edge_index.flip(0)
    keys = [torch.sort(e[0] * 1000 + e[1]).values for e in (edge_index, backward)]
    assert torch.equal(*keys)
    degrees = torch.bincount(edge_index[1], minlength=1000)
    assert degrees.max() > 5 * degrees.float().mean()


def test_a_slow_step_is_not_repeated_beyond_its_budget():
    calls = []
    seconds = measure.interleaved_seconds({"a": lambda: calls.append(1)}, 10, budget=0.0, after_each=lambda: None)
    assert len(calls) == len(seconds["a"]) == measure.MIN_REPEATS


def test_peak_memory_counts_what_a_step_allocates():
    def allocate():
        torch.ones(30_000_000)

    peak = measure.peak_bytes(allocate)
    if peak is None:
        pytest.skip("this system does not report the peak memory of a process")
    assert 100e6 < peak < 180e6


def test_the_command_writes_json_and_charts(tiny, tmp_path, capsys):
    arguments = ["--graphs", "cora", "--shapes", "1x8", "--threads", "1", "--repeats", "1", "-o", str(tmp_path)]
    assert main(["bench", *arguments]) == 0
    assert "lcatv2" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["layers.json", "layers.png", "layers.svg"]
    assert json.loads((tmp_path / "layers.json").read_text())["kind"] == "layers"


def test_a_wrong_shape_is_an_error(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "--shapes", "8"])
    assert stop.value.code == 2
    assert "heads x channels, for example 4x8, got '8'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("subject", "own", "others"),
    [
        ("layers", "--shapes", "--max-edges"),
        ("adjacency", "--shapes", "--heads"),
        ("scale", "--max-edges", "--shapes"),
        ("epochs", "--datasets", "--memory"),
        ("arxiv", "--heads", "--graphs"),
    ],
)
def test_every_subject_has_only_its_own_options(subject, own, others, capsys):
    with pytest.raises(SystemExit):
        main(["bench", subject, "--help"])
    shown = capsys.readouterr().out
    assert own in shown
    assert others not in shown


def test_bench_help_lists_the_subjects(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(
        f"\n    {subject}" in shown for subject in ("layers", "adjacency", "scale", "epochs", "arxiv", "sampling")
    )


def test_the_scale_run_stops_a_layer_at_the_limit_of_memory(monkeypatch):
    monkeypatch.setattr(scale, "EDGES", (1_000, 400_000))
    result = scale.measure_scale(400_000, memory_gib=1.3, threads=1)
    outcomes = [(row["name"], row["edges"], row["outcome"]) for row in result["measurements"]]
    assert outcomes == [
        ("lcat", 1_000, "done"),
        ("lcat", 400_000, "done"),
        ("PyG GATConv", 1_000, "done"),
        ("PyG GATConv", 400_000, "out of memory"),
    ]
    assert "out of memory (limit 1.3 GiB)" in scale.text_table(result)
    time_axis, memory_axis = charts.scale_chart(result).axes
    assert len(time_axis.lines) == 2
    assert "out of memory" in [text.get_text() for text in memory_axis.texts]


def test_the_layers_on_the_attention_adjacency_have_their_ratios(tiny, tmp_path, capsys):
    arguments = ["--graphs", "cora", "--shapes", "2x8", "--threads", "1", "--repeats", "1", "-o", str(tmp_path)]
    assert main(["bench", "adjacency", *arguments]) == 0
    seconds = {
        row["name"]: row["seconds"][0] for row in json.loads((tmp_path / "adjacency.json").read_text())["measurements"]
    }
    expected = seconds["lcat GIN"] / (seconds["PyG GINConv"] + seconds["lcat"])
    assert capsys.readouterr().out.splitlines()[-3].endswith(f"{expected:.2f}")


def test_epochs_are_measured_against_stock_graphgym(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(epochs, "ROUNDS", 1)
    arguments = ["--datasets", "KarateClub", "--epochs", "3", "--threads", "1", "-o", str(tmp_path)]
    assert main(["bench", "epochs", *arguments]) == 0
    ours, stock = json.loads((tmp_path / "epochs.json").read_text())["measurements"]
    assert (ours["flow"], stock["flow"]) == ("ours", "stock")
    assert stock["times_ours"] == stock["seconds"] / ours["seconds"]
    assert all(len(part) == 3 for row in (ours, stock) for part in row["epochs"])
    assert "GraphGym, GATConv" in capsys.readouterr().out


def test_an_unknown_dataset_is_an_error(capsys):
    assert main(["bench", "epochs", "--datasets", "Korra"]) == 2
    assert "unknown dataset: 'Korra'; did you mean 'Cora'? Known: " in capsys.readouterr().err


def test_an_epoch_of_ours_and_of_pyg_is_measured_in_one_network(tiny, monkeypatch):
    def in_this_process(model, graph, heads, epochs, memory_gib, threads):
        return arxiv_process.measure(model, graph, heads, epochs)

    monkeypatch.setattr(arxiv, "_run", in_this_process)
    seen = []
    result = arxiv.measure_arxiv(
        2, 4.0, 1, graph="cora", heads=[8], models=["lcat", "PyG GATConv"], keep=lambda r: seen.append(str(r))
    )
    ours, peer = result["measurements"]
    assert len(seen) == 2
    assert len(ours["seconds"]) == len(peer["seconds"]) == 2
    assert ours["parameters"] - peer["parameters"] == 2 * 3  # λ1 and λ2 of three layers
    assert "× s" in arxiv.text_table(result).splitlines()[2]
    assert len(charts.arxiv_chart(result).axes) == 2


@pytest.mark.campaign
def test_an_epoch_beyond_the_limit_of_memory_is_reported():
    result = arxiv.measure_arxiv(1, memory_gib=1.0, threads=1, heads=[8], models=["PyG GATConv"])
    assert [row["outcome"] for row in result["measurements"]] == ["out of memory"]
    assert "out of memory (limit 1 GiB)" in arxiv.text_table(result)
    assert charts.arxiv_chart(result).axes


def test_sampling_is_measured_with_the_share_of_a_step_that_waits(tmp_path):
    result = sampling.measure_sampling(2, [1], scale=2000)
    rows = {row["name"]: row for row in result["measurements"]}
    loader, step = rows[sampling.OURS], rows[sampling.STEP]
    assert len(loader["seconds"]) == len(step["waited"]) == 2
    assert all(0 < edges <= 1024 * (15 + 150 + 750) for edges in loader["sampled_edges"])
    assert all(waited <= seconds for waited, seconds in zip(step["waited"], step["seconds"], strict=True))
    assert "million edges/s" in sampling.text_table(result)
    assert charts.save_chart(result, tmp_path) == []


def test_layers_and_steps_are_measured_on_a_device(tiny, monkeypatch):
    """On the CPU, which stands in for a GPU; PyG's compiled layers are left out, because they take a minute to compile."""
    eager = [c for c in on_device.device_contenders() if not c.name.endswith("compiled")]
    assert len(list(on_device.device_contenders())) == len(eager) + 2
    result = on_device.measure_layers_on(torch.device("cpu"), ["cora"], [(2, 8)], 2, contenders=eager)
    assert result["kind"] == "layers_cpu"
    assert [row["name"] for row in result["measurements"]] == [contender.name for contender in eager]
    assert all(len(row["seconds"]) == 2 and row["times_floor"] > 0 for row in result["measurements"])
    monkeypatch.setattr(on_device, "EDGES", (1000,))
    steps = on_device.measure_scale_on(torch.device("cpu"), 10_000, 1)
    assert [(row["name"], row["outcome"]) for row in steps["measurements"]] == [
        ("lcat", "done"),
        ("PyG GATConv", "done"),
    ]
    for measured in (result, steps):
        assert all(row["name"] in on_device.text_table(measured) for row in measured["measurements"])


def test_a_device_out_of_memory_is_a_result():
    def build():
        raise torch.OutOfMemoryError("CUDA out of memory")

    row = on_device._measure(torch.device("cpu"), 1, build)
    assert row == {"outcome": "out of memory", "seconds": [], "peak_bytes": None}


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without the device")
@pytest.mark.parametrize("subject", ["layers", "scale", "epochs"])
def test_a_device_that_is_not_there_is_an_error(subject, capsys):
    assert main(["bench", subject, "--device", "cuda"]) == 2
    assert "--device cuda cannot be used: " in capsys.readouterr().err


def test_the_roofline_in_the_readme_is_up_to_date():
    assert roofline.table() in (Path(__file__).parents[2] / "benchmarks" / "README.md").read_text(encoding="utf-8")


def test_the_roofline_counts_bytes():
    mean = roofline.OURS[0]  # a row and an index per edge, and a row per node
    assert mean.bytes_moved(nodes=10, edges=100) == 100 * (128 * 4 + 4) + 10 * 128 * 4
