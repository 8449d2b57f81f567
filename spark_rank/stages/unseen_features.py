"""Item features without some of the training ratings, for tuning on these."""

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
    settings: FeaturesConfig,
    blocks: DataFrame,
    items: DataFrame,
    files: FeatureFiles,
    seed: int,
    content: DataFrame | None,
) -> FeatureFiles:
    """Return the feature files, with the parts that depend on ratings made from `blocks`.

    Factors are learned again, from the same number of users. In all other kinds, only the item
    offset depends on a user's ratings: a reviewer's ratings are no features for that reviewer. The
    new files stay on every node until the session ends, and are not part of the run.
    """
    if settings.kind == "given" and settings.given is None:
        return files  # documents of queries have no offset
    has_factors = settings.kind in FACTOR_KINDS
    unseen = feature_arrays(
        replace(settings, propensities="none") if has_factors else replace(settings, kind="offset"),
        blocks,
        items,
        middle=0.0,
        seed=seed,
        stage="tune",
        content=content,
    )
    arrays: dict[str, NDArray[Any]] = {
        "offset": np.asarray(unseen.items.column("offset").to_numpy())
    }
    if has_factors:
        arrays |= {"matrix": unseen.matrix, "prior": unseen.prior}
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        new: dict[str, Any] = {
            name: publish_array(Path(folder), name, array) for name, array in arrays.items()
        }
        distribute_local(blocks.sparkSession, Path(folder), new.values())
    return replace(files, **new)
