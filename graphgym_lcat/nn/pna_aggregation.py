"""PNA's aggregators and degree scalers, read from PyG's modules and applied to statistics that are already computed."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn.aggr import (
    DegreeScalerAggregation,
    MaxAggregation,
    MeanAggregation,
    MinAggregation,
    MultiAggregation,
    StdAggregation,
    SumAggregation,
    VarAggregation,
)

_NAMES: dict[type[Module], str] = {
    SumAggregation: "sum",
    MeanAggregation: "mean",
    MinAggregation: "min",
    MaxAggregation: "max",
    VarAggregation: "var",
    StdAggregation: "std",
}


def statistics_of(aggregation: Module) -> tuple[str, ...] | None:
    """Names of the statistics that PNA's aggregation concatenates, see :meth:`.Backend.statistics`.

    None if it computes anything else: other aggregators, the same one twice, gradients through half of a variance.
    """
    if type(aggregation) is not DegreeScalerAggregation:
        return None
    multiple = aggregation.aggr
    if type(multiple) is not MultiAggregation or multiple.mode != "cat":
        return None
    names = []
    for part in cast(ModuleList, multiple.aggrs):
        variance = part.var_aggr if type(part) is StdAggregation else part
        if type(part) not in _NAMES or getattr(variance, "semi_grad", False):
            return None
        names.append(_NAMES[type(part)])
    return tuple(names) if len(set(names)) == len(names) else None


def degree_scales(aggregation: DegreeScalerAggregation, degree: Tensor) -> list[Tensor | None]:
    """One factor per node, ``[N, 1]``, for each scaler; None for the identity."""
    degree = degree.unsqueeze(-1)
    by_name = {
        "identity": lambda: None,
        "amplification": lambda: torch.log(degree + 1) / aggregation.avg_deg_log,
        "attenuation": lambda: aggregation.avg_deg_log / torch.log(degree.clamp(min=1) + 1),
        "linear": lambda: degree / aggregation.avg_deg_lin,
        "inverse_linear": lambda: aggregation.avg_deg_lin / degree.clamp(min=1),
    }
    unknown = [name for name in aggregation.scaler if name not in by_name]
    if unknown:
        raise ValueError(f"unknown scaler {unknown[0]!r}; `scalers` may hold {', '.join(by_name)}")
    return [by_name[name]() for name in aggregation.scaler]


def scaled_linear(
    x: Tensor, statistics: Tensor, scales: list[Tensor | None], weight: Tensor, bias: Tensor | None
) -> Tensor:
    """``linear([x ‖ statistics * scale_1 ‖ statistics * scale_2 ‖ …])``, without the scaled copies of the statistics.

    A factor per node may as well multiply the product with the weights, which has fewer columns.
    """
    own, *parts = weight.split([x.size(1)] + len(scales) * [statistics.size(1)], dim=1)
    out = F.linear(x, own, bias)
    products = F.linear(statistics, torch.cat(parts)).split(weight.size(0), dim=1)
    for product, scale in zip(products, scales, strict=True):
        out = out + product if scale is None else torch.addcmul(out, product, scale)
    return out
