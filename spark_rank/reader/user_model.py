"""One user's model, from a run or just learned from a few ratings: scores and lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.config.schema import FACTOR_KINDS
from spark_rank.reader.facts import ModelFacts
from spark_rank.reader.items import Items
from spark_rank.users.cases import Case
from spark_rank.users.recommending import LeftOut, lists_of
from spark_rank.users.stored_models import StoredModel, StoredModels

Row = dict[str, Any]


@dataclass(frozen=True)
class UserModel:
    """A user's row of `models` beside the user's own ratings.

    `batch` is the user as a worker of the stage `recommend` gets it, `model` the row as it was
    learned, and `block` has ``items, ratings, n_train``. `reviewers` gives the reviewer's id of
    each feature that is a reviewer.
    """

    items: Items
    facts: ModelFacts
    reviewers: dict[int, str]
    batch: pa.RecordBatch
    model: pa.Table
    block: Row

    @cached_property
    def row(self) -> Row:
        """Return the row of the table of models."""
        row: Row = self.model.to_pylist()[0]
        return row

    def score(
        self, item_ids: Sequence[str], *, default: float | None = None
    ) -> NDArray[np.float64]:
        """Return the score of every item.

        An unknown item gets `default`; without one it raises `UnknownIdError`.
        """
        if default is None:
            return self._model.scores(self.items.features, self.items.numbers(item_ids))
        scores = np.full(len(item_ids), float(default))
        known = [len(self.items.known([item_id])) == 1 for item_id in item_ids]
        numbers = self.items.known(item_ids)
        scores[np.array(known, dtype=bool)] = self._model.scores(self.items.features, numbers)
        return scores

    def recommend(self, count: int = 10, *, exclude: Iterable[str] = ()) -> list[Row]:
        """Return the best unseen items, the best first, as rows of `recommendations`.

        `exclude` may name items that the run does not have.
        """
        if count < 1:
            return []
        catalogue = self.items.catalogue
        items = np.concatenate([self.block["items"], self.items.known(exclude)]).astype(np.int32)
        left_out = LeftOut(catalogue.position_of[items], np.array([0, len(items)]))
        job = replace(self.facts.score, top=count, bottom=0)
        lists = lists_of(self.batch, job, self.items.features, catalogue, left_out)
        rows: list[Row] = lists.to_pylist()
        return rows

    def explain(self, item_id: str | None = None, *, count: int = 10) -> Row:
        """Return what contributes to an item's score.

        Without an item: what contributes to all scores, the user's ratings and the lists.
        """
        if item_id is not None:
            self.items.number(item_id)
        return self._case.explained(item_id, count)

    @cached_property
    def _model(self) -> StoredModel:
        return StoredModels(self.batch, self.items.features.item_ids)[0]

    @property
    def _case(self) -> Case:
        return Case(
            self.batch, self.row, self.block, self.items.facts, self.items.features,
            self.items.catalogue, self.facts.score, self.reviewers,
            self.facts.features_kind in FACTOR_KINDS,
        )  # fmt: skip
