"""What workers log and print arrives at the driver, with the exception's place."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_rank.session.worker_log import tell_worker_lines

Work = Callable[[Iterator[Any]], Iterator[Any]]


@pytest.fixture
def talking() -> Work:
    """Return what workers run; defined here, for they cannot import a module of tests."""

    def talk(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            logging.getLogger("spark_rank.test").warning("a worker's warning \x1b[2J")
            print("printed by a worker")
            try:
                int("x")
            except ValueError:
                logging.getLogger("spark_rank.test").exception("user 7 failed")
            yield pa.record_batch({"id": batch.column(0)})

    return talk


@pytest.fixture
def own_session(spark: SparkSession) -> SparkSession:
    """Return a session beside the tests' own: lines belong to a session."""
    return spark.newSession()


def test_lines_of_workers_are_told(
    own_session: SparkSession, talking: Work, capfd: pytest.CaptureFixture[str]
) -> None:
    tell_worker_lines(own_session)
    assert capfd.readouterr().err == ""
    own_session.range(0, 4, 1, 2).mapInArrow(talking, "id long").count()
    capfd.readouterr()
    tell_worker_lines(own_session)
    shown = capfd.readouterr().err.splitlines()
    assert len(shown) == 6
    assert shown.count(r"spark-rank: a worker logged: a worker's warning \x1b[2J") == 2
    assert shown.count("spark-rank: a worker logged: printed by a worker") == 2
    (where,) = {line for line in shown if "user 7 failed" in line}
    assert "ValueError: invalid literal for int()" in where
    assert "in talk, " in where
    assert "test_worker_log.py:" in where


def test_many_lines_are_cut_short(
    own_session: SparkSession, talking: Work, capfd: pytest.CaptureFixture[str]
) -> None:
    own_session.range(0, 200, 1, 2).mapInArrow(talking, "id long").count()
    capfd.readouterr()
    tell_worker_lines(own_session)
    shown = capfd.readouterr().err.splitlines()
    assert len(shown) == 21
    assert shown[-1].endswith("more lines, not shown")


def test_who_turned_it_off_hears_nothing(own_session: SparkSession) -> None:
    own_session.conf.set("spark.sql.pyspark.worker.logging.enabled", "false")
    tell_worker_lines(own_session)
