"""Long sequences to learn ensembles from: the examples of each trial, in order, in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.learners import OAP
from spark_rank.learners.base import FloatArray
from spark_rank.learners.feature_maps import polynomial_features
from spark_rank.learners.perceptrons.blocks import pieces
from spark_rank.learners.perceptrons.draws import member_keys
from spark_rank.learners.perceptrons.rounds import IntArray
from spark_rank.sequences.files import Examples, SequenceFiles, TrialPart
from spark_rank.users.prior_scores import Prior


@dataclass(frozen=True)
class Trial:
    """A sequence to learn: its number, its examples, the `problem` of its draws, its order."""

    number: int
    part: TrialPart
    problem: int
    reordered: bool


@dataclass(frozen=True)
class View:
    """The features that learners see: the files, and whether mapped to terms of degree 2.

    `gamma` is the factor of the dot product in the polynomial kernel of these terms.
    """

    files: SequenceFiles
    squared: bool
    gamma: float = 1.0


@dataclass(frozen=True)
class SequenceSpec:
    """An ensemble to learn on a sequence; `params` are those of OAP without ranks and problem.

    With `keep_members` the rules of the members are stored whatever `combine` is. `kernel`,
    `gamma` and `hyperparameters` describe the view in the model row. `prior` says which columns a
    user's features have beside those of the items; a file's features have none.
    """

    label: str
    params: Mapping[str, Any]
    view: View
    keep_members: bool
    kernel: str
    gamma: float | None
    hyperparameters: str
    prior: Prior = Prior(None, None)


@dataclass(frozen=True)
class SequenceUser:
    """The user of a sequence; `item_ids` are the items of the examples, as in the input."""

    user_id: str
    item_ids: tuple[str, ...]
    excluded_feature: int | None
    reviewers: NDArray[np.int32] | None


@dataclass(frozen=True)
class SequenceJob:
    """The work that workers receive; `user` is set if the sequence is one user's ratings.

    `chunk` is the greatest number of examples in memory at once; it changes no result.
    """

    trials: tuple[Trial, ...]
    specs: tuple[SequenceSpec, ...]
    n_ranks: int
    seed: int
    chunk: int
    user: SequenceUser | None = None

    def ensemble(self, spec: SequenceSpec, trial: Trial) -> OAP:
        """Return a fresh ensemble."""
        return OAP(self.n_ranks, problem=trial.problem, **spec.params)


@dataclass(frozen=True)
class TrialSequence:
    """The examples of a trial in one view."""

    examples: Examples
    trial: Trial
    squared: bool
    seed: int
    gamma: float = 1.0

    def chunks(self, size: int) -> Iterator[tuple[FloatArray, IntArray]]:
        """Yield features and ranks of at most `size` examples of one block, in their order."""
        for start, stop in pieces(0, self.trial.part.n_train, size):
            yield self.rounds(start, stop)

    def rounds(self, start: int, stop: int) -> tuple[FloatArray, IntArray]:
        """Return features and ranks of some rounds."""
        rows = self._rows(start, stop)
        return self._mapped(rows), np.asarray(self.examples.ranks[rows])

    def held_out(self) -> tuple[FloatArray, IntArray]:
        """Return features and ranks of the test part."""
        start = self.trial.part.start + self.trial.part.n_train
        rows = slice(start, start + self.trial.part.n_test)
        return self._mapped(rows), self.examples.ranks[rows]

    def _rows(self, start: int, stop: int) -> Any:
        begin = self.trial.part.start
        if not self.trial.reordered:
            return slice(begin + start, begin + stop)
        return begin + self._order[start:stop]

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """Return the examples in the order of a hash of seed, trial and position."""
        places = np.arange(self.trial.part.n_train)
        # negative numbers, because the draws of ensembles have problems from 0 on
        return np.argsort(member_keys(self.seed, -1 - self.trial.problem, places), kind="stable")

    def _mapped(self, rows: Any) -> FloatArray:
        features = self.examples.features[rows]
        return polynomial_features(features, self.gamma) if self.squared else features
