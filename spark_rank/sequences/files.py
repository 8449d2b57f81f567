"""Training sequences as memory-mapped files: features and ranks, trial after trial.

Each trial has its training examples first, in their order, then the held-out ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.errors import InputDataError
from spark_rank.features.files import MappedFile, publish_array, verified
from spark_rank.session.filesystem import literal
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import Column, arrow_schema, ddl
from spark_rank.wording import count_of

_PACKED = (
    Column("n", "int", "examples"),
    Column("features", "binary", "float64, example after example"),
    Column("ranks", "binary", "int64"),
)
_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_VALUES = (*_NUMBERS, "float", "double")
_EXAMPLES_PER_PART = 200_000


@dataclass(frozen=True)
class TrialPart:
    """The rows of a trial's examples: `n_train` from `start` on, then `n_test` held-out ones."""

    trial: int
    start: int
    n_train: int
    n_test: int


@dataclass(frozen=True)
class SupportFiles:
    """The files of `Supports`."""

    parts: tuple[TrialPart, ...]
    points: MappedFile
    roots: MappedFile


@dataclass(frozen=True)
class SequenceFiles:
    """The files of a sequence; `supports` if the features are those of landmarks."""

    features: MappedFile
    ranks: MappedFile
    supports: SupportFiles | None = None

    def all(self) -> tuple[MappedFile, ...]:
        """Return every file."""
        of_supports = () if self.supports is None else (self.supports.points, self.supports.roots)
        return self.features, self.ranks, *of_supports


@dataclass(frozen=True)
class Supports:
    """Landmarks, and the matrices that turn weights on landmark features into coefficients.

    For each of `parts`, `points` has the landmarks and `roots` the matrix from weights to
    coefficients of the landmarks. A part with fewer examples than the others is padded with 0.
    """

    parts: tuple[TrialPart, ...]
    points: NDArray[np.float64]
    roots: NDArray[np.float64]

    def of(self, part: TrialPart) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return points and root of one part."""
        place = self.parts.index(part)
        points, root = self.points[place, : part.n_train], self.roots[place, : part.n_train]
        return np.asarray(points), np.asarray(root)


@dataclass(frozen=True)
class Examples:
    """The opened files: a row of features and a rank per example."""

    features: NDArray[np.float64]
    ranks: NDArray[np.int64]
    supports: Supports | None = None


@dataclass(frozen=True)
class SequenceFacts:
    """Width, ranks and parts of a sequence, found in one pass over its examples."""

    width: int
    n_ranks: int
    parts: tuple[TrialPart, ...]

    @property
    def n_examples(self) -> int:
        """Return how many examples there are, held-out ones too."""
        return sum(part.n_train + part.n_test for part in self.parts)


def read_sequence(spark: SparkSession, files: list[str], key: str) -> DataFrame:
    """Return ``trial, test, file, row, features, rank``, or raise `InputDataError`."""
    table = spark.read.parquet(*[literal(path) for path in files])
    kinds = {field.name: field.dataType.simpleString() for field in table.schema}
    for name, allowed in (("features", [f"array<{kind}>" for kind in _VALUES]), ("rank", _NUMBERS),
                          ("test", ["boolean"]), ("trial", _NUMBERS)):  # fmt: skip
        if name not in kinds and name in ("features", "rank"):
            raise InputDataError(
                f"{key}: has no column {name!r}, only {', '.join(kinds)}: features and rank are "
                "required, test and trial are optional"
            )
        if name in kinds and kinds[name] not in allowed:
            raise InputDataError(
                f"{key}: column {name!r} is {kinds[name]}: it must be {' or '.join(allowed)}"
            )
    return table.select(
        (F.col("trial") if "trial" in kinds else F.lit(1)).cast("int").alias("trial"),
        (F.col("test") if "test" in kinds else F.lit(False)).alias("test"),
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.row_index").alias("row"),
        F.col("features").cast("array<double>").alias("features"),
        F.col("rank").cast("bigint").alias("rank"),
    )


def sequence_facts(table: DataFrame, key: str) -> SequenceFacts:
    """Check every example and count them, in one pass; or raise `InputDataError`."""
    unusable = F.exists("features", lambda x: x.isNull() | F.isnan(x) | (F.abs(x) == float("inf")))
    bad = F.coalesce(unusable, F.lit(True)) | F.col("rank").isNull() | (F.col("rank") < 1)
    bad = bad | F.col("trial").isNull() | F.col("test").isNull()
    counted = table.groupBy("trial", "test").agg(
        F.count("*").alias("n"), F.count_if(bad).alias("bad"),
        F.min(F.size("features")).alias("least"), F.max(F.size("features")).alias("most"),
        F.max("rank").alias("n_ranks"),
    ).collect()  # fmt: skip
    unusable_rows = sum(row["bad"] for row in counted)
    if unusable_rows:
        raise InputDataError(
            f"{key}: {count_of(unusable_rows, 'row')} without features, with a feature "
            "that is not a finite number, with a rank below 1, or without a trial: correct or "
            "remove them"
        )
    if not counted:
        raise InputDataError(f"{key}: is empty: give at least one example to learn from")
    least, most = min(row["least"] for row in counted), max(row["most"] for row in counted)
    if least != most or not most:
        raise InputDataError(
            f"{key}: features have {least} to {most} entries: all rows need the same number, at "
            "least one"
        )
    n_ranks = max(row["n_ranks"] for row in counted)
    if n_ranks < 2:
        raise InputDataError(f"{key}: all ranks are 1: there is nothing to learn")
    sizes = {(row["trial"], row["test"]): row["n"] for row in counted}
    return SequenceFacts(most, n_ranks, _parts(sizes, key))


def write_sequence(table: DataFrame, facts: SequenceFacts, folder: Path) -> SequenceFiles:
    """Write the examples in their order into a local folder, a chunk at a time."""
    shape = (facts.n_examples, facts.width)
    features: NDArray[np.float64] = np.lib.format.open_memmap(
        folder / "unsorted.npy", mode="w+", dtype=np.float64, shape=shape
    )
    ranks = np.empty(facts.n_examples, dtype=np.int64)
    order = ("trial", "test", "file", "row")
    tasks = -(-facts.n_examples // _EXAMPLES_PER_PART)
    placed = table.repartitionByRange(tasks, *order).sortWithinPartitions(*order)
    done = 0
    for row in by_workers(placed, _pack, ddl(_PACKED)).toLocalIterator():
        stop = done + row["n"]
        features[done:stop] = np.frombuffer(row["features"]).reshape(-1, facts.width)
        ranks[done:stop] = np.frombuffer(row["ranks"], np.int64)
        done = stop
    if done != facts.n_examples:
        raise InputDataError("the sequence changed while it was read: start again")
    return as_files(features, ranks, folder)


def as_files(
    features: NDArray[np.float64], ranks: NDArray[np.int64], folder: Path
) -> SequenceFiles:
    """Write arrays of all examples into a local folder."""
    return SequenceFiles(
        publish_array(folder, "sequence", features), publish_array(folder, "ranks", ranks)
    )


def open_sequence(files: SequenceFiles) -> Examples:
    """Map the files that Spark distributed to this node into memory (`SparkContext.addFile`)."""
    return _open(files, SparkFiles.getRootDirectory())


@lru_cache(maxsize=2)
def _open(files: SequenceFiles, folder: str) -> Examples:
    paths = [verified(file, Path(folder)) for file in files.all()]
    # compiled functions take plain arrays: views of the mapped ones
    features, ranks, *of_supports = [
        np.asarray(np.load(path, mmap_mode="r", allow_pickle=False)) for path in paths
    ]
    if files.supports is None:
        return Examples(features, ranks)
    return Examples(features, ranks, Supports(files.supports.parts, *of_supports))


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(_PACKED)
    for batch in batches:
        values = batch.column("features").flatten().to_numpy(zero_copy_only=False)
        ranks = batch.column("rank").to_numpy()
        row = {"n": len(batch), "features": values.tobytes(), "ranks": ranks.tobytes()}
        yield pa.RecordBatch.from_pylist([row], schema=schema)


def _parts(sizes: dict[tuple[int, bool], int], key: str) -> tuple[TrialPart, ...]:
    parts: list[TrialPart] = []
    start = 0
    for trial in sorted({trial for trial, _ in sizes}):
        n_train, n_test = sizes.get((trial, False), 0), sizes.get((trial, True), 0)
        if n_train == 0:
            raise InputDataError(f"{key}: trial {trial} has no example to learn from: test is true")
        parts.append(TrialPart(trial, start, n_train, n_test))
        start += n_train + n_test
    return tuple(parts)
