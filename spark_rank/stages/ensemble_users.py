"""Ensembles for every user: tasks learn groups of members per bucket, a reduce adds them up."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import Config
from spark_rank.frames.isolation import isolated_when_retried
from spark_rank.reader.recorded import ensemble_spec, recorded_training
from spark_rank.records.models import UserEnsembleFacts
from spark_rank.session.crashes import isolating_on_crash
from spark_rank.session.session import runtime_setting
from spark_rank.session.workers import by_workers
from spark_rank.stages.ensemble_tables import diversity, user_curve, write_rows
from spark_rank.stages.stage import StageResult
from spark_rank.stages.train import check_failures, status_counts, status_in_words
from spark_rank.stages.training import learn_job, target_blocks
from spark_rank.store.run import Run
from spark_rank.tables.contract import ddl
from spark_rank.tables.contracts import BLOCKS, ENSEMBLE_CURVE, ENSEMBLE_DIVERSITY, ENSEMBLE_MODELS
from spark_rank.users.ensemble_learning import (
    USER_PART_DDL,
    combine_batches,
    ensemble_batches,
    part_batches,
)
from spark_rank.users.learning import LearnJob

_MODELS_DDL = ddl(ENSEMBLE_MODELS.columns)


def user_ensembles(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Learn ensembles for the users that `train` has learned, from the same training parts."""
    training = recorded_training(run)
    specs = [ensemble_spec(entry, config.seed) for entry in config.ensemble.learners]
    job = learn_job(training, specs, spark, run)
    blocks = target_blocks(training, run.read(BLOCKS))
    groups = config.ensemble.groups or 1
    # as in `train`: at least one task per bucket, whatever the sizes of the files
    tasks = max(config.prepare.buckets, spark.sparkContext.defaultParallelism)
    with runtime_setting(spark, "spark.sql.files.minPartitionNum", str(tasks)):
        rows = isolating_on_crash(
            lambda isolated: run.write(
                ENSEMBLE_MODELS,
                # an isolated user learns all members in one group: the rows are the same
                ensemble_models(
                    blocks, replace(job, isolated=isolated), 1 if isolated else groups, tasks
                ),
            ),
            "ensemble",
            "all users",
        )
    models = run.written(ENSEMBLE_MODELS)
    counts = status_counts(models)
    check_failures(training, counts, run.draft_path(ENSEMBLE_MODELS.table))
    tables = {
        ENSEMBLE_CURVE: user_curve(models, config.ensemble.confidence),
        ENSEMBLE_DIVERSITY: diversity(models, config.ensemble.learners),
    }
    return StageResult(
        ", ".join(f"{label}: {status_in_words(by_status)}" for label, by_status in counts.items()),
        {
            ENSEMBLE_MODELS.table: rows,
            **{table.table: write_rows(run, table, rows) for table, rows in tables.items()},
        },
        UserEnsembleFacts(status=counts),
    )


def ensemble_models(blocks: DataFrame, job: LearnJob, groups: int, tasks: int) -> DataFrame:
    """Return rows of `ensemble_models`, the same whatever the number of groups and tasks."""
    if groups == 1:
        return by_workers(blocks, isolated_when_retried(ensemble_batches, job), _MODELS_DDL)
    # every group reads the blocks again: they are small, and this saves a shuffle
    parts = [
        by_workers(
            blocks, partial(part_batches, job=job, group=group, groups=groups), USER_PART_DDL
        )
        for group in range(groups)
    ]
    partitioned = reduce(DataFrame.unionByName, parts).repartition(tasks, "problem")
    ordered = partitioned.sortWithinPartitions("problem", "learner", "first_member")
    return by_workers(ordered, partial(combine_batches, job=job), _MODELS_DDL)
