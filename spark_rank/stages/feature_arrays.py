"""The features of a configuration, made from blocks."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from spark_rank.config import FeaturesConfig
from spark_rank.events import emit
from spark_rank.frames.item_features import (
    FeatureArrays,
    als_features,
    factor_features,
    offset_features,
    panel_features,
    reference_features,
)


def feature_arrays(
    settings: FeaturesConfig,
    blocks: DataFrame,
    items: DataFrame,
    *,
    middle: float,
    seed: int,
    stage: str,
    content: DataFrame | None = None,
) -> FeatureArrays:
    """Return features of any kind but `given`; `middle` is the middle of the rating scale.

    Factors start from the `content` of the items, ``item, name, value``, if there is any. Progress
    events on the rounds of factors name `stage`.
    """
    if settings.kind == "factors":
        return factor_features(
            blocks, items, rank=settings.rank, rounds=settings.rounds, seed=seed,
            user_share=settings.user_share, max_ratings=settings.max_ratings,
            choices=settings.choices == "prior",
            propensities=settings.propensities == "fitted", content=content,
            progress=partial(_emit_round, stage),
        )  # fmt: skip
    shrinkage = settings.offset_shrinkage
    if settings.kind == "als":
        return als_features(
            blocks, items, rank=settings.rank, rounds=settings.als_rounds,
            regularization=settings.als_regularization, shrinkage=shrinkage, seed=seed,
            user_share=settings.user_share, progress=partial(_emit_round, stage),
        )  # fmt: skip
    if settings.kind == "panel":
        return panel_features(
            blocks, items, size=settings.panel_size, choice=settings.panel_choice, middle=middle,
            shrinkage=shrinkage,
        )  # fmt: skip
    if settings.kind == "reference":
        return reference_features(
            blocks, items, size=settings.reference_size, least=settings.reference_min,
            most=settings.reference_max, most_reviewers=settings.reference_pool,
            all_ratings=settings.reference_ratings == "all", middle=middle, shrinkage=shrinkage,
            seed=seed,
        )  # fmt: skip
    return offset_features(blocks, items, shrinkage=shrinkage)


def _emit_round(stage: str, number: int, noise: float) -> None:
    if number % 5 == 0:
        text = f"round {number}, noise {noise:.4f}"
        emit("round", text, stage=stage, number=number, noise=noise)
