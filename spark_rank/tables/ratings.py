"""Contracts of ratings, dictionaries and user blocks."""

from __future__ import annotations

from spark_rank.tables.contract import ONE_USER, Column, Contract

SYNTHETIC = Contract(
    "synthetic",
    1,
    "generated ratings, in the form that ingest reads",
    (
        Column("user", "string", "user id"),
        Column("item", "string", "item id"),
        Column("rating", "double", "rating"),
        Column("timestamp", "bigint", "seconds since 1970"),
    ),
)

RATINGS = Contract(
    "ratings",
    2,
    "one row per user and item",
    (
        Column("user", "int", "dense user number"),
        Column("item", "int", "dense item number"),
        Column("rating", "float", "rating as in the input"),
        Column("timestamp", "bigint", "seconds since 1970; null where unknown"),
        Column("part", "int", "given split: 0 train, 1 validation, 2 test; null without one"),
    ),
)

USERS = Contract(
    "users",
    1,
    "original user ids and their dense numbers",
    (
        Column("user_id", "string", "id as in the input"),
        Column("user", "int", "dense number from 0"),
    ),
)

ITEMS = Contract(
    "items",
    1,
    "original item ids and their dense numbers",
    (
        Column("item_id", "string", "id as in the input"),
        Column("item", "int", "dense number from 0"),
    ),
)

QUARANTINE = Contract(
    "quarantine",
    2,
    "input rows that could not be used",
    (
        Column("source", "string", "file of the row; null if there are very many duplicates"),
        Column(
            "line",
            "bigint",
            "line number (Parquet: row number) in the file, from 1; null if unknown",
        ),
        Column(
            "raw",
            "string",
            "the row as in the file; its values as JSON if there are very many duplicates",
        ),
        Column("reason", "string", "why the row cannot be used"),
    ),
)

RATING_SCALE = Contract(
    "rating_scale",
    1,
    "one row per level of the ratings; no rows for a continuous scale that is not cut",
    (
        Column("rank", "int", "rank of the level, from 1"),
        Column(
            "rating", "double", "the level's rating; for a cut scale the middle of its interval"
        ),
        Column(
            "lower",
            "double",
            "the cut at which the level begins; null for the lowest level and without cuts",
        ),
        Column("ratings", "bigint", "number of ratings; 0 for a known level without ratings"),
    ),
)

TITLES = Contract(
    "titles",
    1,
    "names of items, where `input.titles` gives them",
    (
        Column("item_id", "string", "id as in the input"),
        Column("item", "int", "dense item number; null when the item has no rating"),
        Column("title", "string", "name as in the file"),
        Column("year", "int", "year; null where unknown"),
    ),
)

ITEM_CONTENT = Contract(
    "item_content",
    1,
    "what `input.items` says of items, a row per value",
    (
        Column("item_id", "string", "id as in the input"),
        Column("item", "int", "dense item number"),
        Column("name", "string", "name of the column"),
        Column("value", "string", "one of its values, as text"),
    ),
)

GIVEN_FEATURES = Contract(
    "given_features",
    1,
    "feature vectors that came with the ratings (format letor)",
    (
        Column("user_id", "string", "query id as in the input"),
        Column("item_id", "string", "query id, a slash and the document's number"),
        Column("features", "array<float>", "the features 1, 2, …; the same number for every row"),
    ),
)

BLOCKS = Contract(
    "blocks",
    3,
    "one row per user: all ratings, the first n_train of them for training",
    (
        Column("user", "int", "dense user number", varied=True),
        Column("user_id", "string", "id as in the input", varied=True),
        Column("items", "array<int>", "dense item numbers in presentation order"),
        Column("ratings", "array<float>", "ratings in the same order"),
        Column(
            "timestamps",
            "array<bigint>",
            "timestamps in the same order; null unless `prepare.timestamps`",
        ),
        Column("n_train", "int", "number of ratings, from the first on, for training"),
        Column("bucket", "int", "CRC-32 of user_id modulo `prepare.buckets` (partition)"),
    ),
    group_bytes=ONE_USER,
)

ITEM_COUNTS = Contract(
    "item_counts",
    1,
    "one row per item with a rating in a block",
    (
        Column("item_id", "string", "id as in the input"),
        Column("item", "int", "dense item number"),
        Column("n_train", "bigint", "number of the item's training ratings"),
        Column("n", "bigint", "number of all ratings of the item"),
    ),
)
