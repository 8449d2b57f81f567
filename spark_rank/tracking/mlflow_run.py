"""One MLflow run for a pipeline: parameters, metrics, tags, and its page and manifest as files."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

import spark_rank
from spark_rank.config import Config, to_yaml
from spark_rank.errors import RunHeldError
from spark_rank.events import emit
from spark_rank.reader.run_folder import RunFolder
from spark_rank.records.facts import read_facts
from spark_rank.records.results import PageFacts
from spark_rank.redaction import redact
from spark_rank.session.files import store_files
from spark_rank.store.run_records import RunRecords
from spark_rank.tables.contracts import SUMMARY
from spark_rank.tracking.connection import connected, reason
from spark_rank.tracking.run_values import Records, began_and_ended, metrics, parameters

# the tags that find the MLflow run of a run again, and others
_RUN, _STORE = "spark_rank.run", "spark_rank.store"
_VERSION, _ERROR = "spark_rank.version", "spark_rank.error"
# as many as MLflow takes at once
_PARAMETERS, _METRICS = 100, 1000
_LONGEST_ERROR = 5000


@contextmanager
def tracked(config: Config, run: RunRecords) -> Iterator[None]:
    """Tell MLflow, if it is configured, how the pipeline in a block of code has ended.

    What MLflow does not take is a warning: it changes nothing about the run.
    """
    try:
        yield
    except RunHeldError:  # another process goes on with the run, and tells of it
        raise
    except Exception as error:
        _tell(config, run, reason(error, _LONGEST_ERROR))
        raise
    _tell(config, run, None)


def send(config: Config, run: RunRecords, error: str | None = None) -> str:
    """Make or update the one MLflow run of a run; return its id. With an error it has failed."""
    records = run.records()
    with (
        tempfile.TemporaryDirectory(prefix="spark-rank-") as folder,
        connected(config.tracking) as client,
    ):
        copies = _Copies(run, records, Path(folder))
        known = _found(client, config, run) or _created(client, config, run, records)
        own: str = known.info.run_id
        _log_values(client, known, parameters(config), metrics(copies.summary(), records))
        client.set_tag(own, _VERSION, spark_rank.__version__)
        if error is not None:
            client.set_tag(own, _ERROR, redact(error))
        elif _ERROR in known.data.tags:
            client.delete_tag(own, _ERROR)
        for path, place in copies.artifacts(config):
            client.log_artifact(own, str(path), place)
        _, ended = began_and_ended(records) or (None, None)
        status, end = ("FINISHED", ended) if error is None else ("FAILED", _now())
        client.set_terminated(own, status, end)
    return own


def _tell(config: Config, run: RunRecords, error: str | None) -> None:
    where = config.tracking.mlflow
    if where is None:
        return
    try:
        sent = send(config, _without_jvm(run), error)
    except Exception as problem:  # noqa: BLE001 - the run itself has ended, whatever this is
        emit(
            "not_tracked",
            f"MLflow at {where} has not taken the run ({reason(problem)}); `spark-rank track` "
            "with the same configuration sends it again",
            stage="pipeline",
            level="warning",
        )
    else:
        emit("tracked", f"MLflow run {sent} at {where}", stage="pipeline", mlflow_run=sent)


def _without_jvm(run: RunRecords) -> RunRecords:
    """Return a run whose files are read without Spark, if they are local: it may have died."""
    if not run.root.startswith("file:"):
        return run
    with store_files("spark_rank track", run.root, {}) as files:
        return RunRecords(files, _store(run), run.run_id)


def _found(client: Any, config: Config, run: RunRecords) -> Any:
    """Return the MLflow run that this run has already, or None."""
    experiment = client.get_experiment_by_name(config.tracking.experiment)
    if experiment is None:
        return None
    asked = f"tags.`{_RUN}` = '{run.run_id}'"
    for found in client.search_runs([experiment.experiment_id], asked):
        if found.data.tags.get(_STORE) == _store(run):
            return found
    return None


def _created(client: Any, config: Config, run: RunRecords, records: Records) -> Any:
    name = config.tracking.experiment
    experiment = client.get_experiment_by_name(name)
    number = client.create_experiment(name) if experiment is None else experiment.experiment_id
    began, _ = began_and_ended(records) or (_now(), None)
    tags = {_RUN: run.run_id, _STORE: _store(run)}
    return client.create_run(number, start_time=began, tags=tags, run_name=run.run_id)


def _log_values(
    client: Any, known: Any, settings: dict[str, str], measured: dict[str, float]
) -> None:
    """Log what MLflow does not know; it lets no parameter change, and keeps metrics by time."""
    from mlflow.entities import Metric, Param

    own, now = known.info.run_id, _now()
    params = [Param(*item) for item in settings.items() if item[0] not in known.data.params]
    values = [Metric(name, value, now, 0) for name, value in measured.items()]
    for start in range(0, len(params), _PARAMETERS):
        client.log_batch(own, params=params[start : start + _PARAMETERS])
    for start in range(0, len(values), _METRICS):
        client.log_batch(own, metrics=values[start : start + _METRICS])


class _Copies:
    """The few files of a run that MLflow is told of, on this machine's disk."""

    def __init__(self, run: RunRecords, records: Records, folder: Path) -> None:
        self._run = run
        self._records = records
        self._folder = folder

    def summary(self) -> pa.Table:
        """Return the means of all metrics; no rows before `evaluate`."""
        columns = ["metric", "learner", "user_group", "mean"]
        if SUMMARY.table not in self._records.get("evaluate", {}).get("tables", {}):
            return pa.table({name: [] for name in columns})
        listed = self._records["evaluate"]["files"]
        for name in ("manifest/evaluate.json", *listed):
            if name.startswith(("manifest/", f"{SUMMARY.table}/")):
                self._fetch(name)
        return RunFolder.at(self._folder).read(SUMMARY, columns)

    def artifacts(self, config: Config) -> Iterator[tuple[Path, str | None]]:
        """Yield the files for MLflow, each with its folder there."""
        for stage in self._records:
            yield self._fetch(f"manifest/{stage}.json"), "manifest"
        if "report" in self._records:
            page = read_facts(PageFacts, self._records["report"], self._run.run_id).file
            yield self._fetch(page), None
        settings = self._folder / "config.yaml"
        settings.write_text(redact(to_yaml(config)), encoding="utf-8")
        yield settings, None

    def _fetch(self, name: str) -> Path:
        target = self._folder / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            self._run.files.download(self._run.path(name), target)
        return target


def _store(run: RunRecords) -> str:
    return run.root.partition("/runs/run_id=")[0]


def _now() -> int:
    return int(1000 * time.time())
