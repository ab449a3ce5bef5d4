"""The registry of scores: what ``score='…'`` may be, and what each name stands for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from torch.nn import Module

from graphgym_lcat.kernels.backend import PairScore
from graphgym_lcat.nn.checks import check_choice
from graphgym_lcat.nn.functional import (
    PairFunction,
    ScoreInputs,
    ScoreParameters,
    function_score,
    gat_score,
    gatv2_score,
)

SCORE_WEIGHTS = ("shared", "separate")


@dataclass(frozen=True)
class Score:
    """How pairs of nodes are scored.

    Attributes:
        prepare: A pure function that gives the kernels what they need to score pairs.
        vectors: Names of the attention vectors that the layer holds for it.
        edge_vectors: Names of those that it holds in addition if there are edge features.
        takes_edges: Whether it can score edge features.
        at_once: Kind of the :class:`.ConvolvedScore` of these vectors that computes the same together with the convolution, for
            one set of nodes without edge features.
    """

    prepare: Callable[[ScoreInputs, ScoreParameters], PairScore]
    vectors: tuple[str, ...] = ()
    edge_vectors: tuple[str, ...] = ()
    takes_edges: bool = False
    at_once: str | None = None


AnyScore = str | PairFunction

SCORES: dict[str, Score | PairFunction | type[Module]] = {
    "gat": Score(gat_score, ("att_src", "att_dst"), ("att_edge",), takes_edges=True, at_once="gat"),
    "gatv2": Score(gatv2_score, ("att",), takes_edges=True, at_once="gatv2"),
}


def register_score(name: str, score: Score | PairFunction | type[Module]) -> None:
    """Makes ``score='name'`` and ``lcat.score: name`` work.

    Args:
        name: A name that is not in use.
        score: A function α(u, v) that turns features ``[edges, heads, channels]`` of receivers and senders into scores
            ``[edges, heads]``; or, for a score with parameters, a module class whose ``forward`` is such a function. Each layer
            creates its own module, as ``score(heads, channels)``. A :class:`Score` has its own way to the kernels.
    """
    if name in SCORES:
        raise ValueError(f"there is already a score {name!r}; register this one by another name")
    if isinstance(score, Module):
        raise TypeError(
            f"`score` must be a function or a module class, got a {type(score).__name__} object, whose parameters all layers "
            "would share"
        )
    if not isinstance(score, Score) and not callable(score):
        raise TypeError(f"`score` must be a function α(u, v) or a module class, got {type(score).__name__}")
    SCORES[name] = score


def create_score(score: AnyScore, heads: int, channels: int) -> AnyScore:
    """What a layer keeps as its ``score``: the name or function itself, or the new module of a registered class."""
    if callable(score):
        return score
    check_choice("score", score, SCORES)
    registered = SCORES[score]
    return registered(heads, channels) if isinstance(registered, type) else score


def find_score(score: AnyScore) -> Score:
    """The meaning of what :func:`create_score` returned."""
    found = SCORES[score] if isinstance(score, str) else score
    if isinstance(found, Score):
        return found
    assert not isinstance(found, type)  # create_score has made a module of it
    return Score(functools.partial(function_score, found))


def score_name(score: AnyScore) -> str:
    """What ``repr`` shows: a name in quotes, or that of a function or class."""
    return repr(score) if isinstance(score, str) else getattr(score, "__name__", None) or type(score).__name__
