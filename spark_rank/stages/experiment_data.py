"""The data sets of an experiment: found below a folder, read once, given to every node."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import Config, InputConfig
from spark_rank.data.damage import damaged_files_are_named
from spark_rank.data.quality import IMPLICIT
from spark_rank.errors import InputDataError
from spark_rank.experiments.frame import Need, RatingFile
from spark_rank.experiments.rating_set import RatedTwiceError, RatingSet
from spark_rank.frames.experiment_units import RatingSetFiles, write_rating_set
from spark_rank.planning.offer import this_machine
from spark_rank.session.files import FileInfo
from spark_rank.stages.gathering import gather, scan_settings
from spark_rank.stages.ingest_pieces import counts_by_reason
from spark_rank.stages.rating_sets import RATING_BYTES, READ_COLUMNS, build_rating_set
from spark_rank.store.run import Run

FILES = "experiment_files"
# of the memory of the driver's machine: workers that learn have to have theirs
_RATINGS_SHARE = 0.25


class FoundFile(NamedTuple):
    """A data set that is there, in one file or several."""

    file: RatingFile
    infos: tuple[FileInfo, ...]


class ReadSet(NamedTuple):
    """A data set as it was read, and how many rows were dropped for they hold no rating."""

    ratings: RatingSet
    implicit: int


def find_data(needs: tuple[Need, ...], config: Config, run: Run) -> dict[str, FoundFile]:
    """Return the data sets that are there, by the needs' names: of each the first choice."""
    found = {}
    for need in needs:
        for file in need.choices:
            for path in file.paths:
                infos = run.files.glob(f"{config.experiment.data.rstrip('/')}/{path}")
                if infos and need.name not in found:
                    found[need.name] = FoundFile(file, tuple(infos))
    return found


def read_rating_set(spark: SparkSession, source: FoundFile, run: Run) -> ReadSet:
    """Read a data set with the parser of its format; every row that is a rating must be good."""
    first = source.infos[0].path
    settings = InputConfig(path=first, format=source.file.format)
    with scan_settings(spark), damaged_files_are_named(run.root):
        pieces = gather(list(source.infos), settings, 1, run).pieces.rows
        unusable = counts_by_reason(pieces)
        _check_held(unusable.pop(None, 0), first)
        # by the rules of the format they are no ratings, and nothing is wrong with them
        implicit = unusable.pop(IMPLICIT, 0)
        if unusable:
            raise InputDataError(
                f"{first}: holds rows that are no ratings ({min(map(str, unusable))}): "
                "experiments want the data sets as they were published"
            )
        packed = pieces.where("share is not null").select(*READ_COLUMNS)
        try:
            ratings = build_rating_set(source.file.name, lambda: _local_rows(packed))
        except RatedTwiceError as error:
            raise InputDataError(f"{first}: {error}: keep one of these ratings") from None
    return ReadSet(ratings, implicit)


def _local_rows(frame: DataFrame) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a table, a partition at a time."""
    for row in frame.toLocalIterator(prefetchPartitions=True):
        yield row.asDict()


def _check_held(ratings: int, path: str) -> None:
    """Refuse what this machine cannot hold: a sparse matrix is not read piece by piece."""
    memory = this_machine().memory
    if ratings * RATING_BYTES > _RATINGS_SHARE * memory:
        most = int(_RATINGS_SHARE * memory / RATING_BYTES)
        raise InputDataError(
            f"{path}: holds {ratings:,} ratings, and an experiment has all of them in the memory "
            f"of one machine, at {RATING_BYTES} bytes each: of the {memory / 1e9:.1f} GB here "
            f"{_RATINGS_SHARE:.0%} may be theirs, which is {most:,}: leave a part in the data "
            "folder, such as combined_data_1.txt of Netflix, or take a larger machine"
        )


def distribute(ratings: RatingSet, spark: SparkSession, run: Run) -> RatingSetFiles:
    """Put a data set onto every node that works for the run, as files to map into memory."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as temporary:
        folder = Path(temporary)
        files = write_rating_set(folder, ratings)
        for file in files.arrays:
            target = run.scratch_path(f"{FILES}/{file.name}")
            run.files.upload(folder / file.name, target)
            spark.sparkContext.addFile(run.files.uri(target))
    return files
