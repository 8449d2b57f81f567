"""Duplicate ratings that do not count, as the lines that they were read from."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_rank.data.formats.columns import PART
from spark_rank.data.quality import DUPLICATE
from spark_rank.stages.ingest_pieces import Dictionaries, Pieces

# beyond this many, their places are not searched for: every task would hold them all
MOST_PLACED = 500_000
_VALUES = ("user_id", "item_id", "rating", "timestamp")


def repeated_ratings(pieces: Pieces, known: Dictionaries, policy: str) -> DataFrame:
    """Return ``user_id, item_id, rating, timestamp[, part]`` of duplicates that do not count.

    The ratings are merged once more, because duplicates are usually few.
    """
    merged = pieces.merged(known, policy, repeated=True)
    names = known.users.select("user_id", "user")
    return merged.join(names, "user").join(known.items, "item").select(*_values(merged))


def lines_of(repeated: DataFrame, judged: DataFrame) -> DataFrame:
    """Return the judged rows that the repeated ratings were read from.

    Of rows that are equal in every value, the first counts, and the last ones are returned.
    """
    values = _values(repeated)
    wanted = repeated.groupBy(*values).agg(F.count("*").alias("wanted"))
    same = [F.col(f"row.{name}").eqNullSafe(F.col(f"rating.{name}")) for name in values]
    good = judged.where("reason is null").alias("row")
    candidates = good.join(F.broadcast(wanted.alias("rating")), same).select("row.*", "wanted")
    last_first = Window.partitionBy(*values).orderBy(
        *[F.col(name).desc() for name in ("source", "block", "row")]
    )
    return (
        candidates.withColumn("place", F.row_number().over(last_first))
        .where("place <= wanted")
        .withColumn("reason", F.lit(DUPLICATE))
    )


def _values(rows: DataFrame) -> list[str]:
    """Return the columns that identify a rating; those of a given split have a part."""
    return [*_VALUES, *([PART] if PART in rows.columns else [])]


def without_places(repeated: DataFrame) -> DataFrame:
    """Return the repeated ratings as rows of the quarantine with their values, but no places."""
    return repeated.select(
        F.lit(None).cast("string").alias("source"),
        F.lit(None).cast("bigint").alias("line"),
        F.to_json(F.struct(*_values(repeated))).alias("raw"),
        F.lit(DUPLICATE).alias("reason"),
    )
