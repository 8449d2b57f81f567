"""Reads rating files into pieces, for `ingest` and for experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.formats import FORMATS, read_ratings
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.columns import PART
from spark_rank.data.formats.parquet import PARQUET_SETTINGS
from spark_rank.data.quality import with_reason
from spark_rank.session.files import FileInfo
from spark_rank.session.session import runtime_setting
from spark_rank.stages.ingest_pieces import Pieces, cut, merged_shares
from spark_rank.stages.ingest_scan import scan_netflix
from spark_rank.store.run import Run


@contextmanager
def scan_settings(spark: SparkSession) -> Iterator[None]:
    """Set how Spark splits and batches files for a block of code.

    Two passes over a text must split it alike, but by default the splits depend on the current
    number of cores. A task opens many small files, and few tasks list them. Workers get tens of
    thousands of rows at a time, and packed rows by their bytes.
    """
    cores = str(spark.sparkContext.defaultParallelism)
    wanted = {
        "spark.sql.files.minPartitionNum": cores,
        "spark.sql.files.openCostInBytes": "524288",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.execution.arrow.maxBytesPerBatch": "8388608",
        "spark.sql.parquet.columnarReaderBatchSize": "256",
        **PARQUET_SETTINGS,
    }
    with ExitStack() as stack:
        for name, value in wanted.items():
            if name != "spark.sql.files.minPartitionNum" or spark.conf.get(name, None) is None:
                stack.enter_context(runtime_setting(spark, name, value))
        yield


class Gathered(NamedTuple):
    """Pieces with tallies, the judged rows, and the starts of the splits.

    Pieces are kept in scratch. Judged rows are read again if some of them go to the quarantine. In
    the format netflix, they are the few lines that are not plain ratings, or None.
    """

    pieces: Pieces
    judged: DataFrame | None
    starts: DataFrame | None


def gather(
    infos: list[FileInfo],
    settings: InputConfig,
    buckets: int,
    run: Run,
    part_of: Mapping[str, int] | None = None,
) -> Gathered:
    """Read files, judge their rows and keep the good ones as pieces, by bucket of users.

    `part_of` has the part of every file, if the files are those of a given split.
    """
    keep, shares = run.keep, merged_shares(infos, buckets)
    plain = None
    if settings.format == "netflix" and not part_of:
        plain, reading = scan_netflix(infos, settings, shares, run, keep)
        if reading is None:
            return Gathered(Pieces(plain, shares), None, None)
    else:
        reading = read_parts(infos, settings, run, part_of)
    judged = with_reason(reading.rows, settings)
    if FORMATS[settings.known_format].has_features:
        judged = keep(judged, "judged")
    pieces = keep(cut(judged, shares), "pieces")
    if plain is not None:
        pieces = plain.select(*pieces.columns).unionByName(pieces)
    return Gathered(Pieces(pieces, shares, PART in judged.columns), judged, reading.starts)


def read_parts(
    infos: list[FileInfo], settings: InputConfig, run: Run, part_of: Mapping[str, int] | None
) -> Reading:
    """Read files; with `part_of`, those of every part separately, with the column ``part``."""
    files = [info.path for info in infos]
    if not part_of:
        return read_ratings(run.spark, files, settings)
    rows, starts = [], []
    for part in sorted(set(part_of.values())):
        reading = read_ratings(run.spark, [f for f in files if part_of[f] == part], settings)
        rows.append(reading.rows.withColumn(PART, F.lit(part)))
        starts += [] if reading.starts is None else [reading.starts]
    union = DataFrame.unionByName
    return Reading(reduce(union, rows), reduce(union, starts) if starts else None)
