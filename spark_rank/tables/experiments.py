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
        Column("k", "int", "items asked for; null: all"),
        Column("trials", "int", "random tournaments"),
        Column("measured", "double", "mean over them"),
        Column("ci_low", "double", "lower end of its interval"),
        Column("ci_high", "double", "upper end of its interval"),
        Column("reference", "double", "what the theory says"),
        Column("holds", "boolean", "whether the interval agrees with the theory; null: undecided"),
    ),
)

_EXPERIMENT = Column("experiment", "string", "name of the experiment")
_PART = Column("part", "string", "part of it: a data set, a group of users, or all")
_METRIC = Column("metric", "string", "what was measured")
_X = Column("x", "double", "place on a curve; null for a number of its own")

EXPERIMENT_RESULTS = Contract(
    "experiment_results",
    1,
    "one row per unit of work × number that it found",
    (
        _EXPERIMENT,
        Column("unit", "int", "number of the unit of work, such as a trial"),
        Column("repeat", "int", "the repeat it belongs to"),
        Column("target", "string", "the test user's id; null where there is none"),
        _PART,
        Column("method", "string", "who was measured"),
        _METRIC,
        _X,
        Column("value", "double", "the number; null where undefined"),
        Column("detail", "string", "what to know of it; why there is none"),
    ),
)

EXPERIMENT_SUMMARY = Contract(
    "experiment_summary",
    1,
    "one row per part × metric × method × place on a curve: the mean, beside what was published",
    (
        _EXPERIMENT,
        _PART,
        _METRIC,
        Column("method", "string", "who was measured"),
        _X,
        Column("n", "int", "values: units, or repeats where they are averaged first"),
        Column("undefined", "int", "how many more have no value"),
        Column("mean", "double", "their mean"),
        Column("sd", "double", "their standard deviation; null with fewer than two"),
        Column("ci_low", "double", "lower end of Student's 95 % interval of the mean"),
        Column("ci_high", "double", "upper end"),
        Column("published", "double", "the published figure; null where there is none"),
        Column("published_low", "double", "lower end of its interval; null where none was printed"),
        Column("published_high", "double", "upper end"),
        Column("difference", "double", "mean minus published figure"),
        Column("differs", "boolean", "whether the intervals are apart; null: cannot be told"),
        Column("source", "string", "where it was published"),
    ),
)

EXPERIMENT_CLAIMS = Contract(
    "experiment_claims",
    2,
    "one row per statement that one method is better than another, tried on the same units",
    (
        _EXPERIMENT,
        Column("statement", "string", "the statement"),
        _PART,
        _METRIC,
        Column("lower", "string", "the method that is said to have less of the metric"),
        Column("higher", "string", "the method that is said to have more"),
        _X,
        Column("n", "int", "units (or repeats) with both"),
        Column("difference", "double", "mean of higher minus lower"),
        Column("ci_low", "double", "lower end of Student's 95 % interval of that mean"),
        Column("ci_high", "double", "upper end"),
        Column("wilcoxon_p", "double", "of the signed-rank test, two-sided"),
        Column("wilcoxon_p_holm", "double", "the same, corrected for all statements"),
        Column("holds", "boolean", "whether the interval is above 0; null: it holds 0"),
        Column("source", "string", "who says so"),
    ),
)
