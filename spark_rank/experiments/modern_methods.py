"""The methods that `modern` compares, each with a grid of settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from spark_rank.experiments.alternating import als_scores
from spark_rank.experiments.peers import (
    FloatArray,
    ItemNeighbours,
    LinearItems,
    Split,
    svdpp_scores,
)
from spark_rank.experiments.shared_halves import Task, item_offsets
from spark_rank.learners import (
    OAP,
    MPRank,
    MulticlassPerceptron,
    PRank,
    RankBoost,
    RankSVM,
    SVRank,
    WidrowHoff,
)
from spark_rank.learners.errors import NumericFailureError

Setting = Mapping[str, Any]
_ALS_ROUNDS, _SVDPP_RATE = 10, 0.007


@dataclass(frozen=True)
class Entry:
    """A learner of one model per user, and the settings to choose from.

    `cost` is the metric to choose by. With `of_ranks` it learns ranks, and the offset is a feature.
    """

    learner: Any
    grid: tuple[Setting, ...]
    cost: str = "MSD"
    of_ranks: bool = False


def _grid(fixed: Setting, **values: Sequence[Any]) -> tuple[Setting, ...]:
    points = product(*values.values())
    return tuple({**fixed, **dict(zip(values, point, strict=True))} for point in points)


_FIXED = {"ridge": "fixed", "growth": 0.0067}
_ONLINE: dict[str, Entry] = {
    "PRank": Entry(PRank, _grid({"readout": "averaged"}, epochs=[1, 5]), of_ranks=True),
    "WH": Entry(WidrowHoff, _grid({}, eta=[0.0001, 0.001, 0.01], epochs=[1, 5]), of_ranks=True),
    "MCP": Entry(MulticlassPerceptron, _grid({}, epochs=[1, 5]), of_ranks=True),
    "OAP-BPM": Entry(OAP, _grid({"n_members": 50}, tau=[0.3, 0.6]), of_ranks=True),
}
LEARNERS: dict[str, dict[str, Entry]] = {
    "factors": {
        "MPRank": Entry(MPRank, _grid(_FIXED, C=[0.5, 1.0, 2.0])),
        "MPRank, Gaussian too": Entry(
            MPRank,
            _grid({**_FIXED, "kernel": "linear+rbf", "rbf_weight": 0.2}, C=[0.6, 0.91, 1.5],
                  gamma=[3.0, 11.0]),
        ),
        "SVRank": Entry(SVRank, _grid({"power": 1, "epsilon": 0.5}, C=[3, 10, 30, 100])),
        "RankSVM": Entry(RankSVM, _grid({}, C=[1e-4, 1e-3, 1e-2, 1e-1]), "misranking"),
        "RankBoost": Entry(RankBoost, _grid({}, n_rounds=[5, 20, 50]), "misranking"),
        **_ONLINE,
    },
    "reference": {
        "MPRank": Entry(MPRank, _grid({"kernel": "rbf"}, C=[10, 30, 100], gamma=[0.003, 0.01])),
        "SVRank": Entry(
            SVRank, _grid({"kernel": "rbf", "epsilon": 0.5}, C=[30, 100, 300], gamma=[0.003, 0.01])
        ),
        "RankSVM": Entry(
            RankSVM, _grid({"kernel": "rbf", "gamma": 0.003}, C=[1e-3, 1e-2, 1e-1]), "misranking"
        ),
        "RankBoost": Entry(RankBoost, _grid({}, n_rounds=[50, 200]), "misranking"),
        **_ONLINE,
    },
}  # fmt: skip


def predicted(entry: Entry, setting: Setting, task: Task, levels: FloatArray) -> FloatArray | None:
    """Learn from a user's first half and return the scores of the second; None if that fails.

    The scores of learners of ranks are the rating levels of the predicted ranks.
    """
    try:
        return _learned(entry, setting, task, levels)
    except NumericFailureError:  # for example, a step size so large that numbers overflow
        return None


def _learned(entry: Entry, setting: Setting, task: Task, levels: FloatArray) -> FloatArray:
    if not entry.of_ranks:
        model = entry.learner(**setting).fit(task.X, task.y, offset=task.offset)
        return np.asarray(model.decision_function(task.test_features, offset=task.test_offset))
    ranks = np.searchsorted(levels, task.y) + 1
    ranker = entry.learner(len(levels), **setting)
    ranker.fit(np.column_stack([task.X, task.offset]), ranks)
    predicted_ranks = ranker.predict(np.column_stack([task.test_features, task.test_offset]))
    return np.asarray(levels[np.asarray(predicted_ranks) - 1], dtype=np.float64)


def peer_scores(peer: str, split: Split, seed: int) -> Iterator[tuple[str, FloatArray]]:
    """Yield a peer's settings, each with the scores of all held-out ratings."""
    return _PEERS[peer](split, seed)


def _constant(split: Split, seed: int) -> Iterator[tuple[str, FloatArray]]:
    yield "no settings", _at_users_levels(split, np.zeros(split.n_items))


def _item_offset(split: Split, seed: int) -> Iterator[tuple[str, FloatArray]]:
    yield "no settings", _at_users_levels(split, item_offsets(split))


def _at_users_levels(split: Split, of_items: FloatArray) -> FloatArray:
    """Return the items' values plus each user's mean difference of training ratings from them."""
    sizes = np.maximum(np.diff(split.ends), 1)
    above = split.ratings - of_items[split.items]
    levels = np.bincount(split.users(), weights=above, minlength=len(sizes)) / sizes
    return np.asarray(of_items[split.test_items] + levels[split.held_out_users()])


def _neighbours(split: Split, seed: int) -> Iterator[tuple[str, FloatArray]]:
    model = ItemNeighbours(split)
    for shrinkage in (400.0, 1600.0):
        for k, scores in model.scores(shrinkage, (20, 40)).items():
            yield f"k {k}, shrinkage {shrinkage:g}", scores


def _linear_items(split: Split, seed: int) -> Iterator[tuple[str, FloatArray]]:
    model = LinearItems(split)
    for ridge in (1600.0, 6400.0, 25600.0):
        yield f"ridge {ridge:g}", model.scores(ridge)


def _svdpp(split: Split, seed: int) -> Iterator[tuple[str, FloatArray]]:
    for ridge in (0.1, 0.15):
        trained = svdpp_scores(
            split, factors=50, rate=_SVDPP_RATE, ridge=ridge, epochs=(40, 120), seed=seed
        )
        for epochs, scores in trained:
            yield f"rank 50, {ridge:g}, {epochs} epochs", scores


def _als(split: Split, seed: int) -> Iterator[tuple[str, FloatArray]]:
    for ridge in (0.08, 0.12, 0.2):
        scores = als_scores(split, rank=50, ridge=ridge, rounds=_ALS_ROUNDS, seed=seed)
        yield f"rank 50, {ridge:g}", scores


_PEERS: dict[str, Callable[[Split, int], Iterator[tuple[str, FloatArray]]]] = {
    "constant": _constant,
    "item offset": _item_offset,
    "item-kNN": _neighbours,
    "linear item model": _linear_items,
    "SVD++": _svdpp,
    "ALS": _als,
}
PEERS = tuple(_PEERS)
