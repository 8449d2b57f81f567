"""Saves a model as a run in a store, and opens a run as a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, InputConfig, PrepareConfig
from spark_rank.config.schema import ITEM_OFFSET, RecommendConfig
from spark_rank.config.values import convert
from spark_rank.data.profile import rating_times
from spark_rank.data.rating_scale import scale_table
from spark_rank.errors import ConfigError
from spark_rank.features.files import place_of_files
from spark_rank.ml.trained import Trained
from spark_rank.reader.recorded import asked_learner, recorded_job
from spark_rank.records.data import IngestFacts
from spark_rank.records.features import feature_facts
from spark_rank.records.models import TrainFacts, WaveFacts
from spark_rank.stages import STAGES
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.stages.final_run import FEATURE_FILES, refitted_run
from spark_rank.stages.incremental import job_facts
from spark_rank.stages.prepare import count_written_blocks
from spark_rank.stages.refit import measured_config
from spark_rank.stages.runner import run_stages, working_on
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.failures import failed_users, failure_examples
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

# a saved model is a store with this one run
RUN_ID = "model"
_FEATURE_TABLES = (ITEM_FEATURES, PANEL, REVIEWER_RATINGS)
Write = Callable[[Trained, Run], StageResult]


def save_run(trained: Trained, store: str) -> None:
    """Write the tables of a model and their records as a run in `store`."""
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
    """Return one learner's models of a run: those learned from all ratings, if it has them."""
    measured = Run(spark, store, run_id)
    if measured.record("train") is None:
        raise ConfigError(f"run {run_id!r} in {store} has no models: run `spark-rank train` first")
    label = asked_learner(RecommendConfig(learner=learner), measured, "learner")
    run = refitted_run(measured, label)
    job = recorded_job(run, distribute_files(spark, run))
    specs = tuple(spec for spec in job.specs if spec.label in (label, ITEM_OFFSET))
    if label not in [spec.label for spec in specs if not spec.is_baseline]:
        raise ConfigError(
            f"run {run_id!r}: {label!r} is not a learner of 'train': name one that is"
        )
    config = _recorded_config(measured)
    status = run.facts(TrainFacts).status
    is_wanted = F.col("learner").isin(label, ITEM_OFFSET)
    levels = sorted(tuple(row) for row in _table(run, RATING_SCALE).collect())
    return Trained(
        spark, config, replace(job, specs=specs), _table(run, USERS), _table(run, ITEMS),
        _table(run, BLOCKS), _table(run, MODELS).where(is_wanted),
        {table.table: _table(run, table) for table in _FEATURE_TABLES if run.has(table)},
        run.facts(feature_facts(config.features.kind)), levels,
        run.facts(IngestFacts).rating_scale,
        {name: status[name] for name in (label, ITEM_OFFSET) if name in status},
    )  # fmt: skip


def _recorded_config(run: Run) -> Config:
    """Return the configuration that the run's tables were made with."""
    records = {name: run.record(name) or {} for name in ("ingest", "prepare", "tune")}
    input_settings: InputConfig = convert(InputConfig, records["ingest"]["settings"], "input")
    prepared: PrepareConfig = convert(PrepareConfig, records["prepare"]["settings"], "prepare")
    config = replace(Config(), input=input_settings, prepare=prepared)
    if records["tune"]:
        users = records["tune"]["settings"]["tune"]["users"]
        config = replace(config, tune=replace(config.tune, users=users))
    return replace(measured_config(config, run), previous=None)


def _table(run: Run, contract: Contract) -> DataFrame:
    return run.read(contract).select(*[column.name for column in contract.columns])


def _stage(name: str, write: Write, trained: Trained) -> Stage:
    """Return a stage that writes the tables of the model instead of computing them."""
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
        F.lit(None).cast("int").alias("part"),
    )
    tables: dict[str, int] = {}
    for contract, frame in (
        (USERS, trained.users), (ITEMS, trained.items), (RATINGS, ratings),
        (RATING_SCALE, scale_table(trained.spark, trained.levels)),
        (QUARANTINE, QUARANTINE.nothing(trained.spark)),
    ):  # fmt: skip
        tables[contract.table] = run.write(contract, frame)
    rows = tables[RATINGS.table]
    return StageResult(
        f"{count_of(rows, 'rating')} from a DataFrame",
        tables,
        IngestFacts(
            rows_in=rows,
            quarantined_by_reason={},
            rating_scale=trained.rating_scale,
            read_as="a DataFrame",
        ),
    )


def _write_blocks(trained: Trained, run: Run) -> StageResult:
    written = run.write(BLOCKS, trained.blocks, ("bucket",))
    counted, facts = count_written_blocks(run, rating_times(run.read(RATINGS)))
    tables = {BLOCKS.table: written, ITEM_COUNTS.table: counted}
    return StageResult(count_of(written, "user"), tables, facts)


def _write_features(trained: Trained, run: Run) -> StageResult:
    tables = {name: run.write(TABLES[name], table) for name, table in trained.tables.items()}
    for file in trained.features.files.all():
        draft = run.draft_path(f"{FEATURE_FILES}/{file.name}")
        run.files.upload(Path(place_of_files()) / file.name, draft)
    return StageResult(f"{count_of(tables[ITEM_FEATURES.table], 'item')}", tables, trained.features)


def _write_models(trained: Trained, run: Run) -> StageResult:
    rows = run.write(MODELS, trained.models)
    folder = run.draft_path(MODELS.table)
    files = [file.path.removeprefix(f"{folder}/") for file in run.files.below(folder)]
    failed = failed_users(trained.status)
    facts = TrainFacts(
        status=trained.status,
        failed_users=failure_examples(run.written(MODELS)) if failed else {},
        waves=(WaveFacts(tuple(range(trained.buckets)), tuple(sorted(files))),),
        job=job_facts(trained.job),
    )
    return StageResult(f"{count_of(rows, 'model')}", {MODELS.table: rows}, facts)
