"""train: one model per user and learner, with held-out scores, in one pass over the blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import Config
from spark_rank.data.contracts import ddl
from spark_rank.data.tables import BLOCKS, MODELS
from spark_rank.engine.failures import failed_users, failure_examples, tell_failures
from spark_rank.engine.learning import FAILED, learn_batches
from spark_rank.engine.progress import over_users
from spark_rank.engine.session import runtime_setting
from spark_rank.engine.specs import BASELINE_SPECS, LearnerSpec
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.errors import InputDataError, TooManyFailuresError
from spark_rank.stages import tune
from spark_rank.stages.training import learn_job, specs_of, target_blocks


def train(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Distribute the feature files, learn over the blocks, count what became of the users."""
    job = learn_job(config.train, _specs(config, run), spark, run)
    blocks = target_blocks(config.train, run)
    models = blocks.mapInArrow(partial(learn_batches, job=job), ddl(MODELS.columns))
    # files are packed by their bytes, but the work is in the users: a task per bucket keeps all
    # cores busy to the end, and progress visible
    tasks = max(config.prepare.buckets, spark.sparkContext.defaultParallelism)
    users = (run.record("prepare") or {})["tables"][BLOCKS.table]
    with (
        runtime_setting(spark, "spark.sql.files.minPartitionNum", str(tasks)),
        over_users(spark, users),
    ):
        rows = run.write(MODELS, models)
    if rows == 0:
        raise InputDataError(
            "train: no user has as many ratings as train.targets_min and targets_max ask for"
        )
    written = spark.read.parquet(run.path(MODELS.table))
    counts = status_counts(written)
    failures = failure_examples(written) if failed_users(counts) else {}
    tell_failures("train", counts, failures)
    _check_failures(config, counts, run.path(MODELS.table))
    learned = ", ".join(
        f"{entry.label}: " + _in_words(counts[entry.label]) for entry in config.train.learners
    )
    facts = {"status": counts, "failed_users": failures}
    return StageResult(learned, {"models": rows}, facts, rows // len(counts))


def status_counts(models: DataFrame) -> dict[str, dict[str, int]]:
    """Return, per learner, how many users have each status, and each reason where there is one."""
    counted = models.groupBy("learner", "status", "reason").count().collect()
    counts: dict[str, dict[str, int]] = {}
    for row in sorted(counted, key=lambda r: (r["learner"], r["status"], r["reason"] or "")):
        status = row["status"] if row["reason"] is None else f"{row['status']}: {row['reason']}"
        counts.setdefault(row["learner"], {})[status] = row["count"]
    return counts


def _specs(config: Config, run: Run) -> list[LearnerSpec]:
    """Return baselines and learners, with the hyper-parameters that were chosen for all users."""
    chosen = tune.chosen_for_all(config, run)
    own = [
        replace(spec, params=chosen[spec.label], grid={}) if spec.label in chosen else spec
        for spec in specs_of(config.train)
    ]
    return [*BASELINE_SPECS, *own]


def _check_failures(config: Config, counts: dict[str, dict[str, int]], where: str) -> None:
    for learner, by_status in counts.items():
        users = sum(by_status.values())
        failed = sum(n for status, n in by_status.items() if status.startswith(FAILED))
        if failed > config.train.max_failed_share * users:
            raise TooManyFailuresError(
                f"{learner}: {failed:,} of {users:,} users failed ({_in_words(by_status)}), more "
                f"than train.max_failed_share {config.train.max_failed_share:g} allows; the "
                f"columns `reason` and `detail` of {where} say why"
            )


def _in_words(by_status: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {status}" for status, count in by_status.items())


STAGE = Stage(
    name="train",
    run=train,
    settings=lambda config: config.train,
    needs=lambda config: ("features", "prepare", *(("tune",) if tune.is_needed(config) else ())),
)
