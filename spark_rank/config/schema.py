"""Every configuration key: its type, default, range and meaning, in one place."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

FormatName = Literal[
    "movielens-100k", "movielens-dat", "movielens-csv", "netflix", "jester", "book-crossing",
    "eachmovie", "judgments", "letor", "csv", "parquet",
]  # fmt: skip
# without a format, or with this word, the format is recognised from the files
RECOGNISED = "auto"
InputFormat = Literal["auto", FormatName]
WrittenFormat = Literal[
    "movielens-100k", "movielens-dat", "movielens-csv", "netflix", "csv", "parquet"
]
TitleFormatName = Literal["movielens-100k", "movielens-dat", "movielens-csv", "netflix"]
FeatureKind = Literal["factors", "als", "panel", "reference", "given", "offset"]
# kinds that learn factors of the items and a prior of every user
FACTOR_KINDS: tuple[FeatureKind, ...] = ("factors", "als")
# the baseline that can make lists, beside train.learners
ITEM_OFFSET = "item_offset"


def setting(default: Any, doc: str, example: str | None = None, **limits: Any) -> Any:
    """Declare a key: its default, its meaning, limits (`above`, `at_least`, `at_most`).

    `example` is a value for help to show, where none follows from the default.
    """
    metadata = {"doc": doc, "example": example, **limits}
    if isinstance(default, (dict, list)):
        return field(default_factory=lambda: copy.deepcopy(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class InputConfig:
    """Where the ratings come from."""

    path: str | None = setting(
        None, "file, directory or glob; null: the generated data set", example="ratings.csv"
    )
    format: InputFormat | None = setting(
        None,
        "how the ratings are written; null or auto: recognised from the first lines",
        example="csv",
    )
    delimiter: str | None = setting(
        None,
        "csv: the field separator, a character (a blank stands for any run of blanks and tabs) or "
        "::; null: recognised from the first lines",
        example=";",
    )
    header: bool | None = setting(
        None,
        "csv: whether the first line of every file names the columns; null: recognised from the "
        "first lines",
        example="true",
    )
    columns: dict[str, str | None] = setting(
        {},
        "csv and parquet: the columns that hold user, item, rating and timestamp (names, or "
        "positions from 0 in csv; a null timestamp is left out)",
        example="{user: who, item: film, rating: stars}",
    )
    decimal: Literal[".", ","] | None = setting(
        None,
        "csv: the sign before the decimals of a rating; null: recognised from the first lines",
    )
    time_unit: Literal["s", "ms", "us", "ns"] | None = setting(
        None,
        "csv and parquet: the unit of times that are numbers since 1970; null: recognised by "
        "their size",
    )
    day_first: bool | None = setting(
        None,
        "csv and parquet: whether 03/04/2020 is 3 April (true) or March 4 (false); null: dates "
        "like 13/04/2020 decide, and without any the input is refused",
        example="true",
    )
    encoding: Literal["utf-8", "latin-1"] | None = setting(
        None, "how text is encoded; null: as is usual for the format"
    )
    levels: list[float] = setting(
        [],
        "the ratings that there are, all others are quarantined; empty: the format's own, or any",
        example="[1, 2, 3, 4, 5]",
    )
    rating_min: float | None = setting(
        None, "a rating below this is quarantined; replaces the format's own levels", example="1"
    )
    rating_max: float | None = setting(
        None, "a rating above this is quarantined; replaces the format's own levels", example="5"
    )
    cuts: list[float] = setting(
        [],
        "where a continuous scale is cut into levels for learners of ranks, in rising order; a "
        "rating that equals a cut belongs to the level above it",
        example="[2, 4, 6, 8]",
    )
    keep_implicit: bool = setting(
        False, "book-crossing: keep the rating 0, which says that a book was read, not how good"
    )
    duplicates: Literal["latest", "first", "mean", "reject"] = setting(
        "latest",
        "which of several ratings of one user and item counts: by time the latest or the first, "
        "their mean, or none; the others are quarantined",
    )
    dictionaries_from: str | None = setting(
        None,
        "run id, or directory of a run, whose numbers of users and items are kept; latest: the "
        "promoted run",
        example="latest",
    )
    titles: str | None = setting(
        None, "file with the items' names; null: none", example="movies.csv"
    )
    titles_format: TitleFormatName | None = setting(
        None, "how they are written; null: told by the first line"
    )
    max_bad_share: float = setting(
        0.05,
        "ingest fails above this share of unusable rows (duplicates do not count)",
        at_least=0.0,
        at_most=1.0,
    )

    @property
    def separator(self) -> str | None:
        """Return the field separator; a tab may be written as backslash and t."""
        return "\t" if self.delimiter == "\\t" else self.delimiter

    @property
    def is_recognised(self) -> bool:
        """Tell whether the format follows from the files, and not from the configuration."""
        return self.format in (None, RECOGNISED)

    @property
    def known_format(self) -> str:
        """Return the format, once it is known."""
        if self.format is None or self.format == RECOGNISED:
            raise ValueError("the format has not been recognised yet")
        return self.format


@dataclass(frozen=True)
class SynthesizeConfig:
    """The generated, Netflix-shaped data set."""

    users: int = setting(3000, "number of users", at_least=2, at_most=2_000_000_000)
    items: int = setting(2500, "number of items", at_least=2, at_most=10_000_000)
    median_ratings: float = setting(
        60.0, "median number of ratings of a user", above=0.0, at_most=1e6
    )
    activity_spread: float = setting(
        1.2,
        "standard deviation of the logarithm of a user's number of ratings",
        at_least=0.0,
        at_most=10.0,
    )
    levels: int = setting(5, "rating levels 1..levels", at_least=2, at_most=100)
    format: WrittenFormat = setting("parquet", "format to write (netflix keeps the day only)")
    path: str | None = setting(
        None, "directory to write; null: inside the run", example="/data/generated"
    )


@dataclass(frozen=True)
class FilterConfig:
    """Which users and items to keep, by numbers of ratings that are counted on the same ratings."""

    user_min: int | None = setting(
        None, "least number of ratings of a user", at_least=1, example="20"
    )
    user_max: int | None = setting(
        None, "greatest number of ratings of a user", at_least=1, example="5000"
    )
    item_min: int | None = setting(
        None, "least number of ratings of an item", at_least=1, example="10"
    )
    item_max: int | None = setting(
        None, "greatest number of ratings of an item", at_least=1, example="100000"
    )

    @property
    def label(self) -> str:
        """Return the bounds in words, as they are written in the configuration."""
        bounds = dataclasses.asdict(self).items()
        return ", ".join(f"{name}: {bound}" for name, bound in bounds if bound is not None)


@dataclass(frozen=True)
class PrepareConfig:
    """User blocks and the split inside them."""

    split: Literal["random", "temporal", "leave_last", "k_fold"] = setting(
        "random",
        "which ratings of a user are held out: random ones, the latest share, the latest "
        "`leave_last`, or fold `fold` of `folds`",
    )
    train_share: float = setting(
        0.5,
        "random and temporal: share of every user's ratings to learn from",
        above=0.0,
        at_most=1.0,
    )
    leave_last: int = setting(1, "leave_last: how many of a user's ratings", at_least=1)
    folds: int = setting(5, "k_fold: number of folds", at_least=2, at_most=1000)
    fold: int = setting(1, "k_fold: the fold that is held out, from 1", at_least=1)
    filters: list[FilterConfig] = setting(
        [],
        "users and items to keep, filter by filter, before the split: user_min, user_max, "
        "item_min, item_max are numbers of ratings",
        example="[{user_min: 20, item_min: 10}]",
    )
    filter_rounds: int = setting(
        1,
        "how often the filters are gone through at most; it ends when a round drops nothing",
        at_least=1,
        at_most=1000,
    )
    user_share: float = setting(
        1.0,
        "share of the users that are left to keep, by hash",
        above=0.0,
        at_most=1.0,
        example="0.1",
    )
    timestamps: bool = setting(False, "keep the time of every rating in the blocks")
    buckets: int = setting(
        8, "number of buckets of users, from ingest to recommend", at_least=1, at_most=100_000
    )


@dataclass(frozen=True)
class FeaturesConfig:
    """What an item looks like to a learner."""

    kind: FeatureKind = setting(
        "factors",
        "factors: of a factor model, with a prior of every user; als: the same from MLlib's ALS, "
        "for more items than the driver has memory for; panel: ratings of reviewers, the same for "
        "all; reference: of reviewers drawn for every user; given: vectors that came with the "
        "data; offset: none but the item offset. Not named: given where vectors come with the data "
        "(features.given, input.format letor), else factors",
    )
    kept_from: str | None = setting(
        None,
        "factors and als: run id whose factors are kept; an item it does not know gets zeros; "
        "latest: the promoted run; null: they are learned",
        example="latest",
    )
    rank: int = setting(32, "factors and als: number of factors", at_least=1, at_most=500)
    rounds: int = setting(15, "factors: rounds of estimation", at_least=1, at_most=10_000)
    user_share: float = setting(
        1.0,
        "factors and als: share of the users they are learned from",
        above=0.0,
        at_most=1.0,
        example="0.5",
    )
    max_ratings: int = setting(
        10_000_000,
        "factors: about as many ratings at most; fewer users where there are more",
        at_least=1,
    )
    als_rounds: int = setting(10, "als: rounds of ALS", at_least=1, at_most=1000)
    als_regularization: float = setting(
        0.15,
        "als: strength of ALS's own regularization, for ratings in units of their deviation",
        at_least=0.0,
    )
    panel_size: int = setting(
        100, "panel: number of reference reviewers", at_least=1, at_most=10_000
    )
    panel_choice: Literal["most_active", "coverage"] = setting(
        "most_active",
        "panel: the users with the most training ratings; or, among 20,000 of them, greedily those "
        "who add most to what the panel has rated",
    )
    reference_size: int = setting(
        300, "reference: number of reviewers drawn for every user", at_least=1, at_most=10_000
    )
    reference_min: int | None = setting(
        None,
        "reference: least number of ratings of a reviewer, held-out ones counted too",
        at_least=1,
        example="100",
    )
    reference_max: int | None = setting(
        None, "reference: greatest number of ratings of a reviewer", at_least=1, example="1000"
    )
    reference_pool: int = setting(
        20_000,
        "reference: how many such reviewers to draw from at most, a sample by hash",
        at_least=2,
        at_most=200_000,
    )
    reference_ratings: Literal["training", "all"] = setting(
        "training",
        "reference: the reviewers' ratings to show; all is the papers' way: held-out ones too, "
        "though never the user's own",
    )
    given: str | None = setting(
        None,
        "given: Parquet file, directory or glob with columns item_id and features (numbers, as "
        "many for every item); null: those of the format letor",
        example="vectors.parquet",
    )
    given_scale: Literal["standard", "none"] = setting(
        "standard", "given: bring every feature to mean 0 and standard deviation 1, or leave it"
    )
    offset_shrinkage: float = setting(
        10.0,
        "all but factors: ratings' worth of evidence that pulls an item's offset to 0",
        at_least=0.0,
    )

    @property
    def width(self) -> int:
        """Return how many features learners see; 100 for given ones: only the data tells."""
        widths = {"factors": self.rank, "als": self.rank, "panel": self.panel_size,
                  "reference": self.reference_size, "given": 100, "offset": 0}  # fmt: skip
        return widths[self.kind]


@dataclass(frozen=True)
class LearnerConfig:
    """One learner to train: which, under what name, with which hyper-parameters."""

    learner: str = setting("mprank", "name in the registry of learners", example="svrank")
    name: str | None = setting(
        None, "value of the `learner` column; null: the learner's name", example="mine"
    )
    item_offset: bool = setting(
        True, "learn what the item offset leaves over; learners of ranks get it as a feature"
    )
    params: dict[str, Any] = setting(
        {},
        "hyper-parameters; of mprank without any, nor a grid: those that fit features.kind",
        example="{C: 10}",
    )
    grid: dict[str, list[Any]] = setting(
        {},
        "values to choose from, by hyper-parameter; the first of each where none can be told",
        example="{C: [0.1, 1, 10]}",
    )
    selection: Literal["sample", "leave_pair_out", "k_fold"] = setting(
        "sample",
        "how to choose from the grid: once for all on a sample of users (stage tune), or for every "
        "user by exact leave-pair-out (mprank) or folds of the training part, starting from what "
        "is best for the sample and moving away from it only where that has chosen better there",
    )

    @property
    def label(self) -> str:
        """Return the value of the `learner` column."""
        return self.name or self.learner


# Factors are in units of the noise, so a ridge of 1/C = 1 is the factor model's own. It grows with
# a user's ratings, because the factors were learned from them too.
FACTOR_PARAMS = {"C": 1.0, "ridge": "fixed", "growth": 0.0067, "kernel": "linear"}
DEFAULT_LABEL = "mprank_linear"


@dataclass(frozen=True)
class TrainConfig:
    """What is learned for every user."""

    learners: list[LearnerConfig] = setting(
        [LearnerConfig("mprank", DEFAULT_LABEL, params=FACTOR_PARAMS)],
        "the learners, trained in one pass beside the two baselines. Not named: mprank with params "
        "that fit features.kind (`spark-rank config` shows them); these fit factors",
        example="[{learner: svrank, params: {C: 10}}]",
    )
    baselines: bool = setting(
        True,
        "also learn a constant and the item offset for every user, to hold the learners against: "
        "two more rows per user in models and metrics",
    )
    min_ratings: int = setting(
        3, "users with fewer training ratings fall back to what is expected of them", at_least=2
    )
    margin: float = setting(
        1.0, "difference of scores below which the margin loss counts a pair in part", above=0.0
    )
    max_failed_share: float = setting(
        0.01, "training fails above this share of failed users", at_least=0.0, at_most=1.0
    )
    max_kernel_ratings: int = setting(
        4000,
        "users with more training ratings: kernel learners use landmarks among them, kernel "
        "perceptrons the first so many",
        at_least=10,
        at_most=20_000,
    )
    landmarks: int = setting(
        500, "number of landmarks of kernel learners for such users", at_least=2, at_most=5000
    )
    folds: int = setting(
        5,
        "folds of the training part to choose hyper-parameters by; tune holds back the last one",
        at_least=2,
        at_most=100,
    )
    targets_min: int | None = setting(
        None,
        "learn only users with so many ratings at least, held out ones too",
        at_least=1,
        example="20",
    )
    targets_max: int | None = setting(
        None, "learn only users with so many ratings at most", at_least=1, example="1000"
    )


@dataclass(frozen=True)
class TuneConfig:
    """Hyper-parameters chosen on a sample of users, on ratings that no feature has seen."""

    users: int = setting(1000, "number of users to choose on, by hash", at_least=1, at_most=100_000)


@dataclass(frozen=True)
class EnsembleLearnerConfig:
    """One ensemble of PRanks that each see a random part of the examples."""

    name: str | None = setting(
        None, "value of the `learner` column; null: oap_ and combine", example="mine"
    )
    combine: Literal["bpm", "bagging", "voted"] = setting(
        "bpm",
        "bpm: the mean of the members' rules; bagging: the mean of their ranks; voted: that mean "
        "weighted by how often a member was right",
    )
    sampling: Literal["bernoulli", "poisson"] = setting(
        "bernoulli",
        "bernoulli: a member sees an example with probability tau; poisson: a Poisson(1) number "
        "of times, Oza's online bagging",
    )
    tau: float = setting(0.3, "bernoulli: that probability", above=0.0, at_most=1.0)
    n_members: int = setting(20, "number of members", at_least=1, at_most=100_000)
    item_offset: bool = setting(
        True, "every user, or one: the item offset is a feature more; of a linear kernel only"
    )
    keep_members: bool = setting(
        False,
        "bpm: store every member's rule too, as bagging and voted always do; rank.preference "
        "members asks them",
    )
    kernel: Literal["linear", "poly", "rbf"] = setting(
        "linear",
        "of a sequence: linear; poly, (gamma x·x' + 1)^degree, of degree 2 as an explicit map; "
        " rbf, exp(-gamma ‖x - x'‖²)",
    )
    degree: int = setting(2, "poly: its degree", at_least=1, at_most=10)
    gamma: float = setting(1.0, "poly and rbf: its width", above=0.0)
    budget: int = setting(
        100,
        "poly and rbf, where there is no explicit map: how many examples the expansions may use, "
        "drawn by hash and the same for all members; every other example is projected onto them",
        at_least=1,
        at_most=2000,
    )

    @property
    def label(self) -> str:
        """Return the value of the `learner` column."""
        return self.name or f"oap_{self.combine}"

    @property
    def stores_members(self) -> bool:
        """Tell whether every member's rule is stored, and not the mean rule alone."""
        return self.keep_members or self.combine != "bpm"


@dataclass(frozen=True)
class EnsembleConfig:
    """Ensembles of PRanks, for every user or on one sequence."""

    in_pipeline: bool = setting(
        False, "learn ensembles in the pipeline: N members cost N times as much as one PRank"
    )
    learners: list[EnsembleLearnerConfig] = setting(
        [EnsembleLearnerConfig()], "the ensembles", example="[{combine: voted, n_members: 50}]"
    )
    sequence: str | None = setting(
        None,
        "one sequence instead of every user: Parquet file, directory or glob with columns features "
        "(numbers, as many in every row) and rank (from 1), learned in the order of file names "
        "and rows; optional: test (boolean: measured, not learned) and trial (whole number: a "
        "sequence of its own)",
        example="examples.parquet",
    )
    user: str | None = setting(
        None,
        "one user's ratings as the sequence, by id, with the features of this run",
        example="7",
    )
    trials: int = setting(
        1,
        "of a sequence: how often to learn it, each time with other draws and, from the second "
        "time on, in another order",
        at_least=1,
        at_most=1000,
    )
    groups: int | None = setting(
        None,
        "how many groups the members are split into, each a task; decides no result; null: one "
        "for every user, of a sequence as many as there are cores",
        at_least=1,
        at_most=100_000,
        example="4",
    )
    chunk: int = setting(
        65_536,
        "of a sequence: examples that a task holds at once; decides no result",
        at_least=1,
        at_most=10_000_000,
    )
    confidence: float = setting(
        0.95,
        "level of the intervals over trials or users",
        above=0.0,
        at_most=0.9999,
        example="0.9",
    )


@dataclass(frozen=True)
class EvaluateConfig:
    """How the held-out ratings are compared with the scores."""

    relevant_from: float | None = setting(
        None,
        "a rating from here on counts as relevant; null: the lowest level above the middle of the "
        "rating scale",
        example="4",
    )
    top_n: int = setting(
        10, "depth of ndcg, precision, recall and average precision", at_least=1, at_most=100_000
    )
    epsilon: float = setting(
        0.25, "what the svr costs leave free of a difference of ratings", at_least=0.0
    )
    activity: list[int] = setting(
        [20, 50, 100, 300],
        "numbers of training ratings at which a new user group begins",
        example="[10, 100]",
    )
    confidence: float = setting(
        0.95, "level of the intervals and of the bounds", above=0.0, at_most=0.9999, example="0.9"
    )


@dataclass(frozen=True)
class PredictionsConfig:
    """Every held-out rating beside the models' scores."""

    in_pipeline: bool = setting(
        False, "write the table in the pipeline: a row per user, learner and held-out item"
    )


@dataclass(frozen=True)
class RankConfig:
    """Each user's candidate items, put in order by a preference function."""

    preference: Literal["scores", "votes", "members"] = setting(
        "scores",
        "scores: of two items the one that the learner scores higher; votes: share of the learners "
        "that score it higher; members: share of the members of an ensemble that do",
    )
    learners: list[str] = setting(
        [],
        "learners asked, by their labels; empty: for scores the first, for votes all of "
        "train.learners, for members the first of ensemble.learners",
        example="[mprank_linear]",
    )
    method: Literal["quicksort", "degree"] = setting(
        "quicksort", "quicksort: O(n log n) questions, random pivots; degree: all O(n²) questions"
    )
    top: int | None = setting(
        None,
        "quicksort: how many items to put in order; null: all",
        at_least=1,
        at_most=100_000,
        example="20",
    )


@dataclass(frozen=True)
class AggregateConfig:
    """One order of the most rated items from all users' ratings."""

    items: int = setting(100, "how many of the most rated items to order", at_least=2, at_most=1000)
    method: Literal["borda", "copeland", "quicksort", "local_search", "exact"] = setting(
        "local_search", "how; exact is an integer programme for some 30 items"
    )
    time_limit: float = setting(60.0, "seconds for the exact method", above=0.0, at_most=1e6)


@dataclass(frozen=True)
class RefitConfig:
    """Features and models from all ratings, which make the lists."""

    in_pipeline: bool = setting(
        True,
        "learn features and the models of recommend.learner again from all ratings, before lists "
        "are made; false: lists come from the training part",
    )


@dataclass(frozen=True)
class RecommendConfig:
    """Every user's list of unseen items."""

    in_pipeline: bool = setting(
        True,
        "make lists in the pipeline; kernel models take long: they score user by user, and queries "
        "(format letor) have no unseen items",
    )
    learner: str | None = setting(
        None,
        "whose models score the items, by label, an ensemble's too, or item_offset; null: the "
        "first of train.learners",
        example="item_offset",
    )
    top: int = setting(
        10, "how many of the best unseen items a user gets", at_least=1, at_most=1000
    )
    bottom: int = setting(
        3, "how many of the worst, which not to watch; 0: none", at_least=0, at_most=1000
    )
    min_ratings: int = setting(
        0, "least number of ratings that the models know of an item in a list", at_least=0
    )
    include: list[str] = setting(
        [],
        "ids of the only items there may be in a list; empty: all",
        example="[tt0111161, tt0068646]",
    )
    include_from: str | None = setting(
        None, "file with more of them, an id a line", example="in_stock.txt"
    )
    exclude: list[str] = setting(
        [], "ids of items that are in no list", example="[tt0111161, tt0068646]"
    )
    exclude_from: str | None = setting(
        None, "file with more of them, an id a line", example="gone.txt"
    )


@dataclass(frozen=True)
class TheoremsConfig:
    """The theorems of preference-based ranking as an experiment."""

    trials: int = setting(
        200, "random tournaments per size and theorem", at_least=10, at_most=1_000_000
    )


@dataclass(frozen=True)
class ExperimentConfig:
    """One of the papers' experiments."""

    name: str | None = setting(
        None, "which one; without settings it is as published", example="prank_synthetic"
    )
    data: str = setting(
        "data",
        "folder of the data sets; an experiment without its data set is skipped, and says so",
        example="/data/papers",
    )
    settings: dict[str, Any] = setting({}, "the experiment's own settings", example="{seed: 1}")


@dataclass(frozen=True)
class TrackingConfig:
    """Where pipelines are tracked, beside the store."""

    mlflow: str | None = setting(
        None,
        "MLflow's tracking URI, such as http://host:5000 or sqlite:///mlflow.db: `pipeline` leaves "
        "one MLflow run there; null: none",
        example="sqlite:///mlflow.db",
    )
    experiment: str = setting(
        "spark_rank", "MLflow's experiment, made if it is not there", example="films"
    )


@dataclass(frozen=True)
class DemoConfig:
    """The page that learns in a browser."""

    items: int = setting(
        5000,
        "how many of the most rated items the page has; fewer make it smaller",
        at_least=2,
        at_most=100_000,
    )
    learner: str | None = setting(
        None,
        "which linear mprank of train.learners the page learns, by label; null: that of the lists, "
        "or else the first",
        example="mprank_linear",
    )
    noun: str = setting("films", "what the page calls the items, in the plural", example="jokes")


@dataclass(frozen=True)
class Config:
    """The whole configuration."""

    store: str = setting(
        "store", "directory of all runs, on any Hadoop file system", example="/data/store"
    )
    run_id: str = setting(
        "default", "name of the run: letters, digits, '.', '_', '-'", example="monday"
    )
    previous: str | None = setting(
        None,
        "run id whose numbers of users and items are kept, and the models of users whose ratings "
        "and features are still the same; latest: the promoted run; null: everybody is learned",
        example="latest",
    )
    seed: int = setting(0, "seed of every split and draw", at_least=0, at_most=2**62)
    users_per_wave: int = setting(
        60_000,
        "train, refit and recommend save their work after about so many users (recommend of linear "
        "models after four times as many), and later go on from there; a wave has a bucket for "
        "every core at least",
        at_least=1,
    )
    input: InputConfig = setting(InputConfig(), "where the ratings come from")
    synthesize: SynthesizeConfig = setting(SynthesizeConfig(), "the generated data set")
    prepare: PrepareConfig = setting(PrepareConfig(), "user blocks and split")
    features: FeaturesConfig = setting(FeaturesConfig(), "item features")
    tune: TuneConfig = setting(TuneConfig(), "choice of hyper-parameters for all users")
    train: TrainConfig = setting(TrainConfig(), "learners")
    ensemble: EnsembleConfig = setting(EnsembleConfig(), "ensembles of PRanks")
    evaluate: EvaluateConfig = setting(EvaluateConfig(), "metrics, intervals, bounds")
    predictions: PredictionsConfig = setting(PredictionsConfig(), "held-out ratings and scores")
    rank: RankConfig = setting(RankConfig(), "rankings by preference")
    aggregate: AggregateConfig = setting(AggregateConfig(), "one order from all users")
    refit: RefitConfig = setting(RefitConfig(), "models from all ratings")
    recommend: RecommendConfig = setting(RecommendConfig(), "lists of unseen items")
    theorems: TheoremsConfig = setting(TheoremsConfig(), "experiment on preference-based ranking")
    experiment: ExperimentConfig = setting(ExperimentConfig(), "one of the papers' experiments")
    tracking: TrackingConfig = setting(TrackingConfig(), "MLflow")
    demo: DemoConfig = setting(DemoConfig(), "the page of the command demo")
    spark: dict[str, str] = setting(
        {}, "Spark settings by their full names", example="{spark.driver.memory: 4g}"
    )
