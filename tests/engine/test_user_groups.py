"""Every user is in exactly one group."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.engine.user_groups import UserGroups


def test_groups_cover_all_sizes_once(spark: SparkSession) -> None:
    groups = UserGroups(3, (10, 4, 20, 2))
    assert groups.names() == ("cold", "3", "4-9", "10-19", "20+")
    sizes = spark.range(0, 30).withColumn("group", groups.column(F.col("id"))).collect()
    expected = {**dict.fromkeys(range(3), "cold"), 3: "3", **dict.fromkeys(range(4, 10), "4-9"),
                **dict.fromkeys(range(10, 20), "10-19"),
                **dict.fromkeys(range(20, 30), "20+")}  # fmt: skip
    assert {row["id"]: row["group"] for row in sizes} == expected


def test_without_starts_there_are_cold_users_and_others() -> None:
    assert UserGroups(5, ()).names() == ("cold", "5+")
