from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from fake_results import FakeSweep, write_sweep

from lcat_analysis import curves, figures, lambdas, noise
from lcat_analysis.load import load
from lcat_analysis.select import select
from lcat_analysis.trend import published_trend
from lcat_analysis.trend_figure import trend_figure
from lcat_core.errors import ResultsError

MAGIC = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


@pytest.fixture(scope="module")
def figure():
    return trend_figure(published_trend())


def test_a_figure_is_written_in_every_format(tmp_path, figure):
    paths = figures.save(figure, tmp_path / "deep", "trend")
    assert [path.name for path in paths] == ["trend.png", "trend.svg", "trend.pdf"]
    assert all(path.read_bytes().startswith(MAGIC[path.suffix[1:]]) for path in paths)


def test_a_suffix_names_the_file_and_its_format(tmp_path, figure):
    assert figures.save(figure, tmp_path / "a.svg", "trend") == [tmp_path / "a.svg"]


def test_an_unknown_format_is_refused(tmp_path, figure):
    with pytest.raises(ResultsError, match=r"cannot write a.pgn: .*did you mean 'png'"):
        figures.save(figure, tmp_path / "a.pgn", "trend")


def small_figure():
    drawn, (ax,) = figures.new_figure(2, 2)
    ax.plot([1, 2], [3, 4], **figures.look("catv2"))
    return drawn


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_same_figure_gives_the_same_bytes(tmp_path, kind):
    one, two = (figures.save(small_figure(), tmp_path / f"{i}.{kind}", "t")[0] for i in "ab")
    assert one.read_bytes() == two.read_bytes()


def test_pdf_text_is_embedded_as_truetype(tmp_path, figure):
    (path,) = figures.save(figure, tmp_path / "t.pdf", "t")
    assert b"/Type3" not in path.read_bytes()
    assert b"/FontFile2" in path.read_bytes()


def test_widths_are_those_of_a_two_column_paper(figure):
    assert figure.get_size_inches()[0] == figures.PAGE <= 7
    assert figures.COLUMN <= 3.4


def test_drawing_leaves_matplotlibs_settings_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    figures.inline_svg(small_figure(), "a", "b")
    assert dict(matplotlib.rcParams) == before


def test_an_inline_svg_has_its_own_ids_and_only_css_colours(figure):
    svg = figures.inline_svg(figure, "fig1", 'a "label"')
    ids = re.findall(r' id="([^"]*)"', svg)
    assert ids
    assert all(name.startswith("fig1-") for name in ids)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', svg)) <= set(ids)
    assert "var(--blue)" in svg
    assert figures.INK not in svg
    assert 'aria-label="a &quot;label&quot;"' in svg


def test_a_name_with_dollars_is_text_not_mathematics(tmp_path):
    names = (r"$\frac{", "<b>&", "数据")
    sweep = FakeSweep(models=("gat", "lcat"), datasets=names, seeds=2, axes={}, over=(), epochs=5)
    selection = select(load(write_sweep(tmp_path, sweep)))
    svg = figures.inline_svg(curves.curves_figure(selection), "c", "curves")
    assert r"$\frac{" in svg
    assert "&lt;b&gt;&amp;" in svg


def test_a_name_that_would_leave_no_room_is_cut():
    assert figures.plain("x" * 100) == "x" * 27 + "…"


def test_okabe_and_itos_colours_are_distinguished_by_the_common_colour_blindnesses():
    """Simulated after Machado et al. (2009), severity 1."""
    simulations = {
        "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    }
    colours = [colour for colour, _ in figures.KIND_LOOKS.values()]
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    for matrix in simulations.values():
        seen = np.clip(linear @ np.array(matrix).T, 0, 1)
        encoded = np.where(seen <= 0.0031308, seen * 12.92, 1.055 * seen ** (1 / 2.4) - 0.055)
        distances = np.linalg.norm(encoded[:, None] - encoded[None], axis=2)
        assert distances[np.triu_indices(len(colours), 1)].min() > 0.09


def test_models_differ_by_marker_as_well_as_by_colour():
    looks = [figures.look(model) for model in ("dense", "gcn", "gat", "cat", "lcat")]
    assert len({look["marker"] for look in looks}) == 5


def test_training_curves_are_means_over_the_chosen_runs(selection):
    table = curves.training_curves(selection, "Cora")
    own = selection.runs.query("model == 'cat' and dataset == 'Cora'")
    values = []
    for path in own["path"]:
        lines = Path(path, "test", "stats.json").read_text().splitlines()
        values.append(100 * json.loads(lines[-1])["accuracy"])
    last = table.query("model == 'cat' and epoch == 11").iloc[0]
    assert (last["mean"], last["sd"]) == pytest.approx((np.mean(values), np.std(values, ddof=1)))


def test_curves_without_histories_say_what_was_expected(tmp_path):
    sweep = FakeSweep(models=("gat",), datasets=("Cora",), seeds=2, axes={}, over=(), histories=False)
    selection = select(load(write_sweep(tmp_path, sweep)))
    with pytest.raises(ResultsError, match=r"expected test/stats.json"):
        curves.curves_figure(selection)


def test_final_lambdas_are_a_row_per_run_and_layer(selection):
    table = lambdas.final_lambdas(selection)
    assert set(table["model"]) == {"lcat"}
    assert len(table) == 4 * 4 * 4
    run = selection.runs.query("model == 'lcat' and dataset == 'Cora' and seed == 2").iloc[0]
    own = table.query("dataset == 'Cora' and seed == 2").set_index("layer")
    assert [own.loc[2, "lambda1"], own.loc[2, "lambda2"]] == run["lambdas"][1]


def test_lambdas_per_head_are_averaged(selection):
    import dataclasses

    runs = selection.runs.query("model == 'lcat'").head(1).copy()
    runs["lambdas"] = [[[[0.2, 0.4], [0.4, 0.8]]]]
    row = lambdas.final_lambdas(dataclasses.replace(selection, runs=runs)).iloc[0]
    assert (row["lambda1"], row["lambda2"]) == pytest.approx((0.3, 0.6))


def test_the_evolution_of_lambda_has_one_panel_per_layer(selection):
    figure = lambdas.evolution_figure(selection, "Cora")
    assert [ax.get_title() for ax in figure.axes] == ["layer 1", "layer 2", "layer 3", "layer 4"]


def test_the_distribution_of_lambda_has_one_panel_per_dataset(selection):
    figure = lambdas.distribution_figure(selection)
    assert [ax.get_title() for ax in figure.axes][:2] == ["AmazonPhoto", "GitHub"]


def test_models_without_lambda_are_an_error_for_its_figures(tmp_path):
    sweep = FakeSweep(models=("gat",), datasets=("Cora",), seeds=2, axes={}, over=(), histories=False)
    selection = select(load(write_sweep(tmp_path, sweep)))
    with pytest.raises(ResultsError, match=r"no chosen run learned λ"):
        lambdas.distribution_figure(selection)
    with pytest.raises(ResultsError, match=r"no run on Cora logged λ"):
        lambdas.evolution_figure(selection, "Cora")


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    axes = {"lcat.feature_noise": [0, 0.5, 1.0], "lcat.edge_noise": [0, 0.2], "lcat.heads": [1, 8]}
    sweep = FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=2, axes=axes, over=(), histories=False)
    return select(load(write_sweep(tmp_path_factory.mktemp("noise"), sweep)))


def test_noise_pools_heads_and_holds_the_other_noise_at_its_lowest(noisy):
    assert noise.noise_keys(noisy) == ["lcat.feature_noise", "lcat.edge_noise"]
    table = noise.noise_table(noisy, "lcat.feature_noise")
    row = table.query("model == 'cat' and level == 0.5").iloc[0]
    own = noisy.runs.query("model == 'cat' and `lcat.feature_noise` == 0.5 and `lcat.edge_noise` == 0")["value"]
    assert (row["mean"], row["n"]) == (pytest.approx(own.mean()), 4)


def test_the_noise_figure_has_one_panel_per_kind_of_noise(noisy):
    assert [ax.get_xlabel() for ax in noise.noise_figure(noisy).axes] == [
        "lcat.feature_noise",
        "lcat.edge_noise",
    ]


def test_no_noise_is_an_error(selection):
    with pytest.raises(ResultsError, match=r"no level of noise varies"):
        noise.noise_figure(selection)


def test_the_distribution_of_lambda_has_one_row_per_model(tmp_path):
    sweep = FakeSweep(models=("gat", "lcat", "lcatv2"), datasets=("Cora", "GitHub"), seeds=2, axes={}, over=())
    figure = lambdas.distribution_figure(select(load(write_sweep(tmp_path, sweep))))
    rows = {}
    for ax in figure.axes:
        rows.setdefault(round(ax.get_position().y0, 2), []).append(ax.get_title())
    assert list(rows.values()) == [["GitHub", "Cora"]] * 2
    assert [ax.get_ylabel() for ax in figure.axes[::2]] == ["L-CAT", "L-CATv2"]


def test_curves_of_some_models_without_bands(selection):
    figure = curves.curves_figure(selection, ["Cora"], models=["gat", "lcat"], bands=False)
    (ax,) = figure.axes
    assert len(ax.lines) == 2
    assert not ax.collections
    with pytest.raises(ResultsError, match="unknown model: 'lcta'"):
        curves.curves_figure(selection, ["Cora"], models=["lcta"])


def test_a_link_is_replaced_not_written_through(tmp_path, figure):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "a.png").symlink_to(precious)
    figures.save(figure, tmp_path / "a.png", "a")
    assert precious.read_text() == "mine"
    assert not (tmp_path / "a.png").is_symlink()
