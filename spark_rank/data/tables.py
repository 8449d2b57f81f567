"""The contracts of this version, table by table."""

from __future__ import annotations

from spark_rank.data.contracts import Column, Contract

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
    1,
    "one row per user and item",
    (
        Column("user", "int", "dense user number"),
        Column("item", "int", "dense item number"),
        Column("rating", "float", "rating as given"),
        Column("timestamp", "bigint", "seconds since 1970; null where unknown"),
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
    1,
    "input rows that could not be used",
    (
        Column("source", "string", "file the row came from; null for duplicates"),
        Column("raw", "string", "the row as it was; of a duplicate its values as JSON"),
        Column("reason", "string", "why it was set aside"),
    ),
)

BLOCKS = Contract(
    "blocks",
    1,
    "one row per user: all ratings, the first n_train of them for training",
    (
        Column("user", "int", "dense user number"),
        Column("user_id", "string", "id as in the input"),
        Column("items", "array<int>", "dense item numbers in presentation order"),
        Column("ratings", "array<float>", "ratings in the same order"),
        Column("timestamps", "array<bigint>", "timestamps in the same order"),
        Column("n_train", "int", "how many of them are for training"),
        Column("bucket", "int", "hash bucket of the user (partition)"),
    ),
)

PANEL = Contract(
    "panel",
    1,
    "the reference reviewers: what each feature column is",
    (
        Column("feature", "int", "column in the feature vectors, from 0"),
        Column("user_id", "string", "the reviewer's id as in the input"),
        Column("user", "int", "the reviewer's dense number"),
        Column("n_train", "int", "number of the reviewer's training ratings"),
        Column(
            "median", "double", "the reviewer's median training rating: stands for a missing one"
        ),
    ),
)

ITEM_FEATURES = Contract(
    "item_features",
    1,
    "what an item looks like to a learner",
    (
        Column("item_id", "string", "id as in the input"),
        Column("item", "int", "dense item number"),
        Column("offset", "double", "item offset: shrunken mean of user-centred training ratings"),
        Column("features", "array<float>", "ratings of the panel, filled and shifted"),
    ),
)

MODELS = Contract(
    "models",
    1,
    "one row per user and learner: score(i) = intercept + [uses_offset] offset(i) + w·x(i) "
    "or + Σ dual_j K(x(support_j), x(i))",
    (
        Column("user_id", "string", "id as in the input"),
        Column("learner", "string", "name of the learner or baseline"),
        Column("status", "string", "learned, fallback (to the item offset) or failed"),
        Column("reason", "string", "why not learned; null when learned"),
        Column("detail", "string", "what a failure said; null otherwise"),
        Column("n_train", "int", "number of training ratings"),
        Column("n_test", "int", "number of held-out ratings"),
        Column("hyperparameters", "string", "JSON of the learner's hyper-parameters"),
        Column("kernel", "string", "kernel of the model; null for fallbacks and baselines"),
        Column("gamma", "double", "kernel width used; null for the linear kernel"),
        Column("on_rating_scale", "boolean", "whether scores are ratings; else only their order"),
        Column("uses_offset", "boolean", "whether the item offset is added to the score"),
        Column("excluded_feature", "int", "the user's own panel column, read as 0; else null"),
        Column("intercept", "double", "constant of the score"),
        Column("weights", "array<float>", "w of a linear model, one per feature"),
        Column("support_items", "array<string>", "items of the dual coefficients"),
        Column("dual", "array<float>", "dual coefficients of a kernel model"),
        Column("train_msd", "double", "mean squared difference on the training ratings"),
        Column("train_m1d", "double", "mean 1-norm difference on the training ratings"),
        Column("train_misranking", "double", "pairwise misranking on the training ratings"),
        Column("test_ratings", "array<float>", "held-out ratings, in the order of the user block"),
        Column("test_scores", "array<float>", "their scores; null when failed"),
    ),
)

METRICS = Contract(
    "metrics",
    1,
    "one row per user and learner: how well the held-out ratings were predicted",
    (
        Column("user_id", "string", "id as in the input"),
        Column("learner", "string", "name of the learner or baseline"),
        Column("status", "string", "learned, fallback (to the item offset) or failed"),
        Column("reason", "string", "why not learned; null when learned"),
        Column("n_train", "int", "number of training ratings"),
        Column("n_test", "int", "number of held-out ratings"),
        Column(
            "msd",
            "double",
            "mean squared difference over pairs; null when undefined",
        ),
        Column("m1d", "double", "mean 1-norm difference over pairs; null when undefined"),
        Column("misranking", "double", "share of misranked pairs; null when all ratings tie"),
        Column("train_msd", "double", "the same on the training ratings"),
        Column("train_m1d", "double", "the same on the training ratings"),
        Column("train_misranking", "double", "the same on the training ratings"),
    ),
)

SUMMARY = Contract(
    "summary",
    1,
    "one row per learner and metric: its distribution over users",
    (
        Column("learner", "string", "name of the learner or baseline"),
        Column("metric", "string", "msd, m1d or misranking"),
        Column("users", "bigint", "users with a defined value"),
        Column("mean", "double", "mean over those users"),
        Column("sd", "double", "standard deviation over those users"),
        Column("ci_low", "double", "lower end of the 95 % t interval of the mean"),
        Column("ci_high", "double", "upper end of the 95 % t interval of the mean"),
        Column("p05", "double", "5 % quantile over users"),
        Column("p25", "double", "25 % quantile"),
        Column("p50", "double", "median"),
        Column("p75", "double", "75 % quantile"),
        Column("p95", "double", "95 % quantile"),
    ),
)

TABLES = {
    contract.table: contract
    for contract in (
        SYNTHETIC, RATINGS, USERS, ITEMS, QUARANTINE, BLOCKS, PANEL, ITEM_FEATURES, MODELS,
        METRICS, SUMMARY,
    )
}  # fmt: skip
