"""Contracts of theorems and the papers' experiments."""

from __future__ import annotations

from spark_rank.tables.contract import Column, Contract

THEOREMS = Contract(
    "theorems",
    1,
    "one row per statement and size: what the theory says and what the experiment measured",
    (
        Column("theorem", "string", "the statement"),
        Column("kind", "string", "kind of tournament"),
        Column("n", "int", "number of items"),
        Column("k", "int", "number of top items wanted; null: all items"),
        Column("trials", "int", "number of random tournaments"),
        Column("measured", "double", "mean over the tournaments"),
        Column("ci_low", "double", "lower end of the mean's interval"),
        Column("ci_high", "double", "upper end of the mean's interval"),
        Column("reference", "double", "value by the theory"),
        Column("holds", "boolean", "whether the interval agrees with the theory; null: undecided"),
    ),
)

_EXPERIMENT = Column("experiment", "string", "name of the experiment")
_PART = Column("part", "string", "part of the experiment: a data set, a group of users, or all")
_METRIC = Column("metric", "string", "what was measured")
_X = Column("x", "double", "position on a curve; null for a single number")

EXPERIMENT_RESULTS = Contract(
    "experiment_results",
    1,
    "one row per unit of work × number that it measured",
    (
        _EXPERIMENT,
        Column("unit", "int", "number of the unit of work, such as a trial"),
        Column("repeat", "int", "the repeat that the unit belongs to"),
        Column("target", "string", "the test user's id; null where there is none"),
        _PART,
        Column("method", "string", "the method that was measured"),
        _METRIC,
        _X,
        Column("value", "double", "the number; null where undefined"),
        Column("detail", "string", "a note on the number, or why it is undefined"),
    ),
)

EXPERIMENT_SUMMARY = Contract(
    "experiment_summary",
    1,
    "one row per part × metric × method × position on a curve: mean, beside the published figure",
    (
        _EXPERIMENT,
        _PART,
        _METRIC,
        Column("method", "string", "the method that was measured"),
        _X,
        Column("n", "int", "number of values: units, or repeats where these are averaged first"),
        Column("undefined", "int", "number of further units without a value"),
        Column("mean", "double", "mean of the values"),
        Column("sd", "double", "standard deviation of the values; null with fewer than two"),
        Column("ci_low", "double", "lower end of Student's 95 % interval of the mean"),
        Column("ci_high", "double", "upper end"),
        Column("published", "double", "the published figure; null where there is none"),
        Column(
            "published_low",
            "double",
            "lower end of the published interval; null where there is none",
        ),
        Column("published_high", "double", "upper end"),
        Column("difference", "double", "mean minus published figure"),
        Column("differs", "boolean", "whether the intervals are disjoint; null: unknown"),
        Column("source", "string", "where it was published"),
    ),
)

EXPERIMENT_CLAIMS = Contract(
    "experiment_claims",
    2,
    "one row per statement that one method is better than another, tested on the same units",
    (
        _EXPERIMENT,
        Column("statement", "string", "the statement"),
        _PART,
        _METRIC,
        Column("lower", "string", "the method that should have the lower value of the metric"),
        Column("higher", "string", "the method that should have the higher value"),
        _X,
        Column("n", "int", "units (or repeats) with both values"),
        Column("difference", "double", "mean of higher minus lower"),
        Column("ci_low", "double", "lower end of Student's 95 % interval of that mean"),
        Column("ci_high", "double", "upper end"),
        Column("wilcoxon_p", "double", "two-sided Wilcoxon signed-rank test"),
        Column("wilcoxon_p_holm", "double", "wilcoxon_p with Holm's correction for all statements"),
        Column("holds", "boolean", "whether the interval is above 0; null: it contains 0"),
        Column("source", "string", "where the statement was published"),
    ),
)
