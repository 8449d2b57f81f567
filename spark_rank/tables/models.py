"""Contracts of models, tuning results, and changes since an earlier run."""

from __future__ import annotations

from dataclasses import replace

from spark_rank.tables.contract import ONE_USER, Column, Contract, measured
from spark_rank.tables.features import ITEM_FEATURES, PANEL, REVIEWER_RATINGS

MODELS = Contract(
    "models",
    5,
    "one row per user and learner: score(i) = intercept + offset_weight·offset(i) + weights·x(i) + "
    "Σ dual_j K(x(support_j), x(i)) + Σ base rankers + the best prototype's rank, without the "
    "terms that are null; docs/guide/read-tables.md has the code that computes it",
    (
        Column("user_id", "string", "id as in the input"),
        Column("learner", "string", "name of the learner or baseline"),
        Column("status", "string", "learned, approximated, fallback or failed"),
        Column("reason", "string", "why not learned exactly; null when learned"),
        Column("detail", "string", "the failure's message; null otherwise"),
        Column("n_train", "int", "number of training ratings"),
        Column("n_test", "int", "number of held-out ratings"),
        Column("hyperparameters", "string", "JSON of the learner's hyper-parameters"),
        Column("kernel", "string", "kernel of the model; null for fallbacks and baselines"),
        Column("gamma", "double", "kernel width used; null for the linear kernel"),
        Column(
            "on_rating_scale",
            "boolean",
            "whether scores are on the rating scale; if not, only their order has a meaning",
        ),
        measured("intercept", "constant of the score"),
        Column("offset_weight", "double", "factor of the item offset; 0 where it is not used"),
        Column(
            "excluded_feature",
            "int",
            "the user's own panel column, which counts as 0; null for users outside the panel",
        ),
        Column(
            "reviewers",
            "array<int>",
            "numbers in `panel` of the reviewers whose ratings are this user's features; null: all",
        ),
        Column(
            "weights",
            "array<float>",
            "one per feature: the learned weight plus the prior's",
            varied=True,
        ),
        Column("support_items", "array<string>", "items of the dual coefficients"),
        Column("dual", "array<float>", "dual coefficients of a kernel model", varied=True),
        Column(
            "thresholds",
            "array<double>",
            "for a learner of ranks: the rank is 1 plus the number of thresholds that the score "
            "reaches; with `votes`: the thresholds of every rule, rule after rule",
        ),
        Column(
            "votes",
            "array<int>",
            "for a voting PRank, the votes of rules 0, 1, …: rule s sums the first s duals (with a "
            "linear kernel, the first s dual × support vector), and the score is the mean of the "
            "rules' ranks, weighted by votes; otherwise null",
        ),
        Column(
            "prototypes",
            "array<double>",
            "for a multiclass perceptron, for every rank the weights on the features and, last, on "
            "the item offset: the score is the rank of the greatest sum; otherwise null",
        ),
        Column("ranker_features", "array<int>", "for RankBoost: the features of its base rankers"),
        Column("ranker_cuts", "array<double>", "the cuts of the base rankers"),
        Column(
            "ranker_below",
            "array<boolean>",
            "true: a base ranker is 1 below its cut and 0 from the cut on; false: the opposite",
        ),
        Column("ranker_alphas", "array<double>", "the weights of the base rankers in the sum"),
        measured("norm", "norm of the learned function in its kernel's space"),
        Column("expected_norm", "double", "norm of the prior's weights; null without a prior"),
        measured(
            "train_msd",
            "mean squared difference on the training ratings, over all ordered pairs, an item with "
            "itself included",
        ),
        measured(
            "train_m1d", "mean 1-norm difference on the training ratings, over the same pairs"
        ),
        measured("train_misranking", "pairwise misranking on the training ratings"),
        measured(
            "train_margin_loss",
            "ranking margin loss at `train.margin` on the training ratings; null without a norm",
        ),
        Column("bucket", "int", "bucket of the user, as in `blocks`; null for a sequence"),
    ),
    group_bytes=ONE_USER,
)

# the tables of `refit`, learned from all ratings, by the name of the evaluated table they mirror
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
    "with `previous`: one row per user or item that is new or gone, or (users) has other ratings",
    (
        Column("kind", "string", "user or item"),
        Column("id", "string", "id as in the input"),
        Column("change", "string", "new, changed or vanished"),
    ),
)

ENSEMBLE_MODELS = Contract(
    "ensemble_models",
    4,
    "one row per user (or trial of a sequence) and ensemble: the columns of `models`, and members",
    (
        *MODELS.columns,
        Column("trial", "int", "for a sequence: number of the trial, from 1; otherwise null"),
        Column("n_members", "int", "number of members"),
        Column(
            "members",
            "array<float>",
            "for bagging and voted, and where members are kept: every member's rule, member after "
            "member: weights on the features, weight on the item offset (not for a sequence's "
            "file), thresholds; for a kernel on a budget the dual coefficients, thresholds",
            varied=True,
        ),
        Column(
            "support_features",
            "array<double>",
            "for a sequence's file and a kernel on a budget, instead of support_items: the "
            "features of the examples of the dual coefficients, one example after the other",
        ),
        Column(
            "member_votes",
            "array<int>",
            "for bagging and voted: the weight of each member's rank in the mean that is the score",
        ),
        Column("member_presented", "array<int>", "number of examples that each member was shown"),
        Column("member_correct", "array<int>", "number of these that the member ranked correctly"),
        Column("member_updates", "array<int>", "number of updates of each member's rule"),
        Column(
            "online_loss",
            "double",
            "mean rank loss of the ensemble's predictions while it learned",
        ),
        Column(
            "curve",
            "array<bigint>",
            "sum of these rank losses up to round 1, 2, 3, 4, 6, 8, 11, … of `ensemble_curve`",
        ),
        Column("rank_loss", "double", "for a sequence: mean rank loss on its test part, or null"),
        Column("angle", "double", "degrees between a member and the mean rule, by the mean cosine"),
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
    "one row per learner and round: the rank loss of its predictions up to this round",
    (
        Column("learner", "string", "name of the ensemble, or of a rival on the same sequence"),
        Column("round", "bigint", "number of examples seen"),
        Column("samples", "bigint", "number of users, or trials, with at least so many examples"),
        Column("online_loss", "double", "mean over samples of the mean rank loss up to this round"),
        Column("ci_low", "double", "lower end of the t interval; null for a single sample"),
        Column("ci_high", "double", "upper end of the t interval"),
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
            "rank_loss, exact_rank or misranking on the test part, or online_loss",
        ),
        Column("trials", "bigint", "number of trials with a defined value"),
        Column("mean", "double", "mean over these trials; null without any"),
        Column("sd", "double", "standard deviation over these trials; null for a single trial"),
        Column("ci_low", "double", "lower end of the t interval of the mean"),
        Column("ci_high", "double", "upper end of the t interval of the mean"),
        Column("least", "double", "least value"),
        Column("greatest", "double", "greatest value"),
    ),
)

ENSEMBLE_DIVERSITY = Contract(
    "ensemble_diversity",
    1,
    "one row per ensemble: how much its members differ, and what learning them costs",
    (
        Column("learner", "string", "name of the ensemble"),
        Column("combine", "string", "bpm, bagging or voted"),
        Column("sampling", "string", "bernoulli or poisson"),
        Column("tau", "double", "probability that a member sees an example; null for poisson"),
        Column("n_members", "int", "number of members"),
        Column("samples", "bigint", "number of users, or trials, that were learned"),
        Column("angle", "double", "mean over samples of `angle` of ensemble_models"),
        Column("disagreement", "double", "mean over samples of `disagreement` of ensemble_models"),
        Column("presented", "double", "mean number of examples that a member was shown"),
        Column("correct", "double", "mean number of these that the member ranked correctly"),
        Column("updates", "double", "mean number of updates of a member's rule"),
        Column("prank_passes", "int", "cost, as passes of a single PRank over all examples"),
    ),
)

TUNING = Contract(
    "tuning",
    2,
    "one row per learner and point of its grid: its error on a sample of users",
    (
        Column("learner", "string", "name of the learner"),
        Column("candidate", "int", "number of the grid point, from 1"),
        Column("hyperparameters", "string", "JSON of the learner's hyper-parameters"),
        Column("measure", "string", "the metric of the error: msd, rank_loss or misranking"),
        Column("users", "bigint", "number of users in the sample"),
        Column(
            "error",
            "double",
            "mean over users, on training ratings that were held back from features and learner; "
            "msd over pairs of different items; null where learning failed",
        ),
        Column("standard_error", "double", "standard error of that mean"),
        Column(
            "chosen",
            "boolean",
            "whether train uses this point, or starts every user's own choice from it",
        ),
    ),
)
