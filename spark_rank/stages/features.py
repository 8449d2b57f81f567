"""features: the item features, as Parquet and as files that workers map into memory."""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import Config, FeaturesConfig
from spark_rank.config.sections import check_features
from spark_rank.frames.item_features import FeatureArrays, feature_tables
from spark_rank.reader.recorded import REFIT, rating_limits
from spark_rank.records.features import FactorFacts, FeatureFacts, ReviewerFacts, ShownFacts
from spark_rank.session.files import FileInfo
from spark_rank.stages.feature_arrays import feature_arrays
from spark_rank.stages.feature_tables import publish_files
from spark_rank.stages.given_features import given_features, given_files
from spark_rank.stages.kept_features import kept_features, run_with_factors
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEM_CONTENT, ITEMS, TABLES
from spark_rank.wording import count_of

# the keys that decide each kind; other keys may change without a new run
_DECIDING = {
    "factors": ("rank", "rounds", "user_share", "max_ratings", "choices", "propensities"),
    "als": ("rank", "user_share", "als_rounds", "als_regularization", "offset_shrinkage"),
    "panel": ("panel_size", "panel_choice", "offset_shrinkage"),
    "reference": (
        "reference_size", "reference_min", "reference_max", "reference_pool", "reference_ratings",
        "offset_shrinkage",
    ),
    "given": ("given", "given_scale", "offset_shrinkage"),
    "offset": ("offset_shrinkage",),
}  # fmt: skip


def features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Make the item features; only `reference_ratings: all` uses held-out ratings."""
    settings = config.features
    if settings.kept_from is not None:
        return kept_features(config, spark, run)
    if settings.kind == "given":
        return given_features(config, spark, run)
    stage = REFIT if run.all_ratings else STAGE.name
    arrays = feature_arrays(
        settings, run.read(BLOCKS), run.read(ITEMS), middle=scale_middle(run), seed=config.seed,
        stage=stage, content=item_content(run),
    )  # fmt: skip
    tables = {
        name: run.write(TABLES[name], table)
        for name, table in feature_tables(spark, arrays).items()
    }
    facts = arrays.facts(publish_files(run, arrays))
    return StageResult(_in_words(settings, arrays, facts), tables, facts)


def item_content(run: Run) -> DataFrame | None:
    """Return what `input.items` has said of the items; None if it was not set."""
    return run.read(ITEM_CONTENT) if run.has(ITEM_CONTENT) else None


def scale_middle(run: Run) -> float:
    """Return the middle of the rating scale, which does not depend on the reviewers."""
    low, high = rating_limits(run)
    return (low + high) / 2.0


def _in_words(settings: FeaturesConfig, arrays: FeatureArrays, facts: FeatureFacts) -> str:
    items = count_of(len(arrays.items), "item")
    if isinstance(facts, FactorFacts):
        return (
            f"{items} × {count_of(settings.rank, 'factor')} from "
            f"{count_of(facts.ratings, 'training rating')} of "
            f"{count_of(facts.users, 'user')}, noise {facts.noise:.3f}"
            + (f", {count_of(len(facts.content), 'column')} of content" if facts.content else "")
            + ("" if facts.shown is None else f", {_shown_in_words(facts.shown)}")
        )
    if arrays.pool is not None and isinstance(facts, ReviewerFacts):
        drawn = _drawn(arrays.pool.size, facts)
        return f"{drawn}: {count_of(len(arrays.pool.ratings), 'rating')}"
    if settings.kind == "panel":
        return f"{items} × {count_of(arrays.matrix.shape[1], 'reference reviewer')}"
    return f"{items}, only the item offset"


def _shown_in_words(shown: ShownFacts) -> str:
    return (
        f"a rating's propensity times {math.exp(shown.liking):.2f} a unit, "
        f"{count_of(shown.ratings, 'rating')} held back worth {shown.effective:,.0f}"
    )


def _drawn(size: int, facts: ReviewerFacts) -> str:
    reviewers = "all" if facts.reviewers == facts.group else f"{facts.reviewers:,}"
    of_group = f"{reviewers} of {count_of(facts.group, 'user')}"
    if size > facts.reviewers:
        return f"reviewers are {of_group}, because features.reference_size is {size:,}"
    return f"{count_of(size, 'reviewer')} for every user, drawn from {of_group}"


def _deciding_settings(config: Config) -> dict[str, Any]:
    settings = config.features
    names = ("kind", *_DECIDING[settings.kind])
    if settings.kept_from is not None:
        names = ("kind", "kept_from")
    if settings.kind == "given" and settings.given is None:
        names = ("kind", "given", "given_scale")  # documents of queries have no offset
    return {name: getattr(settings, name) for name in names}


def _inputs(config: Config, run: Run) -> list[list[object]] | None:
    """Return what identifies the given vectors or the kept factors; None without them."""
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
