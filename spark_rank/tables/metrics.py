"""Contracts of predictions, metrics and their summaries."""

from __future__ import annotations

from spark_rank.tables.contract import Column, Contract, measured

PREDICTIONS = Contract(
    "predictions",
    1,
    "one row per user, learner and held-out item, by the stage `predictions`",
    (
        Column("user_id", "string", "id as in the input"),
        Column("learner", "string", "name of the learner or baseline"),
        Column("item_id", "string", "id as in the input"),
        Column("rating", "float", "the rating that was held out"),
        Column("score", "double", "the model's score, in the precision that metrics use"),
        Column("predicted_rank", "int", "the rank predicted; null unless the learner has ranks"),
        Column(
            "predicted_rating",
            "double",
            "the score; for learners of ranks the level of the rank; null where scores only order "
            "items",
        ),
        Column("bucket", "int", "bucket of the user, as in `blocks`"),
    ),
)

# the metrics of `evaluate`, per user; a metric is null where it is undefined
METRIC_COLUMNS = (
    measured(
        "msd",
        "mean squared difference over all m² ordered pairs of the m held-out items, an item with "
        "itself included: (m − 1)/m of the mean over pairs of two; null when undefined",
    ),
    measured("m1d", "mean 1-norm difference over the same pairs"),
    measured(
        "rmse",
        "root of the mean squared error of the m predicted ratings, clipped to the rating scale",
    ),
    measured("mae", "mean absolute error of the same ratings"),
    Column("misranking", "double", "share of misranked pairs; null when all ratings tie"),
    measured("hr1", "hinge rank cost, power 1"),
    measured("hmp1", "hinge magnitude-preserving cost, power 1"),
    measured("hmp2", "hinge magnitude-preserving cost, power 2"),
    measured("svr1", "magnitude-preserving cost with `evaluate.epsilon` free, power 1"),
    measured("svr2", "magnitude-preserving cost with `evaluate.epsilon` free, power 2"),
    Column("rank_loss", "double", "mean distance of predicted and true rank"),
    Column("exact_rank", "double", "share of exactly predicted ranks"),
    measured("auc", "area under the ROC curve of relevant against other items"),
    measured("ndcg", "normalised discounted gain of the first `evaluate.top_n`"),
    Column("precision", "double", "share of relevant items among the first `evaluate.top_n`"),
    Column("recall", "double", "share of the relevant items among the first `evaluate.top_n`"),
    measured("average_precision", "average precision of the first `evaluate.top_n`"),
)

_TEST = Column(
    "test", "string", "`prepare.test`: the held-out items were chosen by the users, or are random"
)

METRICS = Contract(
    "metrics",
    3,
    "one row per user and learner: how well the held-out ratings were predicted",
    (
        Column("user_id", "string", "id as in the input"),
        Column("learner", "string", "name of the learner or baseline"),
        Column("status", "string", "learned, approximated, fallback or failed"),
        Column("reason", "string", "why not learned; null when learned"),
        Column("user_group", "string", "cold, or the user's number of training ratings as a range"),
        Column("n_train", "int", "number of training ratings"),
        Column("n_test", "int", "number of held-out ratings"),
        _TEST,
        *METRIC_COLUMNS,
        measured("train_msd", "msd on the training ratings"),
        measured("train_m1d", "m1d on the training ratings"),
        measured("train_misranking", "misranking on the training ratings"),
        measured("train_margin_loss", "margin loss at `train.margin` on the training ratings"),
        measured("stability_bound", "bound on the expected msd; null if there is none"),
        measured("margin_bound", "bound on the expected misranking; null if there is none"),
    ),
)

_GROUP = Column("user_group", "string", "all, or one of the groups of the table `metrics`")

SUMMARY = Contract(
    "summary",
    3,
    "one row per learner, metric and user group: the metric's distribution over users",
    (
        Column("learner", "string", "name of the learner or baseline"),
        Column("metric", "string", "a metric of the table `metrics`"),
        _GROUP,
        Column("users", "bigint", "users with a defined value, over whom the mean is taken"),
        Column("mean", "double", "mean over those users"),
        Column("sd", "double", "standard deviation over those users"),
        Column("ci_low", "double", "lower end of the t interval of the mean"),
        Column("ci_high", "double", "upper end of the t interval of the mean"),
        Column("bootstrap_low", "double", "lower end of the bootstrap interval of the mean"),
        Column("bootstrap_high", "double", "upper end of the bootstrap interval of the mean"),
        Column("p05", "double", "5 % quantile over users"),
        Column("p25", "double", "25 % quantile"),
        Column("p50", "double", "median"),
        Column("p75", "double", "75 % quantile"),
        Column("p95", "double", "95 % quantile"),
        Column(
            "pooled",
            "double",
            "rmse and mae: over all held-out ratings of these users, each counting the same",
        ),
        Column("ratings", "bigint", "number of these ratings; null for other metrics"),
        _TEST,
    ),
)

SHOWN_METRICS = Contract(
    "shown_metrics",
    1,
    "one row per learner with `evaluate.weights: propensity`: what the metrics would be if the "
    "held-out items had been shown at random",
    (
        Column(
            "learner", "string", "name of a learner or baseline with scores on the rating scale"
        ),
        Column("users", "bigint", "users with a model and held-out ratings"),
        Column("ratings", "bigint", "number of held-out ratings"),
        Column(
            "effective_ratings",
            "double",
            "how many ratings of equal weight they are worth: (Σ w)² / Σ w²",
        ),
        Column("msd", "double", "mean over users of msd, pairs weighted by one over propensities"),
        Column("misranking", "double", "mean over users of misranking, weighted likewise"),
        Column(
            "rmse",
            "double",
            "root of the weighted mean squared error over all ratings, predictions clipped to the "
            "range of the ratings",
        ),
        Column("mean_error", "double", "weighted mean of prediction minus rating"),
    ),
)

COMPARISON = Contract(
    "comparison",
    1,
    "one row per pair of learners, metric and user group: their difference over the same users",
    (
        Column("learner", "string", "first learner"),
        Column("rival", "string", "second learner"),
        Column("metric", "string", "a metric of the table `metrics`"),
        _GROUP,
        Column("users", "bigint", "users with a defined value for both"),
        Column("difference", "double", "mean of learner minus rival"),
        Column("sd", "double", "standard deviation of the difference"),
        Column("ci_low", "double", "lower end of the t interval of the difference"),
        Column("ci_high", "double", "upper end of the t interval of the difference"),
        Column("bootstrap_low", "double", "lower end of the bootstrap interval"),
        Column("bootstrap_high", "double", "upper end of the bootstrap interval"),
        Column("wins", "bigint", "users for whom the learner is better"),
        Column("ties", "bigint", "users for whom both are equal"),
        Column("losses", "bigint", "users for whom the rival is better"),
        Column("wilcoxon_p", "double", "two-sided Wilcoxon signed-rank test"),
        Column("sign_p", "double", "two-sided sign test"),
        Column(
            "wilcoxon_p_holm",
            "double",
            "wilcoxon_p with Holm's correction over the pairs of this metric and group",
        ),
        Column("sign_p_holm", "double", "sign_p with the same correction"),
    ),
)

ROC = Contract(
    "roc",
    1,
    "one row per learner, user group and point of the mean ROC curve",
    (
        Column("learner", "string", "name of the learner or baseline"),
        _GROUP,
        Column("users", "bigint", "users with relevant and other held-out items"),
        Column("false_positive_rate", "double", "share of the other items above the threshold"),
        Column(
            "true_positive_rate",
            "double",
            "share of the relevant items above the threshold, mean over users",
        ),
    ),
)

BOUNDS = Contract(
    "bounds",
    1,
    "one row per learner, bound and user group: the bound beside the measured test cost",
    (
        Column("learner", "string", "name of the learner"),
        Column("bound", "string", "stability (on the squared pair cost) or margin (misranking)"),
        _GROUP,
        Column("users", "bigint", "users with a bound and a measured cost"),
        Column("train_cost", "double", "mean cost on the training ratings that the bound adds to"),
        Column("bound_value", "double", "mean bound on the expected cost"),
        Column("test_cost", "double", "mean cost on the held-out ratings"),
        Column("holds", "double", "share of users whose test cost is below the bound"),
        Column("informative", "double", "share of users whose bound is below the trivial bound"),
    ),
)

LIST_METRICS = Contract(
    "list_metrics",
    1,
    "one row per learner, metric and user group: lists made from the training part, measured "
    "against the held-out ratings among all items; only with `evaluate.candidates` all or sampled",
    (
        Column(
            "learner",
            "string",
            "whose lists: a learner's, or the same for everybody: most_popular (by the number of "
            "training ratings) and item_offset (by the item offset)",
        ),
        Column("metric", "string", "a metric of docs/guide/evaluate.md, Lists over all items"),
        _GROUP,
        Column("users", "bigint", "users with a defined value; for coverage and gini, with a list"),
        Column("mean", "double", "mean over those users; coverage and gini: of all their lists"),
        Column("sd", "double", "standard deviation over those users"),
        Column("ci_low", "double", "lower end of the t interval of the mean"),
        Column("ci_high", "double", "upper end of the t interval of the mean"),
    ),
)
