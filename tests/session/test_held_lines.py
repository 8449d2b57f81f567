"""What Spark logs of failed tasks comes with errors that nobody foresaw, and only then."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.errors import InputDataError
from spark_rank.session.held_lines import shown_with_errors
from spark_rank.session.session import _held_lines


def failing(file: Path, logged: str, error: Exception) -> Exception:
    """Return an error that was raised after something was logged."""

    def fail() -> None:
        with shown_with_errors(file):
            file.write_text(logged)
            raise error

    with pytest.raises(type(error)) as caught:
        fail()
    return caught.value


def test_what_was_logged_meanwhile_comes_with_an_unforeseen_error(tmp_path: Path) -> None:
    file = tmp_path / "spark.log"
    with shown_with_errors(file):
        pass
    file.write_text("of an earlier command\n")
    before = file.read_text()
    error = failing(file, f"{before}ERROR of this one\n", ValueError("broke"))
    assert error.__notes__[0].endswith("\nERROR of this one")
    assert "ERROR of this one" in "".join(traceback.format_exception(error))
    assert not hasattr(failing(file, file.read_text(), ValueError("broke")), "__notes__")
    told = failing(file, "more\n" * 99, InputDataError("says it all"))
    assert not hasattr(told, "__notes__")


def test_the_end_of_a_long_log_is_shown(tmp_path: Path) -> None:
    error = failing(tmp_path / "spark.log", "line\n" * 100_000 + "last", ValueError("broke"))
    (note,) = error.__notes__
    assert note.endswith("last")
    assert len(note) < 21_000


def test_a_task_that_fails_is_logged_there_and_not_on_stderr(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    unlucky = spark.range(1).select(F.raise_error(F.concat(F.lit("no luck "), F.col("id"))))
    with pytest.raises(PySparkException) as caught, shown_with_errors(_held_lines()):
        unlucky.collect()
    (note,) = caught.value.__notes__
    assert "ERROR Executor: Exception in task" in note
    assert "no luck 0" in note
    assert "ERROR" not in capfd.readouterr().err
