"""The model: one ranking model per user, over DataFrames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc
from pyspark.ml import Model
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType

from spark_rank.errors import InputDataError
from spark_rank.frames.blocks import rating_rows
from spark_rank.frames.evaluate import evaluate
from spark_rank.frames.ids import id_text
from spark_rank.frames.predict import as_shown, predict
from spark_rank.ml.explanation import case_of
from spark_rank.ml.folding import fold_in, newly_rated
from spark_rank.ml.lists import Names, lists_of_items, lists_of_users, similar_items
from spark_rank.ml.saving import ModelReader, ModelWriter
from spark_rank.ml.settings import TrainingParams, column_defaults, defaults
from spark_rank.ml.trained import Trained
from spark_rank.stages.evaluate import measures_of
from spark_rank.stages.training import fitted_propensities
from spark_rank.tables.contracts import ITEM_FEATURES
from spark_rank.users.evaluating import CURVE, EvaluateJob

FALLBACK, NAN, DROP = "fallback", "nan", "drop"
SHOWN = "shown"
_USER, _ITEM, _KNOWN = "_spark_rank_user", "_spark_rank_item", "_spark_rank_known"


class PerUserRankerModel(Model, TrainingParams, MLWritable, MLReadable["PerUserRankerModel"]):
    """One ranking model per user, learned by `PerUserRanker.fit`, loaded, or opened from a run."""

    def __init__(
        self,
        trained: Trained,
        user_type: DataType | None = None,
        item_type: DataType | None = None,
    ) -> None:
        super().__init__()
        self.trained = trained
        self.id_types = user_type or StringType(), item_type or StringType()
        self._setDefault(**column_defaults(), **defaults())

    def _transform(self, dataset: DataFrame) -> DataFrame:
        """Add the predicted rating to every row; coldStartStrategy decides for unknown ids."""
        strategy = self.getColdStartStrategy()
        if strategy not in (FALLBACK, NAN, DROP):
            raise InputDataError(
                f"coldStartStrategy {strategy!r} is unknown: use {FALLBACK}, {NAN} or {DROP}"
            )
        pairs = dataset.withColumns({
            _USER: id_text(dataset, self.getUserCol()), _ITEM: id_text(dataset, self.getItemCol())
        })  # fmt: skip
        name, trained = self.getPredictionCol(), self.trained
        predicted = predict(
            pairs, trained.scoring_models(), trained.items, trained.pair_job,
            user=_USER, item=_ITEM, prediction=name, known=_KNOWN,
        )  # fmt: skip
        if self.getOrDefault("predictFor") == SHOWN:
            facts = fitted_propensities("predictFor", trained.features)
            predicted = predicted.withColumn(name, as_shown(F.col(f"`{name}`"), facts))
        if strategy == DROP:
            predicted = predicted.where(_KNOWN)
        if strategy == NAN:
            rating = F.when(F.col(_KNOWN), F.col(f"`{name}`")).otherwise(F.lit(float("nan")))
            predicted = predicted.withColumn(name, rating)
        return predicted.drop(_USER, _ITEM, _KNOWN)

    def recommendForAllUsers(self, numItems: int, *, rated: bool = False) -> DataFrame:
        """Return the best `numItems` items of every user; with `rated`, rated items too."""
        return self._lists(None, numItems, rated=rated)

    def recommendForUserSubset(
        self, dataset: DataFrame, numItems: int, *, rated: bool = False
    ) -> DataFrame:
        """Return the best items of the users in `dataset`; unknown users have no list."""
        users = dataset.select(id_text(dataset, self.getUserCol()).alias("user_id"))
        return self._lists(users, numItems, rated=rated)

    def recommendForAllItems(self, numUsers: int, *, rated: bool = False) -> DataFrame:
        """Return the best `numUsers` users of every item; with `rated`, users who rated it too."""
        return lists_of_items(
            self.trained, self.trained.items, numUsers, self._names(), rated=rated
        )

    def recommendForItemSubset(
        self, dataset: DataFrame, numUsers: int, *, rated: bool = False
    ) -> DataFrame:
        """Return the best users of the items in `dataset`; unknown items have no list."""
        items = dataset.select(id_text(dataset, self.getItemCol()).alias("item_id"))
        return lists_of_items(self.trained, items, numUsers, self._names(), rated=rated)

    def similarItems(self, dataset: DataFrame, numItems: int) -> DataFrame:
        """Return the items with the most similar features, for each known item in `dataset`."""
        items = dataset.select(id_text(dataset, self.getItemCol()).alias("item_id"))
        return similar_items(self.trained, items, numItems, self._names())

    def foldIn(self, dataset: DataFrame) -> PerUserRankerModel:
        """Return a model that also has the users in `dataset`, each learned from these ratings.

        Item features stay as they are. A user whom the model already has is learned anew, from
        the ratings in `dataset` alone.
        """
        folded = fold_in(self.trained, self._ratings(dataset, weighted=True))
        return self._copyValues(PerUserRankerModel(folded, *self.id_types))

    def evaluate(self, dataset: DataFrame) -> DataFrame:
        """Return the metrics of every known user in `dataset`, with the columns of `metrics`."""
        trained = self.trained
        offset = np.asarray(trained.opened.offset)
        measures = measures_of(
            trained.config.evaluate,
            trained.config.train,
            scale=trained.scale,
            limits=trained.limits,
            ratings=trained.limits,
            offsets=(float(offset.min()), float(offset.max())),
            squared_radius=trained.features.squared_radius,
        )
        blocks = newly_rated(trained, self._ratings(dataset))
        job = EvaluateJob(trained.job.files, measures)
        sizes = blocks.select("user_id", (F.size("items") - F.col("n_train")).alias("n_test"))
        models = trained.scoring_models().drop("n_test").join(sizes, "user_id")
        return evaluate(blocks, models, job, trained.buckets).drop(CURVE)

    def explain(self, user: Any, item: Any = None, count: int = 10) -> dict[str, Any]:
        """Return what contributes to a user's scores, or to the score of one item, as a dict."""
        case = case_of(self.trained, str(user), self._beta())
        if item is not None and pc.index(self.trained.opened.item_ids, str(item)).as_py() < 0:
            raise InputDataError(f"explain: the model has no item {str(item)!r}")
        return case.explained(None if item is None else str(item), count)

    @property
    def userModels(self) -> DataFrame:
        """Return the model rows: for every user one of the learner and one of the item offset."""
        return self.trained.models

    @property
    def itemFeatures(self) -> DataFrame:
        """Return the features of every item."""
        columns = [column.name for column in ITEM_FEATURES.columns]
        return self.trained.tables[ITEM_FEATURES.table].select(*columns)

    @classmethod
    def fromRun(cls, store: str, run_id: str, learner: str | None = None) -> PerUserRankerModel:
        """Open the models of a run: those learned from all ratings, if the run has them."""
        return ModelReader.from_run(SparkSession.active(), store, run_id, learner)

    def write(self) -> ModelWriter:
        """Return the writer, which saves the model as a store with one run."""
        return ModelWriter(self)

    @classmethod
    def read(cls) -> ModelReader:
        """Return the reader of saved models."""
        return ModelReader()

    def _lists(self, users: DataFrame | None, count: int, *, rated: bool) -> DataFrame:
        return lists_of_users(
            self.trained, users, count, self._names(), beta=self._beta(), rated=rated
        )

    def _beta(self) -> float:
        return float(self.getOrDefault("beta"))

    def _names(self) -> Names:
        return Names(self.getUserCol(), self.getItemCol(), *self.id_types)

    def _ratings(self, dataset: DataFrame, *, weighted: bool = False) -> DataFrame:
        rating, time = self.getOrDefault("ratingCol"), self.optional_column("timestampCol")
        time_column = time if time in dataset.columns else None
        weight = self.optional_column("weightCol") if weighted else None
        return rating_rows(
            dataset, self.getUserCol(), self.getItemCol(), rating, time_column, weight
        )
