"""The data sets of an experiment: found below a folder, read once, given to every node."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, InputConfig
from spark_rank.data.filesystem import FileInfo
from spark_rank.data.formats import read_ratings
from spark_rank.data.quality import IMPLICIT, with_reason
from spark_rank.engine.experimenting import RatingSetFiles, write_rating_set
from spark_rank.engine.store import Run
from spark_rank.errors import InputDataError
from spark_rank.experiments.frame import Need, RatingFile
from spark_rank.experiments.rating_set import RatingSet

FILES = "experiment_files"
# at 23 bytes each they come to the driver within Spark's own limit of 1 GiB for a result
_MOST_RATINGS = 40_000_000


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


def read_rating_set(spark: SparkSession, source: FoundFile) -> ReadSet:
    """Read a data set with the parser of its format; every row that is a rating must be good."""
    paths = [info.path for info in source.infos]
    settings = InputConfig(path=paths[0], format=source.file.format)
    parsed = read_ratings(spark, paths, settings).rows
    judged = with_reason(parsed, settings).select("user_id", "item_id", "rating", "reason")
    counted = judged.groupBy("reason").agg(F.count("*")).collect()
    unusable: dict[str | None, int] = {reason: rows for reason, rows in counted}
    good = unusable.pop(None, 0)
    # by the rules of the format they are no ratings, and nothing is wrong with them
    implicit = unusable.pop(IMPLICIT, 0)
    if unusable:
        raise InputDataError(
            f"{paths[0]}: holds rows that are no ratings ({min(map(str, unusable))}): "
            "experiments want the data sets as they were published"
        )
    if good > _MOST_RATINGS:
        raise InputDataError(
            f"{paths[0]}: holds {good:,} ratings, and an experiment, which has all of them in one "
            f"machine's memory, takes up to {_MOST_RATINGS:,}: leave a part in the data folder, "
            "such as combined_data_1.txt of Netflix"
        )
    rows = judged.where(F.col("reason").isNull()).drop("reason").toArrow()
    users, items, ratings = (
        rows.column(name).to_numpy() for name in ("user_id", "item_id", "rating")
    )
    try:
        return ReadSet(RatingSet.from_columns(source.file.name, users, items, ratings), implicit)
    except ValueError as error:
        raise InputDataError(f"{paths[0]}: {error}: keep one of these ratings") from None


def distribute(
    data: Mapping[str, RatingSet], spark: SparkSession, run: Run
) -> dict[str, RatingSetFiles]:
    """Put the data sets onto every node that works for the run, as files to map into memory."""
    distributed = {}
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as temporary:
        folder = Path(temporary)
        for name, ratings in data.items():
            distributed[name] = write_rating_set(folder, ratings)
            for file in distributed[name].arrays:
                target = run.scratch_path(f"{FILES}/{file.name}")
                run.files.upload(folder / file.name, target)
                spark.sparkContext.addFile(run.files.uri(target))
    return distributed
