"""Data sets of experiments in their native formats, against the rows that their readers parse."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import InputConfig
from spark_rank.data.formats import read_ratings
from spark_rank.data.quality import with_reason
from spark_rank.errors import InputDataError
from spark_rank.experiments.data_sets import (
    CYSTIC_FIBROSIS,
    EACHMOVIE,
    JESTER,
    MOVIELENS_1M,
    NETFLIX,
)
from spark_rank.experiments.frame import RatingFile
from spark_rank.experiments.rating_set import RatingSet
from spark_rank.planning.offer import Machine
from spark_rank.session.session import runtime_setting
from spark_rank.stages import experiment_data
from spark_rank.stages.experiment_data import FoundFile, ReadSet, read_rating_set
from spark_rank.store.run import Run

ARRAYS = ("ends", "items", "ratings", "user_ids", "item_ids")
Read = Callable[..., ReadSet]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    """Return a run with a stage in progress."""
    run = Run(spark, str(tmp_path / "store"), "one")
    return run.with_draft(run.draft("experiment", "some"))


@pytest.fixture
def read(spark: SparkSession, run: Run) -> Read:
    """Read files as a data set."""

    def reading(file: RatingFile, *paths: Path) -> ReadSet:
        infos = [info for path in paths for info in run.files.glob(str(path))]
        return read_rating_set(spark, FoundFile(file, tuple(infos)), run)

    return reading


def as_columns(spark: SparkSession, file: RatingFile, *paths: Path) -> RatingSet:
    """Return the set of the rows that the format's reader finds, all of them good."""
    settings = InputConfig(path=str(paths[0]), format=file.format)
    rows = with_reason(read_ratings(spark, [str(p) for p in paths], settings).rows, settings)
    good = rows.where("reason is null").select("user_id", "item_id", "rating").collect()
    return RatingSet.from_columns(file.name, *map(list, zip(*good, strict=True)))


def assert_same(found: RatingSet, expected: RatingSet) -> None:
    assert found.name == expected.name
    for name in ARRAYS:
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert ours.dtype == theirs.dtype, name
        np.testing.assert_array_equal(ours, theirs, name)


def netflix_text(movies: range, seed: int, users: int = 400) -> str:
    """Return movies with random users; one user id is no plain one."""
    rng = np.random.default_rng(seed)
    lines = []
    for movie in movies:
        lines.append(f"{movie}:")
        for user in rng.permutation(users)[: rng.integers(1, users)].tolist():
            name = "007" if user == 7 else str(6 + 11 * user)
            lines.append(f"{name},{rng.integers(1, 6)},2005-0{rng.integers(1, 10)}-06")
    return "\n".join(lines) + "\n"


def movielens_text() -> str:
    rng = np.random.default_rng(3)
    pairs = rng.permutation(30 * 25)[:400].tolist()
    return "".join(f"{1 + p // 25}::{8 + p % 25}::{rng.integers(1, 6)}::978300760\n" for p in pairs)


def eachmovie_text() -> str:
    rng = np.random.default_rng(4)
    pairs = rng.permutation(12 * 9).tolist()
    return "".join(
        f"{p // 9}\t{p % 9}\t{rng.integers(0, 6) / 5:g}\t1\t1996-03-01 12:00:00\n" for p in pairs
    )


def jester_text() -> str:
    rng = np.random.default_rng(5)
    rows = [[f"{value:.2f}" for value in rng.uniform(-10, 10, 100)] for _ in range(6)]
    return "".join(",".join(["100", *row]) + "\n" for row in rows)


TEXTS = {"ratings.dat": (MOVIELENS_1M, movielens_text), "vote.txt": (EACHMOVIE, eachmovie_text),
         "jester.csv": (JESTER, jester_text)}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_sets_are_those_of_the_parsed_rows(
    spark: SparkSession, read: Read, tmp_path: Path, name: str, packed: bool
) -> None:
    file, text = TEXTS[name]
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text().encode()) if packed else text().encode())
    found = read(file, path)
    assert_same(found.ratings, as_columns(spark, file, path))
    assert found.implicit == 0
    assert len(found.ratings.ratings) > 100


@pytest.mark.parametrize(
    ("split", "packed"), [("20000", False), ("100000000", False), ("100000000", True)]
)
def test_netflix_is_the_same_however_it_is_split(
    spark: SparkSession, read: Read, tmp_path: Path, split: str, packed: bool
) -> None:
    paths = []
    for number, movies in enumerate((range(1, 9), range(9, 14)), start=1):
        paths.append(tmp_path / (f"combined_data_{number}.txt" + ".gz" * packed))
        text = netflix_text(movies, seed=number).encode()
        paths[-1].write_bytes(gzip.compress(text) if packed else text)
    expected = as_columns(spark, NETFLIX, *paths)
    with runtime_setting(spark, "spark.sql.files.maxPartitionBytes", split):
        found = read(NETFLIX, *paths).ratings
    assert_same(found, expected)
    assert found.item_ids.tolist() == [str(movie) for movie in range(1, 14)]
    assert "007" in found.user_ids.tolist()


def test_judgments_have_ids_that_are_no_numbers(
    spark: SparkSession, read: Read, tmp_path: Path
) -> None:
    path = tmp_path / "cfquery"
    documents = "\n".join(f"RD  {d} {d % 3}{(d + d % 2) % 3}{d % 3}1" for d in range(12))
    path.write_text(f"QN 00001\n{documents}\n")
    assert_same(read(CYSTIC_FIBROSIS, path).ratings, as_columns(spark, CYSTIC_FIBROSIS, path))


def test_a_rating_given_twice_is_refused_by_name(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "combined_data_1.txt"
    path.write_text("8:\n30,4,2005-09-06\n9,5,2005-09-06\n8:\n9,5,2005-09-07\n")
    with pytest.raises(InputDataError, match="user 9 has rated item 8 twice: keep one of these"):
        read(NETFLIX, path)


def test_rows_that_are_no_ratings_are_refused(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "combined_data_1.txt"
    path.write_text("8:\n30,4,2005-09-06\n9,six,2005-09-06\n")
    with pytest.raises(InputDataError, match=r"rows that are no ratings \(unreadable_rating\)"):
        read(NETFLIX, path)


def test_more_than_the_machine_holds_is_refused(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "combined_data_1.txt"
    path.write_text("8:\n30,4,2005-09-06\n9,3,2005-09-06\n12,3,2005-09-06\n")
    monkeypatch.setattr(experiment_data, "this_machine", lambda: Machine(2, 96.0))
    assert len(read(NETFLIX, path).ratings.ratings) == 3
    monkeypatch.setattr(experiment_data, "this_machine", lambda: Machine(2, 64.0))
    with pytest.raises(InputDataError, match=r"3 ratings.* 8 bytes each.* is 2 ratings. Leave"):
        read(NETFLIX, path)
