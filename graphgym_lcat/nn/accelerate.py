"""Our layers in the place of PyG's attention layers, in a model that exists."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.parameter import is_lazy
from torch_geometric.nn.aggr import SumAggregation
from torch_geometric.nn.conv import GATConv, GATv2Conv
from torch_geometric.nn.dense.linear import Linear

from graphgym_lcat.nn.init import Projection
from graphgym_lcat.nn.lcat_conv import LCATConv
from graphgym_lcat.nn.lcatv2_conv import LCATv2Conv

ARGUMENTS = (
    "in_channels",
    "out_channels",
    "heads",
    "concat",
    "negative_slope",
    "dropout",
    "add_self_loops",
    "edge_dim",
    "fill_value",
    "residual",
    "flow",
    "decomposed_layers",
)


@dataclass(frozen=True)
class Acceleration:
    """What :func:`accelerate` did. ``print`` shows it.

    Attributes:
        replaced: What each replaced layer was and is, by its name in the model.
        kept: Why a layer was not replaced, by its name.
    """

    replaced: dict[str, str]
    kept: dict[str, str]

    def __str__(self) -> str:
        total = len(self.replaced) + len(self.kept)
        if not total:
            return "the model has no GATConv and no GATv2Conv"
        lines = [f"replaced {len(self.replaced)} of {total} attention layers"]
        for name, text in {**self.replaced, **{name: f"kept: {why}" for name, why in self.kept.items()}}.items():
            lines.append(f"  {name or '(the model itself)'}: {text}")
        return "\n".join(lines)

    __repr__ = __str__  # for notebooks


def accelerate(model: Module, learn: bool = False, backend: str = "auto") -> Acceleration:
    r"""Turns every ``GATConv`` and ``GATv2Conv`` in ``model`` into :class:`LCATConv` and :class:`LCATv2Conv`, in place.

    The layers keep their parameters (the same objects, so optimizers stay valid), their names in state dicts, and hooks. With
    :math:`\lambda_1 = 1` and :math:`\lambda_2 = 0` the outputs are the same up to rounding. Dropout of coefficients has the same
    probability but draws other masks.

    .. code-block:: python

        model = GAT(in_channels=16, hidden_channels=32, num_layers=2, heads=4, v2=True)
        print(accelerate(model))

    Args:
        model: Any module, also a single layer.
        learn: Learn both λ of each layer, which start at 0.5: the layers become L-CAT, and the outputs change. Create the
            optimizer afterwards.
        backend: As in :class:`LCATConv`.

    Returns:
        What was replaced, what was not, and why.
    """
    replaced, kept = {}, {}
    for name, module in list(model.named_modules()):
        if not isinstance(module, (GATConv, GATv2Conv)):
            continue
        before = repr(module)
        reason = _why_not(module)
        if reason is None:
            _become(module, _counterpart(module, learn, backend))
            replaced[name] = f"{before} is now {module!r}"
        else:
            kept[name] = reason
    return Acceleration(replaced, kept)


def _why_not(layer: GATConv | GATv2Conv) -> str | None:
    """Why the layer may compute something else than ours, or needs to stay as it is; None if it can be replaced."""
    kind = GATConv if isinstance(layer, GATConv) else GATv2Conv
    if type(layer) is not kind:
        return f"{type(layer).__name__} is a subclass of {kind.__name__} and may compute something else"
    if type(layer.aggr_module) is not SumAggregation:
        return f"it aggregates by {layer.aggr!r}, attention by a sum"
    if layer.explain:
        return "an explainer is using it"
    patched = [name for name, value in vars(layer).items() if callable(value) and hasattr(kind, name)]
    if patched:
        return f"its method `{patched[0]}` was replaced"
    for name, child in layer.named_children():
        if name != "aggr_module" and type(child) is not Linear:
            return f"its `{name}` is a {type(child).__name__}, not a {Linear.__module__}.{Linear.__name__}"
    for owner in (layer, *layer.children()):
        computed = [name for name, value in vars(owner).items() if isinstance(value, Tensor)]
        if computed:
            return f"its `{computed[0]}` is not a parameter but computed, as by pruning or weight normalisation"
    if layer.lin_edge is not None and _has_hooks(layer.lin_edge):
        return "its `lin_edge` has hooks, which would not be called"
    return None


def _has_hooks(linear: Linear) -> bool:
    return bool(linear._forward_hooks or (linear._forward_pre_hooks and not is_lazy(linear.weight)))


def _counterpart(layer: GATConv | GATv2Conv, learn: bool, backend: str) -> LCATConv:
    """Our layer with the same arguments and new parameters."""
    arguments = {name: getattr(layer, name) for name in ARGUMENTS}
    arguments.update(bias=layer.bias is not None, backend=backend)
    if not learn:
        arguments.update(lambda1=1.0, lambda2=0.0)
    if isinstance(layer, GATv2Conv):
        arguments["share_weights"] = layer.share_weights
    # Initial values that nobody uses must not change the random numbers that follow.
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        ours = LCATv2Conv(**arguments) if isinstance(layer, GATv2Conv) else LCATConv(**arguments)
    vector = layer.att_src if isinstance(layer, GATConv) else layer.att
    ours.interpolation.to(vector.device, vector.dtype)
    return ours


def _become(layer: Module, ours: LCATConv) -> None:
    """Makes ``layer`` what ``ours`` is, except for its own parameters, hooks and whatever else was set on it.

    The object stays the same, wherever the model, or someone else, refers to it.
    """
    for child in layer.children():
        if isinstance(child, Linear):
            child.__class__ = Projection
            child.init = ours.init
    state = {**vars(layer), **vars(ours)}
    for name, value in vars(layer).items():
        if "_hook" in name or name in ("training", "_non_persistent_buffers_set"):
            state[name] = value
    for name in ("_parameters", "_modules", "_buffers"):  # in their order, by which optimizers find their state
        own = vars(layer)[name]
        state[name] = {**own, **{key: value for key, value in vars(ours)[name].items() if own.get(key) is None}}
    for name in (*state["_modules"], *state["_parameters"]):
        state.pop(name, None)
    layer.__class__ = type(ours)
    vars(layer).clear()
    vars(layer).update(state)
