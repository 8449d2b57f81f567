"""Runs stages once: skips finished ones, refuses contradictions, records the results."""

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
    PlannedStage,
    RecordedRun,
    StageRequest,
    check_later_stages,
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

# the fields of a request that go into the record
_RECORDED = ("fingerprint", "upstream", "inputs", "settings", "seed")


@contextmanager
def working_on(run: Run, *, takeover: bool = False) -> Iterator[None]:
    """Hold the lease of the run for a block of code, so that no other process writes into it."""
    refuse_links(run.root)
    lease = Lease(run.files, run.root, run.run_id)
    with held(lease, takeover=takeover, when_lost=run.spark.sparkContext.cancelAllJobs):
        run.lease = lease
        check_executors(run)
        yield


def validate(stages: Iterable[Stage], config: Config) -> None:
    """Raise `ConfigError` for errors in the stages' sections of the configuration."""
    for stage in stages:
        stage.validate(config)


def check_stages(
    stages: Sequence[Stage], config: Config, run: Run, all_stages: Iterable[Stage] = ()
) -> list[PlannedStage]:
    """Return the action for each stage; raise an error before any of them writes.

    `all_stages` are those that the run may have finished already: none of them may end up with
    other inputs than it was made with.
    """
    validate(stages, config)
    recorded = RecordedRun(run.run_id, run.root, run.record)
    planned = plan_stages([_request(stage, config, run) for stage in stages], recorded)
    made = {one.request.name for one in planned if one.action is not Action.KEEP}
    others = [stage for stage in all_stages if made.intersection(stage.needs(config))]
    finished = [stage for stage in others if run.record(stage.name) is not None]
    check_later_stages(planned, [_without_inputs(stage, config) for stage in finished], recorded)
    for stage in stages:
        if stage.name in made:
            stage.check(config, run)
    return planned


def run_stages(
    stages: Sequence[Stage],
    config: Config,
    spark: SparkSession,
    run: Run,
    plan: Sequence[PlannedStage] | None = None,
) -> None:
    """Run the stages in order, each at most once; `plan` is what `check_stages` returned."""
    untouched = True
    for stage, planned in zip(stages, plan or check_stages(stages, config, run), strict=True):
        # after a stage has written, the inputs of later stages are read again
        run_stage(stage, config, spark, run, planned.request if untouched else None)
        untouched = untouched and planned.action is Action.KEEP


def run_stage(
    stage: Stage, config: Config, spark: SparkSession, run: Run, request: StageRequest | None = None
) -> Record:
    """Run a stage unless it is done; return its record."""
    request = request or _request(stage, config, run)
    recorded = RecordedRun(run.run_id, run.root, run.record)
    upstream = upstream_of(request, recorded, {})
    fingerprint = request.fingerprint(upstream)
    with named_stage(spark, stage.name), Progress(spark, stage.name) as progress:
        finished = run.record(stage.name)
        action = decide(request, finished, upstream, run.run_id)
        if finished is not None and action is Action.KEEP:
            # a process that was killed at the very end leaves its draft behind
            run.draft(stage.name, fingerprint).remove()
            progress.finish(f"already done: {finished['message']}", "already_done")
            return finished
        draft = run.draft(stage.name, fingerprint)
        users = None
        # a sealed draft is checked again: the machine may have failed since
        if draft.sealed() is None or not draft.is_whole():
            identity: Record = {"fingerprint": fingerprint, "upstream": upstream}
            users = _make(
                stage, config, run, draft, progress, {**dataclasses.asdict(request), **identity}
            )
        record = _publish(draft, run, stage, renew=action is Action.RENEW)
        outcome = {**record, "users": users}
        metrics = stage_metrics(run.run_id, stage.name, record["seconds"], outcome, spark)
        write_metrics(run, metrics)
        progress.finish(
            f"{record['message']} ({record['seconds']:.1f} s)", **_shown_metrics(metrics)
        )
    return record


def _make(
    stage: Stage, config: Config, run: Run, draft: Draft, progress: Progress, request: Record
) -> int | None:
    """Run the stage, write its results and seal them; return how many users it processed."""
    spark = run.spark
    draft.clear()
    warn_if_too_small(stage.name, config, run)
    started = datetime.now(UTC)
    with (
        job_description(spark, f"{run.run_id}: {stage.name}"),
        _metrics_on_failure(stage, run, progress),
    ):
        result = stage.run(config, spark, run.with_draft(draft))
    draft.seal({
        "stage": stage.name,
        **{name: request[name] for name in _RECORDED},
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(progress.seconds(), 3),
        **_outcome(result),
        "versions": versions(spark),
        "spark": _spark_facts(spark),
    })  # fmt: skip
    return result.users


def _request(stage: Stage, config: Config, run: Run) -> StageRequest:
    return dataclasses.replace(
        _without_inputs(stage, config), inputs=plain(stage.inputs(config, run))
    )


def _without_inputs(stage: Stage, config: Config) -> StageRequest:
    return StageRequest(
        stage.name, config.seed, plain(stage.settings(config)), None, stage.needs(config),
        stage.view, stage.follows_inputs, stage.follows,
    )  # fmt: skip


def _publish(draft: Draft, run: Run, stage: Stage, *, renew: bool) -> Record:
    """Move the results of a stage from the draft to the run, then write and return its record."""
    sealed = draft.sealed()
    assert sealed is not None
    draft.publish()
    run.write_record(stage.name, sealed, renew=renew)
    draft.remove()
    published = run.record(stage.name)
    assert published is not None
    return published


@contextmanager
def _metrics_on_failure(stage: Stage, run: Run, progress: Progress) -> Iterator[None]:
    """Write the metrics of an attempt that fails, too."""
    try:
        yield
    except Exception as error:
        outcome = {"error": type(error).__name__}
        seconds = progress.seconds()
        write_metrics(run, stage_metrics(run.run_id, stage.name, seconds, outcome, run.spark))
        raise


def _shown_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    names = ("seconds", "users", "users_per_second", "rows", "failed_users")
    return {name: metrics[name] for name in names}


def versions(spark: SparkSession) -> dict[str, str]:
    """Return the versions of the software that may change a result."""
    packages = (numpy, scipy, numba, pyarrow, pyspark)
    jvm: Any = spark._jvm
    return {
        "spark_rank": spark_rank.__version__,
        **{package.__name__: package.__version__ for package in packages},
        "python": platform.python_version(),
        "java": str(getattr(jvm, "java.lang.System").getProperty("java.version")),
    }


def _spark_facts(spark: SparkSession) -> dict[str, str]:
    """Return where the stage ran; other settings may hold secrets and are not recorded."""
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
    """Return settings in the form that JSON returns, to compare them with a record."""
    tree = dataclasses.asdict(settings) if dataclasses.is_dataclass(settings) else settings  # type: ignore[arg-type]
    return json.loads(json.dumps(tree))
