"""The models of the paper: how they are written, in which order, and what each is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# name: (as the paper writes it, its baseline)
KNOWN: dict[str, tuple[str, str | None]] = {
    "dense": ("Dense", None),
    "gcn": ("GCN", None),
}


def _add_family(name: str, written: str, base: str | None = None) -> None:
    """``gat``, ``cat``, ``lcat`` and their v2 forms, of one base layer (``pnagat``, ``lpnacat``, …)."""
    if base:
        KNOWN[name] = (base, None)
    for v in ("", "v2"):
        baseline = f"{name}gat{v}"
        KNOWN[f"gcn{baseline}"] = (f"GCN-{written}GAT{v}", baseline)
        KNOWN[baseline] = (f"{written}GAT{v}", None)
        KNOWN[f"{name}cat{v}"] = (f"{written}CAT{v}", baseline)
        KNOWN[f"l{name}cat{v}"] = (f"L-{written}CAT{v}", baseline)
        if not name:
            KNOWN[f"cat{v}_l1"] = (f"CAT{v}-λ1", baseline)
            KNOWN[f"cat{v}_l2"] = (f"CAT{v}-λ2", baseline)
        else:
            del KNOWN[f"gcn{baseline}"]


_add_family("", "")
_add_family("pna", "PNA", "PNA")
_add_family("gcnii", "GCNII", "GCNII")
_add_family("gin", "GIN", "GIN")


def written(model: str) -> str:
    """``lcatv2`` → ``L-CATv2``; an unknown name is its own."""
    return KNOWN[model][0] if model in KNOWN else model


def model_order(models: Iterable[str], grid_order: Iterable[str] = ()) -> list[str]:
    """The grid's order first, then the paper's, then by name."""
    grid_order, known = list(grid_order), list(KNOWN)

    def rank(model: str) -> tuple:
        in_grid = grid_order.index(model) if model in grid_order else len(grid_order)
        in_paper = known.index(model) if model in known else len(known)
        return in_grid, in_paper, model

    return sorted(map(str, models), key=rank)


def default_baselines(models: Iterable[str]) -> dict[str, str]:
    """The paper's pairs among ``models``, for results without a grid that declares them."""
    models = list(models)
    pairs = {model: KNOWN[model][1] for model in models if model in KNOWN}
    return {model: baseline for model, baseline in pairs.items() if baseline in models}


def rule_before(model: str, previous: str | None, baselines: Mapping[str, str]) -> bool:
    """Whether a table draws a line between two rows: a baseline and the models compared to it are a block."""
    if previous is None:
        return False
    return baselines.get(model, model) != baselines.get(previous, previous)
