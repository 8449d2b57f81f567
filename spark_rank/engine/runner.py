"""Runs a stage once: skips what is done, refuses what contradicts it, records what it did."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
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
from spark_rank.engine.capacity import warn_if_too_small
from spark_rank.engine.containment import refuse_links
from spark_rank.engine.drafts import Draft
from spark_rank.engine.executors import check_executors
from spark_rank.engine.lease import Lease, held
from spark_rank.engine.progress import Progress, job_description
from spark_rank.engine.run_metrics import stage_metrics, write_metrics
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.errors import ConfigError

Record = dict[str, Any]


@contextmanager
def working_on(run: Run, *, takeover: bool = False) -> Iterator[None]:
    """Hold the run for a block of code: nobody else writes into it meanwhile."""
    refuse_links(run.root)
    lease = Lease(run.files, run.root, run.run_id)
    with held(lease, takeover=takeover, when_lost=run.spark.sparkContext.cancelAllJobs):
        run.lease = lease
        check_executors(run)
        yield


def run_stages(stages: Sequence[Stage], config: Config, spark: SparkSession, run: Run) -> None:
    """Run the stages in order, each at most once."""
    for stage in stages:
        run_stage(stage, config, spark, run)


def run_stage(stage: Stage, config: Config, spark: SparkSession, run: Run) -> Record:
    """Run a stage unless it is done; return its record."""
    upstream = _upstream_fingerprints(stage, config, run)
    inputs = stage.inputs(config, run)
    settings = plain(stage.settings(config))
    fingerprint = _fingerprint(stage.name, config.seed, settings, inputs, upstream)
    with Progress(spark, stage.name) as progress:
        done = run.record(stage.name)
        outdated = done is not None and _is_outdated(
            stage, done, fingerprint, (settings, config.seed, upstream)
        )
        if done is not None and not outdated:
            _check_same(stage, done, fingerprint, settings, config, run)
            # what a process that was killed with the last stroke had no time for
            run.draft(stage.name, fingerprint).remove()
            progress.finish(f"already done: {done['message']}", "already_done")
            return done
        draft = run.draft(stage.name, fingerprint)
        users = None
        # what was sealed before is looked at again: the machine may have been lost since
        if draft.sealed() is None or not draft.is_whole():
            draft.clear()
            warn_if_too_small(stage.name, config, run)
            started = datetime.now(UTC)
            with (
                job_description(spark, f"{run.run_id}: {stage.name}"),
                _failure_measured(stage, run, progress),
            ):
                result = stage.run(config, spark, run.with_draft(draft))
            users = result.users
            draft.seal({
                "stage": stage.name,
                "fingerprint": fingerprint,
                "upstream": upstream,
                "inputs": inputs,
                "settings": settings,
                "seed": config.seed,
                "started": started.isoformat(timespec="seconds"),
                "seconds": round(progress.seconds(), 3),
                **_outcome(result),
                "versions": versions(spark),
                "spark": _spark_facts(spark),
            })  # fmt: skip
        record = _publish(draft, run, stage, renew=outdated)
        outcome = {**record, "users": users}
        metrics = stage_metrics(run.run_id, stage.name, record["seconds"], outcome, spark)
        write_metrics(run, metrics)
        progress.finish(f"{record['message']} ({record['seconds']:.1f} s)", **_told(metrics))
    return record


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
        "java": str(jvm.System.getProperty("java.version")),
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
    return {"message": result.message, "tables": result.tables, "facts": result.facts}


def _upstream_fingerprints(stage: Stage, config: Config, run: Run) -> dict[str, str]:
    fingerprints = {}
    for name in stage.needs(config):
        record = run.record(name)
        if record is None:
            raise ConfigError(
                f"stage '{stage.name}' needs '{name}', which run {run.run_id!r} in {run.root} has "
                f"not finished: run `spark-rank {name}` first, or `spark-rank pipeline` for all"
            )
        fingerprints[name] = record["fingerprint"]
    return fingerprints


def _fingerprint(
    name: str, seed: int, settings: Any, inputs: Any, upstream: Mapping[str, str]
) -> str:
    text = json.dumps([name, seed, settings, inputs, upstream], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _is_outdated(
    stage: Stage, done: Record, fingerprint: str, others: tuple[Any, int, Mapping[str, str]]
) -> bool:
    """Tell whether a finished stage is to be made anew; `others` are settings, seed, upstream."""
    if done["fingerprint"] == fingerprint:
        return False
    only_inputs = (done["settings"], done["seed"], done["upstream"]) == others
    # what was skipped for want of data has left nothing that a later run could contradict
    skipped = "skipped" in done["facts"]
    return stage.view or skipped or (stage.follows_inputs and only_inputs)


def _check_same(
    stage: Stage, done: Record, fingerprint: str, settings: Any, config: Config, run: Run
) -> None:
    if done["fingerprint"] == fingerprint:
        return
    raise ConfigError(
        f"run {run.run_id!r} has finished '{stage.name}' with "
        f"{_difference(done, settings, config.seed)}: give the new run a name of its own with "
        f"--set run_id=NAME, or go back to what it was"
    )


def _difference(done: Record, settings: Any, seed: int) -> str:
    """Say what changed since the record: a setting, the seed, or what the stage read."""
    if done["seed"] != seed:
        return f"seed {done['seed']}, not {seed}"
    changed = _changed(done["settings"], settings, "")
    if changed:
        return "other settings (" + "; ".join(changed[:3]) + ")"
    return "other input"


def _changed(old: Any, new: Any, key: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        names = sorted(old.keys() | new.keys())
        return [
            line
            for name in names
            for line in _changed(old.get(name), new.get(name), f"{key}.{name}".lstrip("."))
        ]
    return [] if old == new else [f"{key} was {json.dumps(old)}, is {json.dumps(new)}"]


def plain(settings: Any) -> Any:
    """Return settings as JSON would, so that a record read back compares equal."""
    tree = dataclasses.asdict(settings) if dataclasses.is_dataclass(settings) else settings  # type: ignore[arg-type]
    return json.loads(json.dumps(tree))
