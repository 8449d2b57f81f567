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
# share of the memory of the driver's machine: workers on it need theirs
_RATINGS_SHARE = 0.25


class FoundFile(NamedTuple):
    """A data set that was found, in one file or several."""

    file: RatingFile
    infos: tuple[FileInfo, ...]


class ReadSet(NamedTuple):
    """The ratings of a data set, and how many rows without a rating were dropped."""

    ratings: RatingSet
    implicit: int


def find_data(needs: tuple[Need, ...], config: Config, run: Run) -> dict[str, FoundFile]:
    """Return the data sets that were found by name; for each, the first choice that exists."""
    found = {}
    for need in needs:
        for file in need.choices:
            for path in file.paths:
                infos = run.files.glob(f"{config.experiment.data.rstrip('/')}/{path}")
                if infos and need.name not in found:
                    found[need.name] = FoundFile(file, tuple(infos))
    return found


def read_rating_set(spark: SparkSession, source: FoundFile, run: Run) -> ReadSet:
    """Read a data set with the parser of its format; every rating in it must be readable."""
    first = source.infos[0].path
    settings = InputConfig(path=first, format=source.file.format)
    with scan_settings(spark), damaged_files_are_named(run.root):
        pieces = gather(list(source.infos), settings, 1, run).pieces.rows
        unusable = counts_by_reason(pieces)
        _check_memory(unusable.pop(None, 0), first)
        # in this format, such rows are correct but hold no rating
        implicit = unusable.pop(IMPLICIT, 0)
        if unusable:
            raise InputDataError(
                f"{first}: holds rows that are no ratings ({min(map(str, unusable))}): "
                "experiments need the data sets as they were published"
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


def _check_memory(ratings: int, path: str) -> None:
    """Refuse more ratings than this machine can hold in memory at once."""
    memory = this_machine().memory
    if ratings * RATING_BYTES > _RATINGS_SHARE * memory:
        most = int(_RATINGS_SHARE * memory / RATING_BYTES)
        raise InputDataError(
            f"{path}: holds {ratings:,} ratings. An experiment keeps all ratings in memory, at "
            f"{RATING_BYTES} bytes each, in at most {_RATINGS_SHARE:.0%} of the "
            f"{memory / 1e9:.1f} GB here: that is {most:,} ratings. Leave only a part in the data "
            "folder, such as combined_data_1.txt of Netflix, or take a larger machine"
        )


def distribute(ratings: RatingSet, spark: SparkSession, run: Run) -> RatingSetFiles:
    """Put a data set onto every node, as files that workers map into memory."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as temporary:
        folder = Path(temporary)
        files = write_rating_set(folder, ratings)
        for file in files.arrays:
            target = run.scratch_path(f"{FILES}/{file.name}")
            run.files.upload(folder / file.name, target)
            spark.sparkContext.addFile(run.files.uri(target))
    return files
