"""Runs a stage once: skips what is done, refuses what contradicts it, records what it did."""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numba
import numpy
import pyarrow
import pyspark
import scipy
from pyspark.sql import SparkSession

import spark_rank
from spark_rank.config import Config
from spark_rank.records.facts import as_record
from spark_rank.session.jvm_death import named_stage
from spark_rank.session.progress import Progress, job_description
from spark_rank.stages.capacity import warn_if_too_small
from spark_rank.stages.executors import check_executors
from spark_rank.stages.run_plan import (
    Action,
    Asked,
    Planned,
    Shelf,
    check_bystanders,
    decide,
    plan_stages,
    upstream_of,
)
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.containment import refuse_links
from spark_rank.store.drafts import Draft
from spark_rank.store.lease import Lease, held
from spark_rank.store.run import Run
from spark_rank.store.run_metrics import stage_metrics, write_metrics

Record = dict[str, Any]

# what a record says of the stage that was asked for
_RECORDED = ("fingerprint", "upstream", "inputs", "settings", "seed")


@contextmanager
def working_on(run: Run, *, takeover: bool = False) -> Iterator[None]:
    """Hold the run for a block of code: nobody else writes into it meanwhile."""
    refuse_links(run.root)
    lease = Lease(run.files, run.root, run.run_id)
    with held(lease, takeover=takeover, when_lost=run.spark.sparkContext.cancelAllJobs):
        run.lease = lease
        check_executors(run)
        yield


def validate(stages: Iterable[Stage], config: Config) -> None:
    """Raise `ConfigError` for what a stage refuses in its own section of the configuration."""
    for stage in stages:
        stage.validate(config)


def check_stages(
    stages: Sequence[Stage], config: Config, run: Run, beside: Iterable[Stage] = ()
) -> list[Planned]:
    """Return what becomes of each stage; raise, before any of them writes, what forbids one.

    `beside` are stages that the run may hold as well: what they were made with has to stay true.
    """
    validate(stages, config)
    shelf = Shelf(run.run_id, run.root, run.record)
    planned = plan_stages([_asked(stage, config, run) for stage in stages], shelf)
    made = {one.asked.name for one in planned if one.action is not Action.KEEP}
    others = [stage for stage in beside if made.intersection(stage.needs(config))]
    held = [stage for stage in others if run.record(stage.name) is not None]
    check_bystanders(planned, [_without_inputs(stage, config) for stage in held], shelf)
    for stage in stages:
        if stage.name in made:
            stage.check(config, run)
    return planned


def run_stages(
    stages: Sequence[Stage],
    config: Config,
    spark: SparkSession,
    run: Run,
    plan: Sequence[Planned] | None = None,
) -> None:
    """Run the stages in order, each at most once; `plan` is what `check_stages` returned."""
    untouched = True
    for stage, planned in zip(stages, plan or check_stages(stages, config, run), strict=True):
        # once a stage has written, what the later ones read from outside is looked at again
        run_stage(stage, config, spark, run, planned.asked if untouched else None)
        untouched = untouched and planned.action is Action.KEEP


def run_stage(
    stage: Stage, config: Config, spark: SparkSession, run: Run, asked: Asked | None = None
) -> Record:
    """Run a stage unless it is done; return its record."""
    asked = asked or _asked(stage, config, run)
    shelf = Shelf(run.run_id, run.root, run.record)
    upstream = upstream_of(asked, shelf, {})
    fingerprint = asked.fingerprint(upstream)
    with named_stage(spark, stage.name), Progress(spark, stage.name) as progress:
        done = run.record(stage.name)
        action = decide(asked, done, upstream, run.run_id)
        if done is not None and action is Action.KEEP:
            # what a process that was killed with the last stroke had no time for
            run.draft(stage.name, fingerprint).remove()
            progress.finish(f"already done: {done['message']}", "already_done")
            return done
        draft = run.draft(stage.name, fingerprint)
        users = None
        # what was sealed before is looked at again: the machine may have been lost since
        if draft.sealed() is None or not draft.is_whole():
            identity: Record = {"fingerprint": fingerprint, "upstream": upstream}
            users = _make(
                stage, config, run, draft, progress, {**dataclasses.asdict(asked), **identity}
            )
        record = _publish(draft, run, stage, renew=action is Action.RENEW)
        outcome = {**record, "users": users}
        metrics = stage_metrics(run.run_id, stage.name, record["seconds"], outcome, spark)
        write_metrics(run, metrics)
        progress.finish(f"{record['message']} ({record['seconds']:.1f} s)", **_told(metrics))
    return record


def _make(
    stage: Stage, config: Config, run: Run, draft: Draft, progress: Progress, asked: Record
) -> int | None:
    """Write all that a stage leaves, and seal it; return how many users it went over."""
    spark = run.spark
    draft.clear()
    warn_if_too_small(stage.name, config, run)
    started = datetime.now(UTC)
    with (
        job_description(spark, f"{run.run_id}: {stage.name}"),
        _failure_measured(stage, run, progress),
    ):
        result = stage.run(config, spark, run.with_draft(draft))
    draft.seal({
        "stage": stage.name,
        **{name: asked[name] for name in _RECORDED},
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(progress.seconds(), 3),
        **_outcome(result),
        "versions": versions(spark),
        "spark": _spark_facts(spark),
    })  # fmt: skip
    return result.users


def _asked(stage: Stage, config: Config, run: Run) -> Asked:
    return dataclasses.replace(
        _without_inputs(stage, config), inputs=plain(stage.inputs(config, run))
    )


def _without_inputs(stage: Stage, config: Config) -> Asked:
    return Asked(
        stage.name, config.seed, plain(stage.settings(config)), None, stage.needs(config),
        stage.view, stage.follows_inputs, stage.follows,
    )  # fmt: skip


def _publish(draft: Draft, run: Run, stage: Stage, *, renew: bool) -> Record:
    """Bring a stage that has written everything to its place; then the record tells of it."""
    sealed = draft.sealed()
    assert sealed is not None
    draft.publish()
    run.write_record(stage.name, sealed, renew=renew)
    draft.remove()
    published = run.record(stage.name)
    assert published is not None
    return published


@contextmanager
def _failure_measured(stage: Stage, run: Run, progress: Progress) -> Iterator[None]:
    """Leave metrics of an attempt that failed, too."""
    try:
        yield
    except Exception as error:
        outcome = {"error": type(error).__name__}
        seconds = progress.seconds()
        write_metrics(run, stage_metrics(run.run_id, stage.name, seconds, outcome, run.spark))
        raise


def _told(metrics: Mapping[str, Any]) -> dict[str, Any]:
    names = ("seconds", "users", "users_per_second", "rows", "failed_users")
    return {name: metrics[name] for name in names}


def versions(spark: SparkSession) -> dict[str, str]:
    """Return the versions that may matter to a result."""
    packages = (numpy, scipy, numba, pyarrow, pyspark)
    jvm: Any = spark._jvm
    return {
        "spark_rank": spark_rank.__version__,
        **{package.__name__: package.__version__ for package in packages},
        "python": platform.python_version(),
        "java": str(getattr(jvm, "java.lang.System").getProperty("java.version")),
    }


def _spark_facts(spark: SparkSession) -> dict[str, str]:
    """Return where the stage ran; other settings may hold secrets and stay out of the record."""
    context = spark.sparkContext
    return {
        "master": str(context.master),
        "application": str(context.applicationId),
        "parallelism": str(context.defaultParallelism),
        "shuffle_partitions": str(spark.conf.get("spark.sql.shuffle.partitions")),
    }


def _outcome(result: StageResult) -> Record:
    return {"message": result.message, "tables": result.tables, "facts": as_record(result.facts)}


def plain(settings: Any) -> Any:
    """Return settings as JSON would, so that a record read back compares equal."""
    tree = dataclasses.asdict(settings) if dataclasses.is_dataclass(settings) else settings  # type: ignore[arg-type]
    return json.loads(json.dumps(tree))
