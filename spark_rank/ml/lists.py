"""Lists of items for users and of users for items, with the schema of ALS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_rank.config.schema import ITEM_OFFSET
from spark_rank.features.similar import Directions
from spark_rank.frames.recommend import best_users, recommend
from spark_rank.ml.trained import Trained
from spark_rank.session.sharing import share
from spark_rank.users.best_users import BestUsersJob
from spark_rank.users.joining import ScoringLearner
from spark_rank.users.recommending import RecommendJob, facts_as_bytes, list_facts

_LIST = "recommendations"
_SIMILAR = pa.schema([
    ("item_id", pa.string()), ("position", pa.int32()), ("other", pa.string()),
    ("alike", pa.float64()),
])  # fmt: skip


@dataclass(frozen=True)
class Names:
    """The names of the columns of users and items, and the types of their ids in the input."""

    user: str
    item: str
    user_type: DataType
    item_type: DataType


def lists_of_users(
    trained: Trained,
    users: DataFrame | None,
    count: int,
    names: Names,
    *,
    beta: float,
    rated: bool,
) -> DataFrame:
    """Return the best items of every user, or of those known users that `users` names.

    `users` has the column ``user_id``. `beta` is that of `RecommendJob`. With `rated`, items that
    the user has rated are listed too.
    """
    blocks = trained.blocks
    if users is not None:
        blocks = blocks.join(users.select("user_id").distinct(), "user_id", "left_semi")
    spec, scale = trained.spec, trained.scale
    job = RecommendJob(
        trained.job.files, spec.label, count, 0, scale, *trained.limits,
        beta=beta, rated=rated,
    )  # fmt: skip
    facts = share(trained.spark, facts_as_bytes(list_facts(trained.item_facts)))
    rows = recommend(
        blocks, trained.models, ScoringLearner(spec.label, ITEM_OFFSET), job, facts, trained.buckets
    )
    # as `transform` predicts: scores on the scale of the ratings are not cut at its ends
    rating = F.col("score") if spec.kind.on_rating_scale else F.col("predicted_rating")
    entry = F.struct(
        "position",
        F.col("item_id").cast(names.item_type).alias(names.item),
        F.coalesce(rating, "score").cast("float").alias("rating"),
    )
    return _listed(rows, "user_id", entry, names.user, names.user_type)


def lists_of_items(
    trained: Trained, items: DataFrame, count: int, names: Names, *, rated: bool
) -> DataFrame:
    """Return, for each known item in `items` (``item_id``), the users with the best predictions."""
    known = trained.items.join(items.select("item_id").distinct(), "item_id", "left_semi")
    numbers = known.select("item").toArrow().column("item").to_pylist()
    job = BestUsersJob(trained.job.files, trained.scale, tuple(sorted(numbers)), count, rated)
    rows = best_users(trained.blocks, trained.scoring_models(), job, trained.buckets)
    entry = F.struct(
        "position",
        F.col("user_id").cast(names.user_type).alias(names.user),
        F.col("prediction").cast("float").alias("rating"),
    )
    named = rows.join(F.broadcast(known), "item")
    return _listed(named, "item_id", entry, names.item, names.item_type)


def similar_items(trained: Trained, items: DataFrame, count: int, names: Names) -> DataFrame:
    """Return the items most similar to each known item in `items` (``item_id``)."""
    ids = trained.opened.item_ids
    wanted = items.distinct().toArrow().column("item_id")
    directions = Directions(trained.opened)
    columns: dict[str, list[Any]] = {name: [] for name in ("item_id", "position", "other", "alike")}
    for number in sorted(pc.index_in(wanted, value_set=ids).drop_null().to_pylist()):
        others, cosines = directions.most_similar(number, count)
        columns["item_id"] += [ids[number].as_py()] * len(others)
        columns["position"] += range(len(others))
        columns["other"] += ids.take(pa.array(others)).to_pylist()
        columns["alike"] += cosines.tolist()
    rows = trained.spark.createDataFrame(pa.Table.from_pydict(columns, _SIMILAR))
    entry = F.struct(
        "position",
        F.col("other").cast(names.item_type).alias(names.item),
        F.col("alike").alias("similarity"),
    )
    return _listed(rows, "item_id", entry, names.item, names.item_type, "similar")


def _listed(
    rows: DataFrame, key: str, entry: Column, name: str, id_type: DataType, column: str = _LIST
) -> DataFrame:
    """Return one row per key with its entries sorted by position; the position is dropped."""
    entries_in_order = F.array_sort(F.collect_list(entry)).alias(column)
    grouped = rows.groupBy(key).agg(entries_in_order)
    entries = F.transform(column, lambda row: row.dropFields("position")).alias(column)
    return grouped.select(F.col(key).cast(id_type).alias(name), entries)
