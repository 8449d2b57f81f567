"""Contracts of rankings, aggregated order and recommendations."""

from __future__ import annotations

from spark_rank.tables.contract import Column, Contract

RANKINGS = Contract(
    "rankings",
    1,
    "one row per user: the held-out items in the order of the chosen preference",
    (
        Column("user_id", "string", "id as in the input"),
        Column("items", "array<string>", "item ids, most preferred first"),
        Column("n_items", "int", "number of candidate items"),
        Column("calls", "bigint", "calls of the preference function"),
        Column("preference_loss", "double", "loss of the preferences against the ratings"),
        Column("ranking_loss", "double", "loss of the order against the ratings"),
    ),
)

MAJORITIES = Contract(
    "majorities",
    1,
    "one row per ordered pair of the items to aggregate",
    (
        Column("item_id", "string", "the preferred item"),
        Column("over_item_id", "string", "the other item"),
        Column("users", "bigint", "users who rated the first higher than the second"),
    ),
)

AGGREGATE = Contract(
    "aggregate",
    1,
    "one row per item: its place in the order that agrees best with all users",
    (
        Column("position", "int", "place, from 1"),
        Column("item_id", "string", "id as in the input"),
        Column("title", "string", "title; null where unknown"),
        Column("ratings", "bigint", "number of ratings"),
        Column("mean_rating", "double", "mean rating"),
        Column("mean_position", "int", "place in the order by mean rating"),
    ),
)

RECOMMENDATIONS = Contract(
    "recommendations",
    2,
    "one row per user, list and place: unseen items, the best and the worst by a learner's scores "
    "and the user's choices; equal ones in the order of the item ids",
    (
        Column("user_id", "string", "id as in the input"),
        Column("learner", "string", "name of the learner"),
        Column("list", "string", "top: best first; bottom: worst first, without those of the top"),
        Column("position", "int", "place in the list, from 1"),
        Column("item_id", "string", "id as in the input"),
        Column("title", "string", "title; null where unknown"),
        Column("score", "double", "the score; docs/guide/read-tables.md computes it"),
        Column(
            "list_score",
            "double",
            "what the list is ordered by: the score, plus `recommend.beta` times what the user's "
            "choices say of the item",
        ),
        Column("predicted_rank", "int", "level of the rating scale; null where there is none"),
        Column(
            "predicted_rating",
            "double",
            "the score, clipped to the range of the ratings; for learners of ranks the level's "
            "rating; null for learners of an order",
        ),
        Column(
            "item_ratings", "int", "number of the item's ratings that the models were learned from"
        ),
        Column(
            "source",
            "string",
            "learned; new_item: learned, but nothing is known of the item; fallback: the expected "
            "score of a user who was not learned; item_offset: the model failed",
        ),
        Column("reason", "string", "why the source is not learned; null when learned exactly"),
        Column("bucket", "int", "CRC-32 of user_id modulo `prepare.buckets` (partition)"),
    ),
)
