"""The specification of a learner for every user: hyper-parameters and how to choose them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spark_rank.learners import BASELINES, Learner, learner_class
from spark_rank.users.choice_prior import ChoicePrior
from spark_rank.users.rank_scale import RankScale

Params = Mapping[str, Any]


@dataclass(frozen=True)
class LearnerSpec:
    """A learner to train: its label, its class by name, its hyper-parameters.

    With a `grid` (values by hyper-parameter) and the `selection` ``leave_pair_out`` or ``k_fold``,
    hyper-parameters are chosen for each user, starting from the `prior` of a sample of users, if
    there is one. ``sample`` means that they are still to be chosen for all users.
    """

    label: str
    learner: str
    item_offset: bool
    params: Params = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    selection: str = "sample"
    prior: ChoicePrior | None = None

    @cached_property
    def kind(self) -> type[Learner]:
        """Return the learner's class."""
        return learner_class(self.learner)

    @property
    def is_baseline(self) -> bool:
        """Tell whether the learner is one of the two baselines."""
        return self.learner in BASELINES

    @property
    def needs_features(self) -> bool:
        """Tell whether the learner needs features; to some the item offset is enough."""
        return not (self.is_baseline or (self.kind.of_ranks and self.item_offset))

    @property
    def chosen_per_user(self) -> bool:
        """Tell whether hyper-parameters are chosen for each user."""
        return bool(self.grid) and self.selection != "sample"

    @property
    def measure(self) -> str:
        """Return the metric by which a point of the grid is chosen."""
        if self.kind.of_ranks:
            return "rank_loss"
        return "msd" if self.kind.on_rating_scale else "misranking"

    def candidates(self) -> list[dict[str, Any]]:
        """Return the hyper-parameters of every point of the grid, its last axis fastest."""
        points = itertools.product(*self.grid.values())
        return [{**self.params, **dict(zip(self.grid, point, strict=True))} for point in points]

    def make(self, scale: RankScale | None, params: Params | None = None) -> Learner:
        """Return a new, unfitted learner; the scale gives the number of ranks."""
        # the first point of the grid if none has been chosen
        first = self.candidates()[0] if self.grid else self.params
        chosen = dict(first if params is None else params)
        if self.kind.of_ranks and scale is not None:
            chosen["n_ranks"] = scale.n_ranks
        return self.kind(**chosen)

    def hyperparameters(self, scale: RankScale | None, params: Params | None = None) -> str:
        """Return all hyper-parameters, defaults too, as JSON."""
        # called once per user: the text is cached unless hyper-parameters differ by user
        if params is None:
            if scale not in self._texts:
                self._texts[scale] = json.dumps(self.make(scale).get_params(), sort_keys=True)
            return self._texts[scale]
        return json.dumps(self.make(scale, params).get_params(), sort_keys=True)

    @cached_property
    def _texts(self) -> dict[RankScale | None, str]:
        return {}


BASELINE_SPECS = tuple(
    LearnerSpec(name, name, item_offset=name == "item_offset") for name in BASELINES
)
