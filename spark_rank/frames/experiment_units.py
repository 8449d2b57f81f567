"""Runs the units of an experiment on workers: numbers of units in, rows of results out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import SparkFiles

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.frame import Result, Study, Unit
from spark_rank.experiments.rating_set import RatingSet
from spark_rank.features.files import MappedFile, publish_array, verified
from spark_rank.tables.contract import Column, arrow_schema
from spark_rank.tables.contracts import EXPERIMENT_RESULTS
from spark_rank.users.batches import build_batch

# `place` orders the rows of a unit; the table of results has no such column
PLACED_COLUMNS = (*EXPERIMENT_RESULTS.columns, Column("place", "int", "place within the unit"))
_SCHEMA = arrow_schema(PLACED_COLUMNS)
_ARRAYS = ("ends", "items", "ratings", "user_ids", "item_ids")


@dataclass(frozen=True)
class RatingSetFiles:
    """The files of a `RatingSet`, an array each, and its name."""

    name: str
    arrays: tuple[MappedFile, ...]


@dataclass(frozen=True)
class UnitJob:
    """The settings of a worker: the study without its data, the data's files, and the units.

    `chosen` is the result of the pilot; None for the units of the pilot itself.
    """

    experiment: str
    settings: Any
    seed: int
    files: Mapping[str, RatingSetFiles]
    units: tuple[Unit, ...]
    chosen: Mapping[str, Any] | None


def write_rating_set(folder: Path, data: RatingSet) -> RatingSetFiles:
    """Write a rating set into a local folder, for workers to map into memory."""
    files = [publish_array(folder, name, getattr(data, name)) for name in _ARRAYS]
    return RatingSetFiles(data.name, tuple(files))


@lru_cache(maxsize=8)
def open_rating_set(files: RatingSetFiles, folder: str) -> RatingSet:
    """Map the files in `folder`, once per process, after checking their checksums."""
    arrays = [
        np.load(verified(file, Path(folder)), mmap_mode="r", allow_pickle=False)
        for file in files.arrays
    ]
    return RatingSet(files.name, *arrays)


def open_distributed_set(files: RatingSetFiles) -> RatingSet:
    """Map the files that Spark distributed to this node (`SparkContext.addFile`)."""
    return open_rating_set(files, SparkFiles.getRootDirectory())


def run_units(
    batches: Iterator[pa.RecordBatch],
    job: UnitJob,
    open_data: Callable[[RatingSetFiles], RatingSet] = open_distributed_set,
) -> Iterator[pa.RecordBatch]:
    """Run the units with the numbers in column ``id``; yield one batch of results per unit."""
    data = {need: open_data(files) for need, files in job.files.items()}
    study = Study(job.experiment, job.settings, job.seed, data, job.chosen or {})
    experiment = EXPERIMENTS[job.experiment]
    pilot = experiment.pilot if job.chosen is None else None
    run_unit = experiment.run_unit if pilot is None else pilot.run_unit
    for batch in batches:
        for number in batch.column("id").to_pylist():
            results = run_unit(study, job.units[number])
            rows = [
                result_row(job.experiment, number, result) | {"place": place}
                for place, result in enumerate(results)
            ]
            yield build_batch(rows, _SCHEMA)


def result_row(experiment: str, unit: int, result: Result) -> dict[str, Any]:
    """Return a result as a row of the table of results."""
    return {"experiment": experiment, "unit": unit, **dataclasses.asdict(result)}


def result_of(row: Mapping[str, Any]) -> Result:
    """Return the result that `result_row` turned into a row."""
    return Result(**{field.name: row[field.name] for field in dataclasses.fields(Result)})
