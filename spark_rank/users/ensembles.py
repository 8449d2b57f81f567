"""The specifications of ensembles, and the problem numbers that seed their draws."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.learners import OAP, Learner
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec, Params

# the rounds of a curve: 2^0, 2^½, 2^1, … to the nearest whole number
CURVE_ROUNDS = np.unique(np.rint(2.0 ** np.arange(0.0, 62.0, 0.5)).astype(np.int64))


def problem_number(user_id: str) -> int:
    """Return the number of a user's problem: a 63-bit hash of the id in the input.

    Dense user numbers would not do: they may differ from run to run.
    """
    digest = hashlib.blake2b(user_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def curve_of(losses: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the sums of the first 1, 2, 3, 4, 6, … losses, one for each of `CURVE_ROUNDS`."""
    totals = np.cumsum(losses, dtype=np.int64)
    return totals[CURVE_ROUNDS[: np.searchsorted(CURVE_ROUNDS, len(totals), side="right")] - 1]


def split_members(n_members: int, groups: int) -> list[tuple[int, int]]:
    """Return the first and last (exclusive) member of each group; sizes are nearly equal.

    No group is empty: there are at most as many groups as members.
    """
    parts = min(groups, n_members)
    ends = [n_members * part // parts for part in range(parts + 1)]
    return list(pairwise(ends))


@dataclass(frozen=True)
class EnsembleSpec(LearnerSpec):
    """An ensemble to learn for every user; `params` are OAP's, without ranks and problem.

    With `keep_members` the rules of the members are always stored.
    """

    keep_members: bool = False

    @cached_property
    def kind(self) -> type[Learner]:
        """Return OAP."""
        return OAP

    def ensemble(self, n_ranks: int, problem: int) -> OAP:
        """Return a fresh ensemble for one problem."""
        return OAP(n_ranks, problem=problem, **self.params)

    def hyperparameters(self, scale: RankScale | None, params: Params | None = None) -> str:
        """Return all hyper-parameters as JSON, without the problem, which differs by user."""
        n_ranks = {} if scale is None else {"n_ranks": scale.n_ranks}
        return json.dumps({**self.params, **n_ranks}, sort_keys=True)
