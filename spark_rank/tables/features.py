"""Contracts of item features, and of the reviewers whose ratings they are."""

from __future__ import annotations

from spark_rank.tables.contract import Column, Contract

PANEL = Contract(
    "panel",
    2,
    "the reference reviewers: one per feature column, or those that each user's are drawn from",
    (
        Column(
            "feature",
            "int",
            "column in the feature vectors, from 0; with features.kind reference the reviewer's "
            "number, as in the models' column `reviewers`",
        ),
        Column("user_id", "string", "the reviewer's id as in the input"),
        Column("user", "int", "the reviewer's dense number"),
        Column("n_train", "int", "number of the reviewer's training ratings"),
        Column("median", "double", "median of the reviewer's ratings that are features"),
        Column(
            "missing",
            "float",
            "the feature of an item that the reviewer has not rated: the median minus the middle "
            "of the scale",
        ),
    ),
)

REVIEWER_RATINGS = Contract(
    "reviewer_ratings",
    1,
    "one row per rating of a reviewer in `panel`, with features.kind reference: a feature's value",
    (
        Column("feature", "int", "number of the reviewer in `panel`"),
        Column("item_id", "string", "id as in the input"),
        Column("item", "int", "dense item number"),
        Column("value", "float", "the rating minus the middle of the scale"),
    ),
)

ITEM_FEATURES = Contract(
    "item_features",
    2,
    "one row per item: its offset and its features, which learners see",
    (
        Column("item_id", "string", "id as in the input"),
        Column("item", "int", "dense item number"),
        Column(
            "offset",
            "double",
            "item offset: its mean rating beyond that of its users, shrunken",
        ),
        Column(
            "features",
            "array<float>",
            "whitened factors, the panel's ratings or given features; null where users have "
            "different reviewers, or where the offset is the only feature",
        ),
    ),
)
