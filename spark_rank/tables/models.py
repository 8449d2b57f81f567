"""Contracts of models, of what was chosen for them, and of what has changed since a run."""

from __future__ import annotations

from dataclasses import replace

from spark_rank.tables.contract import ONE_USER, Column, Contract, measured
from spark_rank.tables.features import ITEM_FEATURES, PANEL, REVIEWER_RATINGS

MODELS = Contract(
    "models",
    5,
    "one row per user and learner: score(i) = intercept + offset_weight·offset(i) + weights·x(i) + "
    "Σ dual_j K(x(support_j), x(i)) + Σ base rankers + the best prototype's rank, each where it "
    "is there; docs/guide/read-tables.md has the lines that compute it",
    (
        Column("user_id", "string", "id as in the input"),
        Column("learner", "string", "name of the learner or baseline"),
        Column("status", "string", "learned, approximated, fallback or failed"),
        Column("reason", "string", "why not learned exactly; null when learned"),
        Column("detail", "string", "what a failure said; null otherwise"),
        Column("n_train", "int", "number of training ratings"),
        Column("n_test", "int", "number of held-out ratings"),
        Column("hyperparameters", "string", "JSON of the learner's hyper-parameters"),
        Column("kernel", "string", "kernel of the model; null for fallbacks and baselines"),
        Column("gamma", "double", "kernel width used; null for the linear kernel"),
        Column("on_rating_scale", "boolean", "whether scores are ratings; else only their order"),
        measured("intercept", "constant of the score"),
        Column("offset_weight", "double", "factor of the item offset; 0 where it is not used"),
        Column("excluded_feature", "int", "the user's own panel column, read as 0; else null"),
        Column(
            "reviewers",
            "array<int>",
            "numbers in `panel` of the reviewers that are this user's features; null: all",
        ),
        Column(
            "weights",
            "array<float>",
            "one per feature: what was learned plus what was expected",
            varied=True,
        ),
        Column("support_items", "array<string>", "items of the dual coefficients"),
        Column("dual", "array<float>", "dual coefficients of a kernel model", varied=True),
        Column(
            "thresholds",
            "array<double>",
            "of a learner of ranks: the rank is 1 plus the number of thresholds that the score "
            "reaches; with `votes`: as many for every rule, rule after rule",
        ),
        Column(
            "votes",
            "array<int>",
            "of a voting PRank, the votes of rules 0, 1, …: rule s adds up the first s duals (of a "
            "linear kernel it adds up weights, dual by support), and the score is the mean of the "
            "rules' ranks by votes; else null",
        ),
        Column(
            "prototypes",
            "array<double>",
            "of a multiclass perceptron, for every rank weights on the features and, last, on the "
            "item offset: the score is the rank of the greatest sum; else null",
        ),
        Column("ranker_features", "array<int>", "of RankBoost: the features of its base rankers"),
        Column("ranker_cuts", "array<double>", "their cuts"),
        Column(
            "ranker_below",
            "array<boolean>",
            "whether they are 1 below the cut and 0 from it on, else the other way round",
        ),
        Column("ranker_alphas", "array<double>", "their weights in the sum"),
        measured("norm", "norm of the learned function in its kernel's space"),
        Column("expected_norm", "double", "norm of the expected weights; null without"),
        measured(
            "train_msd",
            "mean squared difference on the training ratings, over all ordered pairs, an item with "
            "itself included",
        ),
        measured("train_m1d", "mean 1-norm difference on them, over the same pairs"),
        measured("train_misranking", "pairwise misranking on the training ratings"),
        measured(
            "train_margin_loss",
            "ranking margin loss at `train.margin` on them; null without a norm",
        ),
        Column("bucket", "int", "bucket of the user, as in `blocks`; null of a sequence"),
    ),
    group_bytes=ONE_USER,
)

# what `refit` learns from all ratings, by the name of the measured table with the same columns
FINAL_TABLES = {
    contract.table: replace(
        contract, table=f"final_{contract.table}", doc=f"from all ratings: {contract.doc}"
    )
    for contract in (PANEL, REVIEWER_RATINGS, ITEM_FEATURES, MODELS)
}
FINAL_ITEM_FEATURES = FINAL_TABLES[ITEM_FEATURES.table]
FINAL_MODELS = FINAL_TABLES[MODELS.table]

CHANGES = Contract(
    "changes",
    1,
    "with `previous`: one row per user or item that came, went, or (a user) has other ratings",
    (
        Column("kind", "string", "user or item"),
        Column("id", "string", "id as in the input"),
        Column("change", "string", "new, changed or vanished"),
    ),
)

ENSEMBLE_MODELS = Contract(
    "ensemble_models",
    4,
    "one row per user (of a sequence: trial) and ensemble: the columns of `models`, and members",
    (
        *MODELS.columns,
        Column("trial", "int", "of a sequence: number of the trial, from 1; else null"),
        Column("n_members", "int", "number of members"),
        Column(
            "members",
            "array<float>",
            "of bagging and voted, and where kept: every member's rule, member after member: "
            "weights on the features, weight on the item offset (not of a sequence's file), "
            "thresholds; of a kernel on a budget the dual coefficients, thresholds",
            varied=True,
        ),
        Column(
            "support_features",
            "array<double>",
            "of a sequence's file and a kernel on a budget, in place of support_items: the "
            "features of the examples of the dual coefficients, one example after the other",
        ),
        Column(
            "member_votes",
            "array<int>",
            "of bagging and voted: what each member's rank counts; the score is their mean",
        ),
        Column("member_presented", "array<int>", "examples that each member was shown"),
        Column("member_correct", "array<int>", "those of them that it ranked right at once"),
        Column("member_updates", "array<int>", "how often each member's rule moved"),
        Column("online_loss", "double", "mean rank loss of the ensemble's predictions on the way"),
        Column(
            "curve",
            "array<bigint>",
            "sum of these rank losses up to round 1, 2, 3, 4, 6, 8, 11, … of `ensemble_curve`",
        ),
        Column("rank_loss", "double", "of a sequence: mean rank loss on its test part, or null"),
        Column("angle", "double", "degrees between a member and the mean, by the mean cosine"),
        Column(
            "disagreement",
            "double",
            "share of pairs of members that rank a held-out item differently",
        ),
    ),
    group_bytes=ONE_USER,
)

ENSEMBLE_CURVE = Contract(
    "ensemble_curve",
    1,
    "one row per learner and round: the rank loss of its predictions up to there",
    (
        Column("learner", "string", "name of the ensemble, or of a rival on the same sequence"),
        Column("round", "bigint", "number of examples seen"),
        Column("samples", "bigint", "users, or trials, with so many examples"),
        Column("online_loss", "double", "mean over them of the mean rank loss up to this round"),
        Column("ci_low", "double", "lower end of its t interval; null for a single one"),
        Column("ci_high", "double", "upper end of its t interval"),
    ),
)

ENSEMBLE_METRICS = Contract(
    "ensemble_metrics",
    1,
    "one row per learner on a sequence and metric: its distribution over trials",
    (
        Column("learner", "string", "name of the ensemble, or of a rival on the same sequence"),
        Column(
            "metric",
            "string",
            "rank_loss, exact_rank or misranking on the test part, or online_loss on the way",
        ),
        Column("trials", "bigint", "trials with a defined value"),
        Column("mean", "double", "mean over them; null without"),
        Column("sd", "double", "standard deviation over them; null for a single one"),
        Column("ci_low", "double", "lower end of the t interval of the mean"),
        Column("ci_high", "double", "upper end of the t interval of the mean"),
        Column("least", "double", "least value"),
        Column("greatest", "double", "greatest value"),
    ),
)

ENSEMBLE_DIVERSITY = Contract(
    "ensemble_diversity",
    1,
    "one row per ensemble: how much its members differ, and what they cost",
    (
        Column("learner", "string", "name of the ensemble"),
        Column("combine", "string", "bpm, bagging or voted"),
        Column("sampling", "string", "bernoulli or poisson"),
        Column("tau", "double", "probability that a member sees an example; null for poisson"),
        Column("n_members", "int", "number of members"),
        Column("samples", "bigint", "users, or trials, that were learned"),
        Column("angle", "double", "mean over them of `angle` of ensemble_models"),
        Column("disagreement", "double", "mean over them of `disagreement`"),
        Column("presented", "double", "mean number of examples that a member was shown"),
        Column("correct", "double", "mean number of them that it ranked right at once"),
        Column("updates", "double", "mean number of moves of a member's rule"),
        Column("prank_passes", "int", "its cost: passes of a single PRank over all examples"),
    ),
)

TUNING = Contract(
    "tuning",
    2,
    "one row per learner and point of its grid: how well it did on a sample of users",
    (
        Column("learner", "string", "name of the learner"),
        Column("candidate", "int", "number of the point, from 1"),
        Column("hyperparameters", "string", "JSON of the learner's hyper-parameters"),
        Column("measure", "string", "the metric that the error is: msd, rank_loss or misranking"),
        Column("users", "bigint", "users of the sample"),
        Column(
            "error",
            "double",
            "mean over users on training ratings that were held back from features and learner; "
            "of msd over pairs of different items; null where learning failed",
        ),
        Column("standard_error", "double", "standard error of that mean"),
        Column(
            "chosen",
            "boolean",
            "whether it is the one that train uses, or that every user's own choice starts from",
        ),
    ),
)
