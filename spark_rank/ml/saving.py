"""Saves and loads models: the metadata of pyspark.ml beside a store with one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader, MLWriter
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType
from pyspark.sql.utils import is_remote

from spark_rank.errors import InputDataError
from spark_rank.ml.runs import RUN_ID, open_run, save_run
from spark_rank.session.filesystem import Filesystem

if TYPE_CHECKING:
    from spark_rank.ml.model import PerUserRankerModel

_TYPES = "idTypes"


def check_can_store(method: str) -> None:
    """Raise `InputDataError` if the session cannot reach the file system of the store."""
    if is_remote():
        raise InputDataError(
            f"{method}: a session of Spark Connect cannot reach the store's file system: use a "
            "session without Connect, or read a run with spark_rank.Recommender"
        )


class ModelWriter(MLWriter):
    """Saves a model."""

    def __init__(self, model: PerUserRankerModel) -> None:
        super().__init__()
        self._model = model

    def save(self, path: str) -> None:
        """Save the model; with `overwrite`, replace what is at `path`."""
        check_can_store("save")
        super().save(path)

    def saveImpl(self, path: str) -> None:
        """Write the run, then the metadata: without it, an unfinished model cannot be loaded."""
        if Filesystem(self.sparkSession).exists(path):
            raise InputDataError(
                f"{path} already exists: use write().overwrite().save(path) to replace it"
            )
        model = self._model
        save_run(model.trained, path)
        types = [id_type.simpleString() for id_type in model.id_types]
        DefaultParamsWriter.saveMetadata(model, path, self.sparkSession, {_TYPES: types})


class ModelReader(MLReader):
    """Loads a model."""

    def load(self, path: str) -> PerUserRankerModel:
        """Return the model that was saved at `path`."""
        check_can_store("load")
        from spark_rank.ml.model import PerUserRankerModel

        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        trained = open_run(self.sparkSession, path, RUN_ID)
        types = [DataType.fromDDL(ddl) for ddl in metadata[_TYPES]]
        model = PerUserRankerModel(trained, *types)
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model

    @staticmethod
    def from_run(
        spark: SparkSession, store: str, run_id: str, learner: str | None
    ) -> PerUserRankerModel:
        """Return the models of a run; their ids are strings."""
        check_can_store("fromRun")
        from spark_rank.ml.model import PerUserRankerModel

        return PerUserRankerModel(open_run(spark, store, run_id, learner))
