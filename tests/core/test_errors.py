import pytest

from lcat_core import errors


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cora", "Cora"), ("CiteSer", "CiteSeer"), ("zzz", None), (3, None)],
)
def test_the_nearest_name_ignores_case(name, expected):
    assert errors.nearest(name, ["Cora", "CiteSeer"]) == expected


def test_a_hint_is_empty_without_a_close_name():
    assert errors.did_you_mean("Coar", ["Cora"]) == "; did you mean 'Cora'?"
    assert errors.did_you_mean("zzz", ["Cora"]) == ""


def test_an_unknown_name_is_listed_with_the_known_ones():
    message = errors.unknown_name("dataset", "Coar", ["Cora", "DBLP"], " in g.yaml")
    assert message == "unknown dataset in g.yaml: 'Coar'; did you mean 'Cora'? Known: Cora, DBLP"
    assert errors.unknown_name("dataset", "x", []) == "unknown dataset: 'x'. Known: none"


@pytest.mark.parametrize(
    ("error", "status", "builtin"),
    [
        (errors.UserError, 2, Exception),
        (errors.SettingsError, 2, ValueError),
        (errors.DatasetError, 2, ValueError),
        (errors.ResultsError, 2, ValueError),
        (errors.RunBusy, 2, RuntimeError),
        (errors.MissingPackage, 2, ImportError),
        (errors.TrainingFailed, 1, RuntimeError),
        (errors.SweepFailed, 1, RuntimeError),
    ],
)
def test_every_error_has_one_base_an_exit_status_and_its_builtin_kind(error, status, builtin):
    raised = error("what is wrong", "optim.base_lr")
    assert isinstance(raised, errors.LcatError) and isinstance(raised, builtin)
    assert (str(raised), raised.key, raised.exit_status) == ("what is wrong", "optim.base_lr", status)
