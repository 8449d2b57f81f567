"""Folds new ratings in: learns models of their users on the existing item features."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.data.blocks import user_blocks
from spark_rank.errors import InputDataError
from spark_rank.frames.blocks import check_ratings, number_ratings, user_numbers
from spark_rank.frames.train import train
from spark_rank.frames.weights import WEIGHT, check_weights, with_weights
from spark_rank.ml.caches import Caches
from spark_rank.ml.trained import Trained
from spark_rank.session.crashes import isolating_on_crash
from spark_rank.stages.train import status_counts


def fold_in(trained: Trained, rows: DataFrame) -> Trained:
    """Return `trained` with models of the users in ``user_id, item_id, rating, timestamp``.

    Each of these users is learned from these ratings alone; the model of a known user is
    replaced. Ratings of items without features are left out.
    """
    caches = Caches()
    with caches.released_on_failure():
        folded = _folded(trained, rows, caches)
    caches.live_as_long_as(folded)
    return folded


def _folded(trained: Trained, ratings_in: DataFrame, caches: Caches) -> Trained:
    settings = trained.config
    rows = caches.keep(ratings_in)
    count = check_ratings(rows, settings.input)
    users = caches.keep(user_numbers(rows, count, trained.users))
    ratings = number_ratings(rows, users, trained.items, count, settings.input.duplicates)
    prepared = replace(settings.prepare, train_share=1.0, split="random")
    blocks = caches.keep(user_blocks(ratings, users, trained.items, prepared, settings.seed))
    if blocks.isEmpty():
        raise InputDataError(
            "foldIn: none of the rated items has features: rate items that `fit` has seen"
        )
    learned_from = blocks
    if WEIGHT in rows.columns:
        check_weights(rows)
        learned_from = caches.keep(with_weights(blocks, rows, users, trained.items))
        learned_from.count()
    caches.drop(rows)

    def learned(isolated: bool) -> DataFrame:
        models = caches.keep(train(learned_from, replace(trained.job, isolated=isolated)))
        models.count()
        return models

    models = isolating_on_crash(learned, "foldIn", "the models")
    folded = blocks.select("user_id")
    tables = [
        old.join(folded, "user_id", "left_anti").select(*old.columns).unionByName(new)
        for old, new in ((trained.blocks, blocks), (trained.models, models))
    ]
    return replace(
        trained, users=users, blocks=tables[0], models=tables[1],
        status=status_counts(tables[1]), base=trained,
    )  # fmt: skip


def newly_rated(trained: Trained, rows: DataFrame) -> DataFrame:
    """Return blocks of known users whose held-out part is ``user_id, item_id, rating``.

    The training part stays. Ratings of unknown users and items are left out; of several ratings
    of one user and item the latest counts, as in training.
    """
    count = check_ratings(rows, trained.config.input)
    policy = trained.config.input.duplicates
    ratings = number_ratings(rows, trained.users, trained.items, count, policy)
    entry = F.struct("item", "rating")
    held = ratings.groupBy("user").agg(F.array_sort(F.collect_list(entry)).alias("_held"))
    train_items = F.slice("items", 1, F.col("n_train"))
    train_ratings = F.slice("ratings", 1, F.col("n_train"))
    return trained.blocks.join(held, "user").select(
        "user",
        "user_id",
        F.concat(train_items, F.col("_held.item")).alias("items"),
        F.concat(train_ratings, F.col("_held.rating")).alias("ratings"),
        "n_train",
        "bucket",
    )
