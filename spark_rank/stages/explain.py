"""explain: what moved one user's scores, and the user's own ratings beside the new list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.schema import RecommendConfig
from spark_rank.config.values import convert
from spark_rank.errors import ConfigError
from spark_rank.features.files import ItemFeatures, open_distributed
from spark_rank.session.session import spark_session
from spark_rank.stages.final_run import as_refitted
from spark_rank.stages.models import all_models
from spark_rank.stages.recommend import (
    asked_learner,
    asked_models,
    item_facts,
    recommend_job,
)
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract
from spark_rank.tables.contracts import BLOCKS, ITEMS, PANEL, USERS
from spark_rank.users.explaining import Influences, Pulls
from spark_rank.users.joining import MODELS_SCHEMA, scoring_models, with_models
from spark_rank.users.learning import APPROXIMATED, LEARNED
from spark_rank.users.recommending import (
    RecommendJob,
    facts_as_bytes,
    predictions,
    recommend_batches,
)
from spark_rank.users.stored_models import stored_model

Row = dict[str, Any]
Vector = NDArray[np.float64]
_BLOCK = 8192  # items whose features are held at once
_NEAR = 3  # ids suggested for one that is not there


@dataclass(frozen=True)
class Question:
    """Whom and what to explain; `count` is how many of everything to name."""

    user_id: str
    item_id: str | None = None
    learner: str | None = None
    count: int = 10


def explain(config: Config, question: Question) -> Row:
    """Answer in a Spark session of its own."""
    with spark_session(f"spark_rank explain {config.run_id}", config.spark) as spark:
        return answer(config, Run(spark, config.store, config.run_id), question)


def answer(config: Config, run: Run, question: Question) -> Row:
    """Return the explanation as plain values, ready for JSON or text."""
    case = find(config, run, question)
    if question.item_id is not None:
        return {**case.head(), "item": case.item(question.item_id, question.count)}
    return {**case.head(), **case.lists(), **case.influences_on_all(question.count)}


@dataclass(frozen=True)
class Case:
    """One user's rows of the tables, and the items' facts.

    `batch` is the user as a worker of the stage `recommend` gets it, `record` the model row as it
    was trained. Where there are models from all ratings, they are explained.
    """

    batch: pa.RecordBatch
    record: Row
    block: Row
    items: pa.Table
    features: ItemFeatures
    job: RecommendJob
    reviewers: dict[int, str]
    has_factors: bool

    def head(self) -> Row:
        """Return who was learned from how much, and how."""
        names = ("user_id", "learner", "status", "reason", "n_train", "n_test", "kernel")
        return {**{name: self.record[name] for name in names},
                "hyperparameters": self.record["hyperparameters"]}  # fmt: skip

    def lists(self) -> Row:
        """Return the user's own ratings in the order of their scores, and the new lists."""
        own = [int(item) for item in self.block["items"]]
        order = sorted(range(len(own)), key=lambda at: (-self._scored(own[at])["score"],
                                                        self._id(own[at])))  # fmt: skip
        rated = [{"position": place, **self._described(own[at])}
                 for place, at in enumerate(order, start=1)]  # fmt: skip
        found: dict[str, list[Row]] = {"top": [], "bottom": []}
        facts = self.items.select(["title", "n_ratings", "candidate"]).combine_chunks()
        shared = SimpleNamespace(value=facts_as_bytes(facts.to_batches()[0]))
        for batch in recommend_batches(
            iter([self.batch]), self.job, shared, lambda files: self.features
        ):
            for row in batch.to_pylist():
                found[row["list"]].append(
                    {name: row[name] for name in ("position", "item_id", "title", "score",
                     "predicted_rank", "predicted_rating", "item_ratings", "source", "reason")}
                )  # fmt: skip
        return {"own_ratings": rated, **found}

    def item(self, item_id: str, count: int) -> Row:
        """Return the parts of an item's score, and what in the model they come from."""
        number = self.features.item_ids.index(item_id).as_py()
        return {
            **self._described(number),
            "item_ratings": self.items.column("n_ratings")[number].as_py(),
            "parts": self.influences.parts(number),
            "features": self._features(self.influences.feature_pulls(number), count),
            "rated_items": self._rated(self.influences.rated_items(number), count),
        }

    def influences_on_all(self, count: int) -> Row:
        """Return the features and rated items that move the scores of all items most."""
        return {
            "features": self._features(self.influences.feature_spreads(), count),
            "rated_items": self._rated(self.influences.rated_item_spreads(), count),
        }

    @cached_property
    def influences(self) -> Influences:
        """Return the model beside what it was learned from."""
        trained = np.array(self.block["items"][: self.block["n_train"]], dtype=np.int64)
        expects = self.record["expected_norm"] is not None
        return Influences(
            stored_model(self.batch, 0, self.features.item_ids),
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
        """Return score, rank and rating predicted of every item; NaN where there is none."""
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
            about = self._described(int(number))
            rows.append({"item_id": about["item_id"], "title": about["title"],
                         "rating": about["rating"], "coefficient": float(coefficient),
                         "pull": float(pull)})  # fmt: skip
        return rows


def _columns(pulls: Pulls) -> tuple[Any, Any, Any]:
    return pulls.numbers, pulls.coefficients, pulls.amounts


def find(config: Config, run: Run, question: Question) -> Case:
    """Collect what there is about the user; of anybody else no more than a name."""
    _check_trained(run)
    listed = _list_settings(config, run)
    settings = replace(listed, learner=question.learner or listed.learner)
    key = "--learner" if question.learner else "recommend.learner"
    label = asked_learner(settings, run, key)
    run = as_refitted(run, label)
    user = F.col("user_id") == question.user_id
    blocks = run.read(BLOCKS).where(user)
    block, record = blocks.head(), all_models(run).where(user & (F.col("learner") == label)).head()
    if block is None or record is None:
        raise ConfigError(_no_user(run, question.user_id, label))
    if question.item_id is not None:
        _check_item(run, question.item_id)
    models = all_models(run).where(user).select(*MODELS_SCHEMA.names).toArrow()
    own_model = scoring_models(models.cast(MODELS_SCHEMA), asked_models(run, label))
    own_block = blocks.select("items", "bucket").toArrow().combine_chunks().to_batches()[0]
    files = recommend_job(settings, label, run.spark, run)
    return Case(
        with_models(own_block, own_model, pa.array([0], pa.int32())),
        record.asDict(), block.asDict(), item_facts(settings, run),
        open_distributed(files.files), files, _reviewers(run),
        (run.record("features") or {})["settings"].get("kind") == "factors",
    )  # fmt: skip


def _list_settings(config: Config, run: Run) -> RecommendConfig:
    """Return how the run's lists were made; where it has none, how this command would."""
    record = run.record("recommend")
    if record is None:
        return config.recommend
    settings: RecommendConfig = convert(RecommendConfig, record["settings"], "recommend")
    return settings


def _check_trained(run: Run) -> None:
    if run.record("train") is None:
        raise ConfigError(
            f"explain: run {run.run_id!r} in {run.root} has no models yet: run `spark-rank train` "
            "first, or `spark-rank pipeline` for all"
        )


def _reviewers(run: Run) -> dict[int, str]:
    if not run.has(PANEL):
        return {}
    return {row["feature"]: row["user_id"] for row in run.read(PANEL).collect()}


def _no_user(run: Run, user_id: str, label: str) -> str:
    if run.read(USERS).where(F.col("user_id") == user_id).head() is not None:
        return (
            f"--user: {user_id!r} has no model of {label!r}: prepare.filters or train.targets_min "
            "and targets_max left the user out"
        )
    return f"--user: the run has no user {user_id!r} ({_near(run, USERS, 'user_id', user_id)})"


def _check_item(run: Run, item_id: str) -> None:
    if run.read(ITEMS).where(F.col("item_id") == item_id).head() is None:
        raise ConfigError(
            f"--item: the run has no item {item_id!r} ({_near(run, ITEMS, 'item_id', item_id)})"
        )


def _near(run: Run, contract: Contract, column: str, wanted: str) -> str:
    """Return ``did you mean …`` with the ids that take the fewest letters to change."""
    distance = F.levenshtein(F.col(column), F.lit(wanted))
    rows = run.read(contract).orderBy(distance, column).limit(_NEAR).collect()
    names = [repr(row[column]) for row in rows]
    return f"did you mean {' or '.join(names)}?" if names else "there are none"
