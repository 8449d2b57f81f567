"""Failed users, summed up by learner and reason."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_rank.records.models import FailedUser
from spark_rank.store.failures import failed_users, failure_examples, tell_failures

STATUS = {
    "mprank": {"failed: numeric_failure": 2, "failed: unexpected_error": 1, "learned": 7},
    "prank": {"fallback: too_few_ratings": 1, "learned": 9},
}


def test_only_failures_count() -> None:
    assert failed_users(STATUS) == {"mprank": {"numeric_failure": 2, "unexpected_error": 1}}
    assert failed_users({}) == {}


def test_an_example_is_the_least_user_of_each_reason(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        ("b", "mprank", "failed", "numeric_failure", "no pivot"),
        ("a", "mprank", "failed", "numeric_failure", "overflow"),
        ("c", "mprank", "failed", "unexpected_error", "KeyError: 7"),
        ("d", "mprank", "learned", None, None),
    ]
    columns = "user_id string, learner string, status string, reason string, detail string"
    examples = failure_examples(spark.createDataFrame(rows, columns).repartition(3))
    assert examples == {
        "mprank": {
            "numeric_failure": FailedUser("a", "overflow"),
            "unexpected_error": FailedUser("c", "KeyError: 7"),
        }
    }
    tell_failures("train", STATUS, examples)
    assert capsys.readouterr().err.splitlines() == [
        "[train: warning] mprank: 2 users failed by numeric_failure, for example user a: overflow",
        "[train: warning] mprank: 1 user failed by unexpected_error, for example user c: "
        "KeyError: 7",
    ]
