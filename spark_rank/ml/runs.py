"""A model as a run of a store, and a run as a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, InputConfig, PrepareConfig
from spark_rank.config.schema import ITEM_OFFSET, RecommendConfig
from spark_rank.config.values import convert
from spark_rank.data.filters import count_activity
from spark_rank.data.profile import activity_profile, rating_profile
from spark_rank.data.rating_scale import scale_table
from spark_rank.errors import ConfigError
from spark_rank.features.files import place_of_files
from spark_rank.frames.item_counts import block_sizes, item_counts
from spark_rank.ml.trained import Trained
from spark_rank.stages import STAGES
from spark_rank.stages.feature_tables import file_facts
from spark_rank.stages.final_run import FEATURE_FILES, as_refitted
from spark_rank.stages.incremental import job_facts
from spark_rank.stages.recommend import asked_learner
from spark_rank.stages.refit import measured_config
from spark_rank.stages.runner import run_stages, working_on
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.stages.train import all_specs
from spark_rank.stages.training import learn_job
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract
from spark_rank.tables.contracts import (
    BLOCKS,
    ITEM_COUNTS,
    ITEM_FEATURES,
    ITEMS,
    MODELS,
    PANEL,
    QUARANTINE,
    RATING_SCALE,
    RATINGS,
    REVIEWER_RATINGS,
    TABLES,
    USERS,
)
from spark_rank.wording import count_of

# the run that a saved model is, in a store of its own
RUN_ID = "model"
_FEATURE_TABLES = (ITEM_FEATURES, PANEL, REVIEWER_RATINGS)
Write = Callable[[Trained, Run], StageResult]


def save_run(trained: Trained, store: str) -> None:
    """Write the tables of a model, and their records, as a run of a store."""
    run = Run(trained.spark, store, RUN_ID)
    config = replace(trained.config, store=store, run_id=RUN_ID, previous=None)
    writers: dict[str, Write] = {
        "ingest": _write_ratings,
        "prepare": _write_blocks,
        "features": _write_features,
        "train": _write_models,
    }
    stages = [_stage(name, writer, trained) for name, writer in writers.items()]
    with working_on(run):
        run_stages(stages, config, trained.spark, run)


def open_run(spark: SparkSession, store: str, run_id: str, learner: str | None = None) -> Trained:
    """Return the models of one learner of a run: those from all ratings, if it has them."""
    measured = Run(spark, store, run_id)
    if measured.record("train") is None:
        raise ConfigError(f"run {run_id!r} in {store} has no models: it has not finished 'train'")
    label = asked_learner(RecommendConfig(learner=learner), measured, "learner")
    config = _recorded_config(measured)
    specs = [spec for spec in all_specs(config, measured) if spec.label in (label, ITEM_OFFSET)]
    if label not in [spec.label for spec in specs if not spec.is_baseline]:
        raise ConfigError(f"run {run_id!r}: {label!r} is no learner of 'train': name one that is")
    run = as_refitted(measured, label)
    record, ingested = run.record("features") or {}, run.record("ingest") or {}
    status = (run.record("train") or {})["facts"]["status"]
    own = F.col("learner").isin(label, ITEM_OFFSET)
    levels = _table(run, RATING_SCALE).orderBy("rank").collect()
    facts = {name: value for name, value in record["facts"].items() if name != "files"}
    return Trained(
        spark, config, learn_job(config.train, specs, spark, run),
        _table(run, USERS), _table(run, ITEMS), _table(run, BLOCKS), _table(run, MODELS).where(own),
        {table.table: _table(run, table) for table in _FEATURE_TABLES if run.has(table)},
        facts, [tuple(row) for row in levels], ingested["facts"]["rating_scale"],
        {name: status[name] for name in (label, ITEM_OFFSET) if name in status},
    )  # fmt: skip


def _recorded_config(run: Run) -> Config:
    """Return the settings that the run's tables were made with."""
    records = {name: run.record(name) or {} for name in ("ingest", "prepare", "tune")}
    given: InputConfig = convert(InputConfig, records["ingest"]["settings"], "input")
    prepared: PrepareConfig = convert(PrepareConfig, records["prepare"]["settings"], "prepare")
    config = replace(Config(), input=given, prepare=prepared)
    if records["tune"]:
        users = records["tune"]["settings"]["tune"]["users"]
        config = replace(config, tune=replace(config.tune, users=users))
    return replace(measured_config(config, run), previous=None)


def _table(run: Run, contract: Contract) -> DataFrame:
    return run.read(contract).select(*[column.name for column in contract.columns])


def _stage(name: str, write: Write, trained: Trained) -> Stage:
    """Return a stage that leaves what the model has instead of making it."""
    settings = STAGES[name].settings
    return Stage(
        name=name,
        run=lambda config, spark, run: write(trained, run),
        settings=(lambda config: config.input) if name == "ingest" else settings,
        needs=lambda config: {"prepare": ("ingest",), "features": ("prepare", "ingest"),
                              "train": ("features", "prepare")}.get(name, ()),
    )  # fmt: skip


def _write_ratings(trained: Trained, run: Run) -> StageResult:
    pairs = F.explode(F.arrays_zip("items", "ratings")).alias("pair")
    ratings = trained.blocks.select("user", pairs).select(
        "user",
        F.col("pair.items").alias("item"),
        F.col("pair.ratings").alias("rating"),
        F.lit(None).cast("bigint").alias("timestamp"),
    )
    tables: dict[str, int] = {}
    for contract, frame in (
        (USERS, trained.users), (ITEMS, trained.items), (RATINGS, ratings),
        (RATING_SCALE, scale_table(trained.spark, trained.levels)),
        (QUARANTINE, QUARANTINE.nothing(trained.spark)),
    ):  # fmt: skip
        tables[contract.table] = run.write(contract, frame)
    return StageResult(
        f"{count_of(tables[RATINGS.table], 'rating')} of a DataFrame",
        tables,
        {"rows_in": tables[RATINGS.table], "quarantined_by_reason": {}, "dropped_by_reason": {},
         "rating_scale": trained.scale_facts, "read_as": "a DataFrame"},
    )  # fmt: skip


def _write_blocks(trained: Trained, run: Run) -> StageResult:
    written = run.write(BLOCKS, trained.blocks, ("bucket",))
    made = run.written(BLOCKS)
    counted = run.write(ITEM_COUNTS, item_counts(made, run.read(ITEMS)))
    ratings = run.read(RATINGS)
    activity = count_activity(ratings, run.keep, "all")
    profile = {**activity_profile(activity), **rating_profile(ratings, trained.scale_facts)}
    return StageResult(
        count_of(written, "user"),
        {BLOCKS.table: written, ITEM_COUNTS.table: counted},
        {**block_sizes(made), "filters": [], "filters_settled": True, "profile": profile},
    )


def _write_features(trained: Trained, run: Run) -> StageResult:
    tables = {name: run.write(TABLES[name], table) for name, table in trained.tables.items()}
    files = trained.job.files
    for file in files.all():
        draft = run.draft_path(f"{FEATURE_FILES}/{file.name}")
        run.files.upload(Path(place_of_files()) / file.name, draft)
    facts = {**trained.features, **file_facts(files, trained.features["squared_radius"])}
    return StageResult(f"{count_of(tables[ITEM_FEATURES.table], 'item')}", tables, facts)


def _write_models(trained: Trained, run: Run) -> StageResult:
    rows = run.write(MODELS, trained.models)
    folder = run.draft_path(MODELS.table)
    files = [file.path.removeprefix(f"{folder}/") for file in run.files.below(folder)]
    wave: dict[str, Any] = {"buckets": list(range(trained.buckets)), "files": sorted(files)}
    return StageResult(
        f"{count_of(rows, 'model')}",
        {MODELS.table: rows},
        {"status": trained.status, "failed_users": {}, "waves": [wave],
         "job": job_facts(trained.job)},
    )  # fmt: skip
