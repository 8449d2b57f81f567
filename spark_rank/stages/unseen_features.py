"""Item features as they are when some training ratings are held back from them."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.features.files import FeatureFiles, distribute_local, publish_array
from spark_rank.features.offset import item_offsets
from spark_rank.stages.learned_features import learned_factors
from spark_rank.store.run import Run
from spark_rank.tables.contracts import ITEM_FEATURES, ITEMS


def unseen_features(
    config: Config, spark: SparkSession, run: Run, blocks: DataFrame, files: FeatureFiles
) -> FeatureFiles:
    """Return the run's feature files but for what ratings decide: that is made from `blocks`.

    Factors are learned once more, from as many users as the run's own. Of all other kinds only the
    item offset has seen a user's ratings: reviewers show their own, and never to themselves. The
    new files are on every node as long as the session, and never part of the run.
    """
    settings = (run.record("features") or {})["settings"]
    if settings["kind"] == "factors":
        arrays = _factors(config, run, blocks)
    elif settings["kind"] == "given" and settings["given"] is None:
        return files  # documents of queries have no offset
    else:
        arrays = {"offset": _offset(settings["offset_shrinkage"], run, blocks)}
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        made: dict[str, Any] = {
            name: publish_array(Path(folder), name, array) for name, array in arrays.items()
        }
        distribute_local(spark, Path(folder), made.values())
    return replace(files, **made)


def _factors(config: Config, run: Run, blocks: DataFrame) -> dict[str, NDArray[np.floating]]:
    # factors that are kept from another run may have another rank than the configuration says
    width = run.read(ITEM_FEATURES).select(F.size("features").alias("width")).head()
    settings = replace(config.features, rank=width["width"] - 1) if width else config.features
    found = learned_factors(
        settings, blocks, n_items=run.read(ITEMS).count(), seed=config.seed, stage="tune"
    )
    return {"matrix": found.matrix, "offset": found.offset, "prior": found.prior}


def _offset(shrinkage: float, run: Run, blocks: DataFrame) -> NDArray[np.float64]:
    offsets = item_offsets(blocks, run.read(ITEMS).select("item", "item_id"), shrinkage)
    in_order = offsets.select("item", "offset").toArrow().sort_by("item")
    return np.asarray(in_order["offset"].to_numpy())
