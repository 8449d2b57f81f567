"""The contracts of this version, table by table."""

from __future__ import annotations

from dataclasses import replace

from spark_rank.tables.contract import Column, Contract


def _measured(name: str, doc: str) -> Column:
    return Column(name, "double", doc, varied=True)


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
    2,
    "input rows that could not be used",
    (
        Column("source", "string", "file the row came from; null for very many duplicates"),
        Column("line", "bigint", "number of the line (Parquet: row) in it, from 1; else null"),
        Column("raw", "string", "the row as it was; of very many duplicates the values as JSON"),
        Column("reason", "string", "why it was set aside"),
    ),
)

RATING_SCALE = Contract(
    "rating_scale",
    1,
    "one row per level of the ratings; none for a continuous scale that is not cut",
    (
        Column("rank", "int", "rank of the level, from 1"),
        Column("rating", "double", "the level's rating; of a cut scale the middle of its interval"),
        Column("lower", "double", "the cut that the level begins at; null: the lowest, or no cuts"),
        Column("ratings", "bigint", "number of ratings; 0 for a known level that nobody gave"),
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

GIVEN_FEATURES = Contract(
    "given_features",
    1,
    "feature vectors that came with the ratings (format letor)",
    (
        Column("user_id", "string", "query id as in the input"),
        Column("item_id", "string", "query id, a slash and the document's number"),
        Column("features", "array<float>", "the features 1, 2, …; as many for every row"),
    ),
)

BLOCKS = Contract(
    "blocks",
    2,
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
        Column("n_train", "int", "how many of them are for training"),
        Column(
            "bucket",
            "int",
            "CRC-32 of user_id modulo `prepare.buckets` (partition)",
        ),
    ),
)

ITEM_COUNTS = Contract(
    "item_counts",
    1,
    "one row per item that a block has a rating of",
    (
        Column("item_id", "string", "id as in the input"),
        Column("item", "int", "dense item number"),
        Column("n_train", "bigint", "number of its training ratings"),
        Column("n", "bigint", "number of all its ratings"),
    ),
)

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

MODELS = Contract(
    "models",
    5,
    "one row per user and learner: score(i) = intercept + offset_weight·offset(i) + weights·x(i) + "
    "Σ dual_j K(x(support_j), x(i)) + Σ base rankers + the best prototype's rank, each where it "
    "is there; README has the lines that compute it",
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
        _measured("intercept", "constant of the score"),
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
        _measured("norm", "norm of the learned function in its kernel's space"),
        Column("expected_norm", "double", "norm of the expected weights; null without"),
        _measured(
            "train_msd",
            "mean squared difference on the training ratings, over all ordered pairs, an item with "
            "itself included",
        ),
        _measured("train_m1d", "mean 1-norm difference on them, over the same pairs"),
        _measured("train_misranking", "pairwise misranking on the training ratings"),
        _measured(
            "train_margin_loss",
            "ranking margin loss at `train.margin` on them; null without a norm",
        ),
        Column("bucket", "int", "bucket of the user, as in `blocks`; null of a sequence"),
    ),
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

PREDICTIONS = Contract(
    "predictions",
    1,
    "of the stage `predictions`: one row per user, learner and held-out item",
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
            "the score, of learners of ranks the level of the rank; null where scores are an order",
        ),
        Column("bucket", "int", "bucket of the user, as in `blocks`"),
    ),
)

# what `evaluate` measures per user; each is null where it is undefined
METRIC_COLUMNS = (
    _measured(
        "msd",
        "mean squared difference over all m² ordered pairs of the m held-out items, an item with "
        "itself included: (m − 1)/m of the mean over pairs of two; null when undefined",
    ),
    _measured("m1d", "mean 1-norm difference over the same pairs"),
    Column("misranking", "double", "share of misranked pairs; null when all ratings tie"),
    _measured("hr1", "hinge rank cost, power 1"),
    _measured("hmp1", "hinge magnitude-preserving cost, power 1"),
    _measured("hmp2", "the same, power 2"),
    _measured("svr1", "magnitude-preserving cost with `evaluate.epsilon` free, power 1"),
    _measured("svr2", "the same, power 2"),
    Column("rank_loss", "double", "mean distance of predicted and true rank"),
    Column("exact_rank", "double", "share of exactly predicted ranks"),
    _measured("auc", "area under the ROC curve of relevant against other items"),
    _measured("ndcg", "normalised discounted gain of the first `evaluate.top_n`"),
    Column("precision", "double", "share of relevant items among the first `evaluate.top_n`"),
    Column("recall", "double", "share of the relevant items among the first `evaluate.top_n`"),
    _measured("average_precision", "average precision of the first `evaluate.top_n`"),
)

METRICS = Contract(
    "metrics",
    2,
    "one row per user and learner: how well the held-out ratings were predicted",
    (
        Column("user_id", "string", "id as in the input"),
        Column("learner", "string", "name of the learner or baseline"),
        Column("status", "string", "learned, approximated, fallback or failed"),
        Column("reason", "string", "why not learned; null when learned"),
        Column("user_group", "string", "cold, or the user's number of training ratings as a range"),
        Column("n_train", "int", "number of training ratings"),
        Column("n_test", "int", "number of held-out ratings"),
        *METRIC_COLUMNS,
        _measured("train_msd", "msd on the training ratings"),
        _measured("train_m1d", "m1d on the training ratings"),
        _measured("train_misranking", "misranking on the training ratings"),
        _measured("train_margin_loss", "margin loss at `train.margin` on them"),
        _measured("stability_bound", "bound on the expected msd; null without one"),
        _measured("margin_bound", "bound on the expected misranking; null without one"),
    ),
)

_GROUP = Column("user_group", "string", "all, or one of the groups of the table `metrics`")

SUMMARY = Contract(
    "summary",
    2,
    "one row per learner, metric and user group: the metric's distribution over users",
    (
        Column("learner", "string", "name of the learner or baseline"),
        Column("metric", "string", "a metric of the table `metrics`"),
        _GROUP,
        Column("users", "bigint", "users with a defined value: as many as the mean is over"),
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
            "wilcoxon_p by Holm's correction over the pairs of this metric and group",
        ),
        Column("sign_p_holm", "double", "sign_p corrected likewise"),
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
        Column("true_positive_rate", "double", "share of the relevant ones, mean over users"),
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
        Column("informative", "double", "share of users whose bound is below the trivial one"),
    ),
)

RANKINGS = Contract(
    "rankings",
    1,
    "one row per user: the held-out items in the order of the chosen preference",
    (
        Column("user_id", "string", "id as in the input"),
        Column("items", "array<string>", "item ids, most preferred first"),
        Column("n_items", "int", "number of candidate items"),
        Column("calls", "bigint", "questions put to the preference function"),
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
    "one row per item: its place in the order that all users agree on best",
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
    1,
    "one row per user, list and place: unseen items, the best and the worst of a learner's scores; "
    "equal scores in the order of the item ids",
    (
        Column("user_id", "string", "id as in the input"),
        Column("learner", "string", "name of the learner"),
        Column("list", "string", "top: best first; bottom: worst first, without those of the top"),
        Column("position", "int", "place in the list, from 1"),
        Column("item_id", "string", "id as in the input"),
        Column("title", "string", "title; null where unknown"),
        Column("score", "double", "the model's score, as README computes it from `models`"),
        Column("predicted_rank", "int", "level of the rating scale; null where there is none"),
        Column(
            "predicted_rating",
            "double",
            "the score within the limits of the ratings, of learners of ranks the level's rating; "
            "null for learners of an order",
        ),
        Column(
            "item_ratings", "int", "number of the item's ratings that the models were learned from"
        ),
        Column(
            "source",
            "string",
            "learned; new_item: learned, but of the item nothing is known; fallback: what is "
            "expected of a user who was not learned; item_offset: the model failed",
        ),
        Column("reason", "string", "why so; null when learned exactly"),
        Column(
            "bucket",
            "int",
            "CRC-32 of user_id modulo `prepare.buckets` (partition)",
        ),
    ),
)

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

TABLES = {
    contract.table: contract
    for contract in (
        SYNTHETIC, RATINGS, USERS, ITEMS, QUARANTINE, RATING_SCALE, TITLES, GIVEN_FEATURES,
        BLOCKS, ITEM_COUNTS, PANEL, REVIEWER_RATINGS, ITEM_FEATURES, TUNING, CHANGES, MODELS,
        ENSEMBLE_MODELS, ENSEMBLE_CURVE, ENSEMBLE_METRICS, ENSEMBLE_DIVERSITY,
        METRICS, SUMMARY, COMPARISON, ROC, BOUNDS, RANKINGS, MAJORITIES, AGGREGATE,
        *FINAL_TABLES.values(), PREDICTIONS, RECOMMENDATIONS, THEOREMS, EXPERIMENT_RESULTS,
        EXPERIMENT_SUMMARY, EXPERIMENT_CLAIMS,
    )
}  # fmt: skip
