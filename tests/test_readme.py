"""The README tells the truth: its commands exist, its code runs, and its numbers are the recorded ones."""

import json
import re
import subprocess
from importlib.resources import files
from pathlib import Path

import fake_results
import pandas as pd
import pytest
import torch
import yaml

from lcat_run import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    return re.search(rf"^```{language}\n(.*?)^```", README, re.S | re.M)[1]


def between(begin: str, end: str, text: str = README) -> str:
    return text[text.index(begin) + len(begin) : text.index(end, text.index(begin))].strip()


def lines_of(text: str) -> list[str]:
    """Split a table into sentences, without numbers, marks and line breaks, which vary from run to run."""
    words = re.sub(r"[_*▼]|\d+\.\d+", "", text).split()
    return " ".join(word for word in words if not set(word) <= set("─┈±.")).replace(" .", ".").split(". ")


@pytest.mark.parametrize(("page", "begin"), [("README.md", "from"), ("docs/layer.md", "made by")])
def test_tables_of_models_are_what_the_command_prints(page, begin, capsys):
    cli.main(["layers", "--format", "markdown"])
    printed = capsys.readouterr().out.strip()
    comment = f"<!-- {begin}: lcat layers --format markdown -->"
    table = between(comment, "<!-- end -->", (ROOT / page).read_text(encoding="utf-8"))
    assert table == printed if begin == "made by" else printed.startswith(table)
    assert f"lists all {len(printed.splitlines()) - 2}:" in README


def test_every_command_it_names_exists():
    named = set(re.findall(r"^ {4}lcat (\w+)", README, re.M)) | set(re.findall(r"`lcat (\w+)", README))
    assert named and named <= set(cli.COMMANDS)


def test_the_python_code_runs():
    names = {}
    exec(compile(block("python"), "README.md", "exec"), names)
    out = names["Net"](5, 3)(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]]))
    assert out.shape == (4, 3)


def test_accelerate_prints_what_is_shown(capsys):
    code, shown = re.search(
        r"^```python\n(from graphgym_lcat.nn import accelerate\n.*?)```\n\n```\n(.*?)^```", README, re.S | re.M
    ).groups()
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == shown


def test_the_yaml_runs_and_prints_what_is_shown(tmp_path, monkeypatch, capsys):
    (tmp_path / "my.yaml").write_text(block("yaml"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "--cfg", "my.yaml"]) == 0
    shown = re.search(r"^```\n(lcat on BlockModel.*?)```", README, re.S | re.M)[1]
    without_numbers = [re.sub(r"\d+\.\d+|epoch \d+", "", text) for text in (shown, capsys.readouterr().out)]
    assert without_numbers[0] == without_numbers[1]


@pytest.mark.parametrize("script", ["run/demo.sh", "run/test.sh"])
def test_scripts_are_named_and_valid(script):
    assert f"bash {script}" in README
    subprocess.run(["bash", "-n", ROOT / script], check=True)


def test_what_the_demo_prints_has_the_form_of_the_real_thing(tmp_path, monkeypatch, capsys):
    grid = yaml.safe_load(files("lcat_grids").joinpath("demo.yaml").read_text(encoding="utf-8"))
    degrees = {point["dataset.label"]: point["block_model.avg_degree"] for point in grid["axes"]["degree"]}
    datasets = tuple(degrees)
    monkeypatch.setattr(fake_results, "DEGREES", degrees)
    monkeypatch.setenv("COLUMNS", "120")
    runs = len(grid["models"]) * len(datasets) * grid["seeds"]
    shown = between("<!-- demo:begin -->", "<!-- demo:end -->").strip("`\n")
    begin, table, end = re.split(r"\n\n(?=Test accuracy)|\n(?=\nwrote )", shown)
    assert f"demo: {runs} of {runs} runs to do" in begin
    assert begin.endswith(f"{runs} done; results in results/demo")
    assert end.strip() == "wrote results/demo/report.html"

    sweep = fake_results.FakeSweep(
        "demo", tuple(grid["models"]), datasets, grid["seeds"], axes={}, over=(), histories=False
    )
    cli.main(["table", str(fake_results.write_sweep(tmp_path, sweep))])
    printed = capsys.readouterr().out.replace("60/20/20", "70/15/15")  # the split of the fake runs
    assert lines_of(table) == lines_of(printed)


def test_the_scripts_announce_the_steps_that_it_shows():
    scripts = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "run").glob("*.sh")))
    steps = re.findall(r"^== (.*)$", README, re.M)
    assert len(steps) == 6
    for step in steps:
        assert f'echo "== {step.split("Python")[0]}' in scripts


def real_accuracies() -> pd.DataFrame:
    """Our mean accuracies in the table of the README: datasets × models."""
    lines = between("<!-- accuracy:begin -->", "<!-- accuracy:end -->").splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    table = pd.DataFrame(cells[2:], columns=cells[0]).set_index("dataset").drop(columns="degree")
    return table.map(lambda cell: float(cell.split()[0]) if cell[0].isdigit() else float("nan"))


def demo_accuracies() -> dict[str, list[float]]:
    """Mean accuracies of the demo by model, one per degree."""
    rows = re.findall(r"^(\S+) +(.*±.*)$", between("<!-- demo:begin -->", "<!-- demo:end -->"), re.M)
    return {model: [float(mean) for mean in re.findall(r"(\d+\.\d+) ±", row)] for model, row in rows}


def test_the_advice_on_when_it_pays_is_that_of_the_tables():
    text = " ".join(README.split())
    real = real_accuracies()
    gains = (real["L-CAT"] - real["GAT"]).dropna()
    ahead = (
        f"ahead of GAT's on {(gains > 0).sum()} of {len(gains)} datasets, by {gains.median():.2f} points in the median"
    )
    assert ahead in text
    to_gcn = (real["L-CAT"] - real["GCN"]).dropna()
    assert f"ahead of L-CAT on {(to_gcn < 0).sum()} of {len(to_gcn)}" in text
    demo = demo_accuracies()
    assert f"it is {demo['L-CAT'][0] - demo['GAT'][0]:.0f} points above" in text
    ahead_in_demo = sum(gcn > lcat for gcn, lcat in zip(demo["GCN"], demo["L-CAT"], strict=True))
    assert ahead_in_demo == 3 and "the GCN is ahead at three of six degrees" in text


def test_the_advice_on_synthetic_graphs_is_that_of_their_page():
    page = (ROOT / "docs/synthetic.md").read_text(encoding="utf-8")
    table = page[page.index("stayed below 0.98") :]
    below, graphs = (sum(map(int, numbers)) for numbers in zip(*re.findall(r"(\d+) of (\d+) \|", table), strict=True))
    assert f"reaches 98 % on {graphs - below} of {graphs} graphs" in " ".join(README.split())


def test_the_times_of_one_layer_are_those_of_the_recorded_benchmark():
    record = json.loads((ROOT / "benchmarks/results/layers.json").read_text(encoding="utf-8"))
    ms = {(m["graph"], m["name"]): 1000 * min(m["seconds"]) for m in record["measurements"] if m["threads"] == 2}
    text = " ".join(README.split())
    for graph, name, digits in (("amazon", "AmazonComputers", 0), ("cora", "Cora", 1)):
        ours, theirs = ms[graph, "lcat"], ms[graph, "PyG GATConv"]
        assert f"({ours:.1f} ms against {theirs:.{digits}f} ms" in text, name
        assert f"{theirs / ours:.{digits}f} times as fast" in text, name
    assert round(ms["amazon", "lcat"] / ms["amazon", "gcn"]) == 3 and "takes a third of the time" in text


def test_the_ratios_of_speed_and_memory_are_those_of_the_recorded_benchmark():
    record = json.loads((ROOT / "benchmarks/results/layers.json").read_text(encoding="utf-8"))
    found = {(m["graph"], m["name"]): m for m in record["measurements"] if m["threads"] == 2}
    ratio = {key: m["times_floor"] for key, m in found.items()}
    mebibytes = {key: m["peak_bytes"] / 2**20 for key, m in found.items()}
    text = " ".join(README.split())
    amazon, cora = ("amazon", "lcat"), ("cora", "lcat")
    amazon_gat, cora_gat = ("amazon", "PyG GATConv"), ("cora", "PyG GATConv")
    assert f"takes {ratio[amazon]:.1f} times" in text and f"`GATConv` {ratio[amazon_gat]:.0f} times" in text
    assert f"needs {mebibytes[amazon]:.0f} MiB and `GATConv` {mebibytes[amazon_gat]:.0f} MiB" in text
    assert f"take {ratio[cora]:.1f} and {ratio[cora_gat]:.1f} times" in text
    assert f"with {found[amazon]['edges'] / found[cora]['edges']:.0f} times fewer edges" in text


def test_the_speed_of_an_epoch_and_the_largest_graph_are_those_of_the_recorded_benchmarks():
    text = " ".join(README.split())
    epochs = json.loads((ROOT / "benchmarks/results/epochs.json").read_text(encoding="utf-8"))["measurements"]
    times = {row["dataset"]: row["times_ours"] for row in epochs if row["flow"] == "stock"}
    assert f"is {times['Cora']:.1f} times as fast as stock GraphGym's with `GATConv` on Cora" in text
    assert f"{times['AmazonPhoto']:.0f} on AmazonPhoto, {times['AmazonComputers']:.0f} on AmazonComputers" in text
    assert f"{times['CoauthorPhysics']:.0f} on CoauthorPhysics" in text
    scale = json.loads((ROOT / "benchmarks/results/scale.json").read_text(encoding="utf-8"))["measurements"]
    largest = next(row for row in scale if row["name"] == "lcat" and row["edges"] == 120_000_000)
    assert f"(1.2·10⁸ edges) fits into {largest['peak_bytes'] / 2**30:.1f} GiB" in text
