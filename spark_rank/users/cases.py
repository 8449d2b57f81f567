"""Explains one user: the rated items, the lists, and what contributes to the scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.features.files import ItemFeatures
from spark_rank.users.explaining import Influences, Pulls
from spark_rank.users.learning import APPROXIMATED, LEARNED
from spark_rank.users.recommending import Catalogue, RecommendJob, lists_of, predictions
from spark_rank.users.stored_models import StoredModels

Row = dict[str, Any]
Vector = NDArray[np.float64]
_BLOCK = 8192  # items whose features are in memory at once


@dataclass(frozen=True)
class Case:
    """One user's rows of the tables, and facts about the items.

    `batch` is the user as a worker of the stage `recommend` gets it, `record` the model row as it
    was trained. Models from all ratings are explained if the run has them.
    """

    batch: pa.RecordBatch
    record: Row
    block: Row
    items: pa.Table
    features: ItemFeatures
    catalogue: Catalogue
    job: RecommendJob
    reviewers: dict[int, str]
    has_factors: bool

    def head(self) -> Row:
        """Return the user, the learner, the status and the numbers of ratings."""
        names = ("user_id", "learner", "status", "reason", "n_train", "n_test", "kernel")
        return {**{name: self.record[name] for name in names},
                "hyperparameters": self.record["hyperparameters"]}  # fmt: skip

    def explained(self, item_id: str | None, count: int) -> Row:
        """Return what contributes to an item's score.

        Without an item: what contributes to all scores, the user's ratings and the lists.
        """
        if item_id is not None:
            return {**self.head(), "item": self.item(item_id, count)}
        return {**self.head(), **self.lists(), **self.influences_on_all(count)}

    def lists(self) -> Row:
        """Return the user's rated items by descending score, and the lists of unseen items."""
        items = [int(item) for item in self.block["items"]]
        items.sort(key=lambda item: (-self._scored(item)["score"], self._id(item)))
        rated = [{"position": place, **self._described(item)}
                 for place, item in enumerate(items, start=1)]  # fmt: skip
        lists: dict[str, list[Row]] = {"top": [], "bottom": []}
        rows = lists_of(self.batch, self.job, self.features, self.catalogue)
        for row in rows.to_pylist():
            lists[row["list"]].append(
                {name: row[name] for name in ("position", "item_id", "title", "score",
                 "predicted_rank", "predicted_rating", "item_ratings", "source", "reason")}
            )  # fmt: skip
        return {"own_ratings": rated, **lists}

    def item(self, item_id: str, count: int) -> Row:
        """Return the parts of an item's score, and the features and rated items behind them."""
        number = self.features.item_ids.index(item_id).as_py()
        return {
            **self._described(number),
            "item_ratings": self.items.column("n_ratings")[number].as_py(),
            "parts": self.influences.parts(number),
            "features": self._features(self.influences.feature_pulls(number), count),
            "rated_items": self._rated(self.influences.rated_items(number), count),
        }

    def influences_on_all(self, count: int) -> Row:
        """Return the features and rated items that change the scores of all items most."""
        return {
            "features": self._features(self.influences.feature_spreads(), count),
            "rated_items": self._rated(self.influences.rated_item_spreads(), count),
        }

    @cached_property
    def influences(self) -> Influences:
        """Return the model with the training items that it was learned from."""
        trained = np.array(self.block["items"][: self.block["n_train"]], dtype=np.int64)
        expects = self.record["expected_norm"] is not None
        return Influences(
            StoredModels(self.batch, self.features.item_ids)[0],
            self.features,
            trained,
            self.features.expected_weights(trained.astype(np.int32)) if expects else None,
            self.record["status"] in (LEARNED, APPROXIMATED),
        )

    def _id(self, item: int) -> str:
        return str(self.features.item_ids[item])

    def _scored(self, item: int) -> Row:
        score, rank, rating = (float(values[item]) for values in self._scores)
        return {"score": score, "predicted_rank": None if np.isnan(rank) else int(rank),
                "predicted_rating": None if np.isnan(rating) else rating}  # fmt: skip

    @cached_property
    def _scores(self) -> tuple[Vector, Vector, Vector]:
        """Return the score, predicted rank and predicted rating of every item; NaN if undefined."""
        items = np.arange(len(self.features.item_ids))
        parts = [self.influences.model.scores(self.features, items[start : start + _BLOCK])
                 for start in range(0, len(items), _BLOCK)]  # fmt: skip
        scores = np.concatenate(parts)
        return scores, *predictions(scores, np.zeros_like(items), self.batch, self.job)

    def _described(self, item: int) -> Row:
        row = {"item_id": self._id(item), "title": self.items.column("title")[item].as_py(),
               **self._scored(item), "rating": None, "part": None}  # fmt: skip
        if item in self._places:
            place = self._places[item]
            row["rating"] = self.block["ratings"][place]
            row["part"] = "training" if place < self.block["n_train"] else "held out"
        return row

    @cached_property
    def _places(self) -> dict[int, int]:
        return {int(item): place for place, item in enumerate(self.block["items"])}

    def _features(self, pulls: Pulls, count: int) -> list[Row]:
        model = self.influences.model
        chosen = pulls.strongest(count)
        return [
            {"feature": int(number), "name": self._feature_name(int(number), model.reviewers),
             "weight": float(weight), "pull": float(pull)}
            for number, weight, pull in zip(*_columns(chosen), strict=True)
            if pull != 0.0
        ]  # fmt: skip

    def _feature_name(self, number: int, reviewers: Any) -> str:
        column = number if reviewers is None else int(reviewers[number])
        if column in self.reviewers:
            return f"reviewer {self.reviewers[column]}"
        return f"{'factor' if self.has_factors else 'feature'} {number}"

    def _rated(self, pulls: Pulls, count: int) -> list[Row]:
        rows = []
        for number, coefficient, pull in zip(*_columns(pulls.strongest(count)), strict=True):
            item = self._described(int(number))
            rows.append({"item_id": item["item_id"], "title": item["title"],
                         "rating": item["rating"], "coefficient": float(coefficient),
                         "pull": float(pull)})  # fmt: skip
        return rows


def _columns(pulls: Pulls) -> tuple[Any, Any, Any]:
    return pulls.numbers, pulls.coefficients, pulls.amounts
