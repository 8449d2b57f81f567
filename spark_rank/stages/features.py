"""features: what items look like to a learner, as Parquet and as memory-mapped files."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.config.sections import check_features
from spark_rank.session.files import FileInfo
from spark_rank.stages.given_features import given_features, given_files
from spark_rank.stages.learned_features import factor_features, kept_features, run_with_factors
from spark_rank.stages.offset_features import offset_features
from spark_rank.stages.reviewer_features import panel_features, reference_features
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run

_MAKERS = {
    "factors": factor_features,
    "panel": panel_features,
    "reference": reference_features,
    "given": given_features,
    "offset": offset_features,
}
# the keys that each kind reads; others may change without a new run
_DECIDING = {
    "factors": ("rank", "rounds", "user_share", "max_ratings"),
    "panel": ("panel_size", "panel_choice", "offset_shrinkage"),
    "reference": (
        "reference_size", "reference_min", "reference_max", "reference_pool", "reference_ratings",
        "offset_shrinkage",
    ),
    "given": ("given", "given_scale", "offset_shrinkage"),
    "offset": ("offset_shrinkage",),
}  # fmt: skip


def features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Make the item features; no held-out rating decides them, save for `reference_ratings`."""
    if config.features.kept_from is not None:
        return kept_features(config, spark, run)
    return _MAKERS[config.features.kind](config, spark, run)


def _deciding_settings(config: Config) -> dict[str, Any]:
    settings = config.features
    names = ("kind", *_DECIDING[settings.kind])
    if settings.kept_from is not None:
        names = ("kind", "kept_from")
    if settings.kind == "given" and settings.given is None:
        names = ("kind", "given", "given_scale")  # documents of queries have no offset
    return {name: getattr(settings, name) for name in names}


def _inputs(config: Config, run: Run) -> list[list[object]] | None:
    """Return what tells one file of given vectors, or kept factors, from others; None without."""
    if config.features.kept_from is not None:
        earlier = Run(run.spark, config.store, config.features.kept_from).record("features")
        return [["features", earlier and earlier["fingerprint"]]]
    if config.features.given is None:
        return None
    files: list[FileInfo] = given_files(config, run)
    return [[info.path, info.size, info.modified_ms] for info in files]


def _check(config: Config, run: Run) -> None:
    if config.features.kept_from is not None:
        run_with_factors(config, run)


STAGE = Stage(
    name="features",
    run=features,
    settings=_deciding_settings,
    needs=lambda config: ("prepare", "ingest"),
    inputs=_inputs,
    check=_check,
    validate=check_features,
)
