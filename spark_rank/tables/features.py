"""Contracts of item features, and of the reviewers that they come from."""

from __future__ import annotations

from spark_rank.tables.contract import Column, Contract

PANEL = Contract(
    "panel",
    2,
    "the reference reviewers: what each feature column is, or from whom every user's are drawn",
    (
        Column(
            "feature",
            "int",
            "column in the feature vectors, from 0; of features.kind reference the reviewer's "
            "number, which the models' `reviewers` name",
        ),
        Column("user_id", "string", "the reviewer's id as in the input"),
        Column("user", "int", "the reviewer's dense number"),
        Column("n_train", "int", "number of the reviewer's training ratings"),
        Column("median", "double", "median of the ratings that the features are made of"),
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
    "one row per rating of a reviewer in `panel`, of features.kind reference: the feature's value",
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
    "what an item looks like to a learner",
    (
        Column("item_id", "string", "id as in the input"),
        Column("item", "int", "dense item number"),
        Column("offset", "double", "item offset: how far its ratings lie above others, shrunken"),
        Column(
            "features",
            "array<float>",
            "whitened factors, the panel's ratings or given ones; null where every user has other "
            "reviewers, or the offset is all there is",
        ),
    ),
)
