"""A run's models as a pyfunc model of MLflow: scores and lists, without Spark.

A question is a frame with a column `user`. A row that has an `item` too is scored; a row without
one is answered by the user's list, `k` items long, or as long as the run's. The answer has columns
``user, item, score``: a row for every item scored, and for every place of a list, in the order of
the questions. Of a user or an item that the run does not have the score is NaN, the list empty.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import spark_rank
from spark_rank.errors import ConfigError, UnknownIdError
from spark_rank.reader.recommender import Recommender
from spark_rank.reader.user_model import UserModel

if TYPE_CHECKING:
    from mlflow.models import ModelSignature
    from mlflow.models.model import ModelInfo


def log_model(
    run: Recommender | str | os.PathLike[str],
    name: str = "model",
    *,
    learner: str | None = None,
    measured: bool = False,
    **more: Any,
) -> ModelInfo:
    """Log a run's models to MLflow, as `mlflow.pyfunc.log_model` does, which takes `more`.

    `run` is a `Recommender`, or what `Recommender.open` takes with `learner` and `measured`. The
    model holds a copy of the files that answers come from, and nothing pickled.
    """
    from mlflow import pyfunc

    if not isinstance(run, Recommender):
        run = Recommender.open(run, learner=learner, measured=measured)
    elif learner is not None or measured:
        raise ConfigError("log_model: a Recommender has its learner: say it to Recommender.open")
    more = {"pip_requirements": [f"spark-rank=={spark_rank.__version__}"], **more}
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as place:
        folder = Path(place) / "run"
        run.copy_to(folder)
        return pyfunc.log_model(
            name=name,
            loader_module=__name__,
            data_path=str(folder),
            signature=signature(),
            model_config={"learner": run.learner, "measured": run.measured},
            **more,
        )


def signature() -> ModelSignature:
    """Return the columns of questions and answers."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    asked = [
        ColSpec("string", "user"),
        ColSpec("string", "item", required=False),
        ColSpec("long", "k", required=False),
    ]
    told = [ColSpec("string", "user"), ColSpec("string", "item"), ColSpec("double", "score")]
    return ModelSignature(Schema(asked), Schema(told))


class RankingModel:
    """What MLflow loads: answers frames of questions."""

    def __init__(self, recommender: Recommender) -> None:
        self.recommender = recommender

    def predict(self, questions: pd.DataFrame, params: Mapping[str, Any] | None = None) -> Any:
        """Return the answers; `params`, which MLflow hands over, are none."""
        asked = questions.reset_index(drop=True)
        with_item = asked["item"].notna() if "item" in asked else pd.Series(False, asked.index)
        parts = [self._scored(asked[with_item]), *map(self._listed, asked[~with_item].itertuples())]
        told = pd.concat([part for part in parts if len(part)] or parts[:1])
        return told.sort_index(kind="stable").reset_index(drop=True)

    def _scored(self, asked: pd.DataFrame) -> pd.DataFrame:
        scores = np.full(len(asked), np.nan)
        if len(asked):
            items = asked["item"].to_numpy()
            for user, places in asked.groupby("user", sort=False).indices.items():
                scores[places] = self._scores(str(user), list(items[places]))
        told = asked.reindex(columns=["user", "item"])
        return told.assign(score=scores)

    def _scores(self, user: str, items: list[str]) -> NDArray[np.float64] | float:
        model = self._model_of(user)
        return np.nan if model is None else model.score(items, default=np.nan)

    def _listed(self, asked: Any) -> pd.DataFrame:
        count = getattr(asked, "k", np.nan)
        length = self.recommender.list_length if pd.isna(count) else int(count)
        model = self._model_of(asked.user)
        rows = [] if model is None else model.recommend(length)
        told = {
            "user": [asked.user] * len(rows),
            "item": [row["item_id"] for row in rows],
            "score": np.array([row["score"] for row in rows], dtype=np.float64),
        }
        return pd.DataFrame(told, index=[asked.Index] * len(rows))

    def _model_of(self, user: str) -> UserModel | None:
        try:
            return self.recommender.model_of(user)
        except UnknownIdError:
            return None


def _load_pyfunc(path: str, model_config: Mapping[str, Any]) -> RankingModel:
    """Return the model in a folder; MLflow calls this by its name."""
    settings = {"learner": model_config["learner"], "measured": model_config["measured"]}
    return RankingModel(Recommender.open(path, **settings))
