"""What is to be learned for every user: a learner, its hyper-parameters, and how to choose them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from spark_rank.engine.rank_scale import RankScale
from spark_rank.learners import BASELINES, PER_USER, Learner

Params = Mapping[str, Any]


@dataclass(frozen=True)
class LearnerSpec:
    """A learner to train: its label, its class by name, its hyper-parameters.

    With a `grid` (values by hyper-parameter) each user's are chosen by `selection`:
    ``leave_pair_out`` or ``k_fold``; ``sample`` means that they are still to be chosen for all.
    """

    label: str
    learner: str
    item_offset: bool
    params: Params = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    selection: str = "sample"

    @property
    def kind(self) -> type[Learner]:
        """Return the learner's class."""
        return {**PER_USER, **BASELINES}[self.learner]

    @property
    def is_baseline(self) -> bool:
        """Tell whether the learner is one of the two that every other must beat."""
        return self.learner in BASELINES

    @property
    def chosen_per_user(self) -> bool:
        """Tell whether every user gets hyper-parameters of his or her own."""
        return bool(self.grid) and self.selection != "sample"

    def candidates(self) -> list[dict[str, Any]]:
        """Return the hyper-parameters of every point of the grid, its last axis fastest."""
        points = itertools.product(*self.grid.values())
        return [{**self.params, **dict(zip(self.grid, point, strict=True))} for point in points]

    def make(self, scale: RankScale | None, params: Params | None = None) -> Learner:
        """Return a fresh, unfitted learner; the scale tells how many ranks there are."""
        chosen = dict(self.params if params is None else params)
        if self.kind.of_ranks and scale is not None:
            chosen["n_ranks"] = scale.n_ranks
        return self.kind(**chosen)


BASELINE_SPECS = tuple(
    LearnerSpec(name, name, item_offset=name == "item_offset") for name in BASELINES
)


def as_json(params: Params) -> str:
    """Return hyper-parameters as a table holds them."""
    return _as_json(tuple(params.items()))


# asked for once per user, and mostly the same for all of them
@lru_cache(maxsize=4096, typed=True)
def _as_json(items: tuple[tuple[str, Any], ...]) -> str:
    return json.dumps(dict(items), sort_keys=True)
