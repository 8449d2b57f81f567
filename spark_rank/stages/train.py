"""train: one model per user and learner, in one pass over the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import Config, TrainConfig
from spark_rank.config.sections import check_train
from spark_rank.errors import InputDataError, TooManyFailuresError
from spark_rank.frames import train as frames
from spark_rank.records.models import TrainFacts
from spark_rank.session.session import a_task_a_file
from spark_rank.stages import tune
from spark_rank.stages.first_compile import tell_compiling
from spark_rank.stages.heaviest_first import by_cost, in_order
from spark_rank.stages.incremental import job_facts, keep_models, previous_run
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.stages.training import learn_job, target_blocks
from spark_rank.store.failures import failed_users, failure_examples, tell_failures
from spark_rank.store.run import Run
from spark_rank.store.waves import Wave, plan_waves, wave_facts, write_in_waves
from spark_rank.tables.contracts import BLOCKS, CHANGES, MODELS
from spark_rank.users.learning import FAILED, LearnJob
from spark_rank.users.specs import BASELINE_SPECS, LearnerSpec
from spark_rank.wording import count_of


class Learned(NamedTuple):
    """The result of learning: a closing line, rows by table, facts, and the number of users."""

    message: str
    tables: dict[str, int]
    facts: TrainFacts
    users: int


def train(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Learn all models from the training parts."""
    learned = learn_models(config, all_specs(config, run), spark, run)
    return StageResult(learned.message, learned.tables, learned.facts, learned.users)


def learn_models(
    config: Config, specs: Sequence[LearnerSpec], spark: SparkSession, run: Run
) -> Learned:
    """Distribute the feature files, learn the models in waves, and count users by status."""
    job = learn_job(config.train, specs, spark, run)
    tell_compiling(job.specs, spark.sparkContext)
    table = run.own(MODELS)
    blocks = target_blocks(config.train, run.read(BLOCKS))
    kept = keep_models(config, job, blocks, run)
    cores = spark.sparkContext.defaultParallelism
    users, buckets = _users_and_buckets(run)
    plan = plan_waves(users, buckets, config.users_per_wave, cores)
    order = by_cost(config, blocks if kept is None else kept.to_learn(blocks), buckets)

    def wave_models(wave: Wave, job: LearnJob = job) -> DataFrame:
        chosen = in_order(blocks, [bucket for bucket in order if bucket in wave.buckets])
        models = frames.train(chosen if kept is None else kept.to_learn(chosen), job)
        kept_models = None if kept is None else kept.models(chosen, wave.buckets)
        return models if kept_models is None else models.unionByName(kept_models)

    with a_task_a_file(spark):
        isolating = partial(wave_models, job=replace(job, isolated=True))
        waves = write_in_waves(run, table, plan, wave_models, users, isolating=isolating)
    rows = sum(wave.rows for wave in waves)
    if rows == 0:
        raise InputDataError(
            f"{run.in_progress.stage}: no user has between train.targets_min and targets_max "
            "ratings: change these bounds"
        )
    written = run.written(MODELS)
    counts = status_counts(written)
    failures = failure_examples(written) if failed_users(counts) else {}
    tell_failures(run.in_progress.stage, counts, failures)
    check_failures(config.train, counts, f"{run.in_progress.waves}/{table.table}")
    words = ", ".join(
        f"{entry.label}: " + status_in_words(counts[entry.label]) for entry in config.train.learners
    )
    users = rows // len(job.specs)
    facts = TrainFacts(
        status=counts,
        failed_users=failures,
        waves=wave_facts(waves),
        job=job_facts(job),
        previous=None if kept is None else kept.facts,
    )
    tables = {table.table: rows}
    if kept is not None:
        words += f"; {kept.in_words(users)}"
        if not run.all_ratings:  # else `train` has listed the changes
            tables[CHANGES.table] = kept.facts.listed
    return Learned(words, tables, facts, users)


def _users_and_buckets(run: Run) -> tuple[int, int]:
    record = run.record("prepare") or {}
    return record["tables"][BLOCKS.table], record["settings"]["buckets"]


def status_counts(models: DataFrame) -> dict[str, dict[str, int]]:
    """Return the number of users by learner, status and reason."""
    counted = models.groupBy("learner", "status", "reason").count().collect()
    counts: dict[str, dict[str, int]] = {}
    for row in sorted(counted, key=lambda r: (r["learner"], r["status"], r["reason"] or "")):
        status = row["status"] if row["reason"] is None else f"{row['status']}: {row['reason']}"
        counts.setdefault(row["learner"], {})[status] = row["count"]
    return counts


def all_specs(config: Config, run: Run) -> list[LearnerSpec]:
    """Return the baselines if they are configured, then the learners with the choices of `tune`."""
    specs = tune.decided_specs(config, run)
    return [*BASELINE_SPECS, *specs] if config.train.baselines else specs


def check_failures(settings: TrainConfig, counts: dict[str, dict[str, int]], where: str) -> None:
    """Raise `TooManyFailuresError` if more users of a learner failed than allowed."""
    for learner, by_status in counts.items():
        users = sum(by_status.values())
        failed = sum(n for status, n in by_status.items() if status.startswith(FAILED))
        if failed > settings.max_failed_share * users:
            raise TooManyFailuresError(
                f"{learner}: {failed:,} of {count_of(users, 'user')} failed "
                f"({status_in_words(by_status)}), more than train.max_failed_share "
                f"{settings.max_failed_share:g} allows: see the columns `reason` and `detail` of "
                f"the files below {where}"
            )


def status_in_words(by_status: dict[str, int]) -> str:
    """Return the numbers of users by status, as text for people."""
    return ", ".join(f"{count:,} {status}" for status, count in by_status.items())


def _check(config: Config, run: Run) -> None:
    previous_run(config, run)


STAGE = Stage(
    name="train",
    run=train,
    settings=lambda config: config.train,
    needs=lambda config: ("features", "prepare", *(("tune",) if tune.is_needed(config) else ())),
    check=_check,
    validate=check_train,
)
