"""Item features as they are when some training ratings are held back from them."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from spark_rank.config import FeaturesConfig
from spark_rank.config.schema import FACTOR_KINDS
from spark_rank.features.files import FeatureFiles, distribute_local, publish_array
from spark_rank.stages.feature_arrays import feature_arrays


def unseen_features(
    settings: FeaturesConfig, blocks: DataFrame, items: DataFrame, files: FeatureFiles, seed: int
) -> FeatureFiles:
    """Return the feature files but for what ratings decide: that is made from `blocks`.

    Factors are learned once more, from as many users. Of all other kinds only the item offset has
    seen a user's ratings: reviewers show their own, and never to themselves. The new files are on
    every node as long as the session, and never part of a run.
    """
    if settings.kind == "given" and settings.given is None:
        return files  # documents of queries have no offset
    learned = settings.kind in FACTOR_KINDS
    made = feature_arrays(
        settings if learned else replace(settings, kind="offset"),
        blocks,
        items,
        middle=0.0,
        seed=seed,
        stage="tune",
    )
    arrays: dict[str, NDArray[Any]] = {"offset": np.asarray(made.items.column("offset").to_numpy())}
    if learned:
        arrays |= {"matrix": made.matrix, "prior": made.prior}
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        new: dict[str, Any] = {
            name: publish_array(Path(folder), name, array) for name, array in arrays.items()
        }
        distribute_local(blocks.sparkSession, Path(folder), new.values())
    return replace(files, **new)
