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
# the parts of a given split, in the order of their numbers in the table `ratings`
PartName = Literal["train", "validation", "test"]
PARTS: tuple[PartName, ...] = ("train", "validation", "test")
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
    test_path: str | None = setting(
        None,
        "a given split: file, directory or glob of the part test; input.path is the part train",
        example="test.csv",
    )
    validation_path: str | None = setting(
        None, "a given split: the same of the part validation", example="validation.csv"
    )
    format: InputFormat | None = setting(
        None,
        "format of the ratings; null or auto: recognised from the first lines",
        example="csv",
    )
    delimiter: str | None = setting(
        None,
        "csv: the field separator, one character or :: (a blank matches any run of blanks and "
        "tabs); null: recognised from the first lines",
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
        "positions from 0 in csv; a null timestamp is left out), and part: that which says train, "
        "validation or test",
        example="{user: who, item: film, rating: stars}",
    )
    decimal: Literal[".", ","] | None = setting(
        None,
        "csv: the decimal sign of ratings; null: recognised from the first lines",
    )
    time_unit: Literal["s", "ms", "us", "ns"] | None = setting(
        None,
        "csv and parquet: the unit of times given as numbers since 1970; null: guessed from "
        "their size",
    )
    day_first: bool | None = setting(
        None,
        "csv and parquet: whether 03/04/2020 is 3 April (true) or March 4 (false); null: a date "
        "like 13/04/2020 decides; if there is none, ingest stops and asks",
        example="true",
    )
    encoding: Literal["utf-8", "latin-1"] | None = setting(
        None, "text encoding; null: the usual one of the format"
    )
    levels: list[float] = setting(
        [],
        "the valid levels; other ratings are quarantined; empty: those of the format, or any",
        example="[1, 2, 3, 4, 5]",
    )
    rating_min: float | None = setting(
        None, "ratings below this are quarantined; replaces the levels of the format", example="1"
    )
    rating_max: float | None = setting(
        None, "ratings above this are quarantined; replaces the levels of the format", example="5"
    )
    cuts: list[float] = setting(
        [],
        "where to cut a continuous scale into levels, for learners that need ranks; increasing; "
        "a rating equal to a cut belongs to the level above",
        example="[2, 4, 6, 8]",
    )
    keep_implicit: bool = setting(
        False, "book-crossing: keep rating 0, which means read but not rated"
    )
    duplicates: Literal["latest", "first", "mean", "reject"] = setting(
        "latest",
        "which rating to keep if a user rated an item several times: the latest, the first, "
        "their mean, or none; the others are quarantined",
    )
    dictionaries_from: str | None = setting(
        None,
        "run (id or directory) whose numbering of users and items to reuse; latest: the "
        "promoted run",
        example="latest",
    )
    titles: str | None = setting(
        None, "file with the titles of the items; null: none", example="movies.csv"
    )
    titles_format: TitleFormatName | None = setting(
        None, "format of the titles; null: recognised from the first line"
    )
    items: str | None = setting(
        None,
        "table that describes items, as CSV with a header, Parquet, or MovieLens' u.item and "
        "movies.dat: first the item's id, then any columns, with | between several values of a "
        "cell; factors start from it; null: none",
        example="movies.dat",
    )
    max_bad_share: float = setting(
        0.05,
        "ingest fails if a larger share of the rows is unusable (duplicates do not count)",
        at_least=0.0,
        at_most=1.0,
    )

    @property
    def has_parts(self) -> bool:
        """Tell whether the input says which ratings are held out."""
        named = self.test_path, self.validation_path, self.columns.get("part")
        return any(name is not None for name in named)

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
    """Which users and items to keep, by how many ratings they have."""

    user_min: int | None = setting(
        None, "smallest number of ratings of a user", at_least=1, example="20"
    )
    user_max: int | None = setting(
        None, "largest number of ratings of a user", at_least=1, example="5000"
    )
    item_min: int | None = setting(
        None, "smallest number of ratings of an item", at_least=1, example="10"
    )
    item_max: int | None = setting(
        None, "largest number of ratings of an item", at_least=1, example="100000"
    )

    @property
    def label(self) -> str:
        """Return the bounds in words, as they are written in the configuration."""
        bounds = dataclasses.asdict(self).items()
        return ", ".join(f"{name}: {bound}" for name, bound in bounds if bound is not None)


@dataclass(frozen=True)
class PrepareConfig:
    """User blocks and the split inside them."""

    split: Literal[
        "random", "temporal", "leave_last", "k_fold", "global", "global_k_fold", "given"
    ] = setting(
        "random",
        "which ratings to hold out. Of each user: random: a random share; temporal: the latest "
        "share; leave_last: the latest `leave_last`; k_fold: fold `fold` of `folds`. Of all "
        "ratings together, whosever they are: global: a random share; global_k_fold: fold `fold` "
        "of `folds`. given: those that the input names (input.test_path, input.columns.part)",
    )
    train_share: float = setting(
        0.5,
        "random and temporal: share of each user's ratings to train on; global: of all ratings",
        above=0.0,
        at_most=1.0,
    )
    leave_last: int = setting(
        1, "leave_last: how many ratings of each user to hold out", at_least=1
    )
    folds: int = setting(5, "k_fold and global_k_fold: number of folds", at_least=2, at_most=1000)
    fold: int = setting(1, "k_fold and global_k_fold: the fold to hold out, from 1", at_least=1)
    train_parts: list[PartName] = setting(
        ["train"],
        "given: the parts to train on; parts that are neither here nor held out are left out",
        example="[train, validation]",
    )
    held_out_part: PartName = setting("test", "given: the part to hold out", example="validation")
    test: Literal["chosen", "random"] = setting(
        "chosen",
        "what the held-out ratings are, a label of the metrics: of items that users chose to rate, "
        "or of random items that they were asked to rate",
    )
    filters: list[FilterConfig] = setting(
        [],
        "which users and items to keep before the split, one filter after the other: user_min, "
        "user_max, item_min and item_max are numbers of ratings",
        example="[{user_min: 20, item_min: 10}]",
    )
    filter_rounds: int = setting(
        1,
        "how often to repeat the filters at most; they end when a round drops nothing",
        at_least=1,
        at_most=1000,
    )
    user_share: float = setting(
        1.0,
        "share of the remaining users to keep, chosen by a hash of the id",
        above=0.0,
        at_most=1.0,
        example="0.1",
    )
    timestamps: bool = setting(False, "keep the time of each rating in the blocks")
    buckets: int = setting(
        8,
        "number of buckets that users are split into, the same in all stages",
        at_least=1,
        at_most=100_000,
    )


@dataclass(frozen=True)
class FeaturesConfig:
    """The features of an item that learners see."""

    kind: FeatureKind = setting(
        "factors",
        "factors: item factors and a prior for each user, from a factor model; als: the same from "
        "MLlib's ALS, for more items than fit in the driver's memory; panel: the ratings of some "
        "reviewers; reference: the ratings of reviewers drawn for each user; given: your own "
        "vectors; offset: only the item offset. Default: given if the data has vectors "
        "(features.given, input.format letor), otherwise factors",
    )
    kept_from: str | None = setting(
        None,
        "factors and als: run id whose factors to reuse, with zeros for new items; latest: the "
        "promoted run; null: learn them",
        example="latest",
    )
    rank: int = setting(32, "factors and als: number of factors", at_least=1, at_most=500)
    rounds: int = setting(15, "factors: rounds of estimation", at_least=1, at_most=10_000)
    user_share: float = setting(
        1.0,
        "factors and als: share of the users to learn them from",
        above=0.0,
        at_most=1.0,
        example="0.5",
    )
    max_ratings: int = setting(
        10_000_000,
        "factors: learn from about this many ratings at most, by taking fewer users",
        at_least=1,
    )
    choices: Literal["prior", "none"] = setting(
        "prior",
        "factors: prior: what is expected of users and items depends on who rated what; none: it "
        "does not, for ratings that are not given by choice",
    )
    propensities: Literal["none", "fitted"] = setting(
        "none",
        "factors: fitted: also learn how much more probable a rating is the higher it is, and what "
        "ratings of items shown at random would be; for evaluate.weights",
    )
    als_rounds: int = setting(10, "als: rounds of ALS", at_least=1, at_most=1000)
    als_regularization: float = setting(
        0.15,
        "als: regParam of ALS, for ratings divided by their standard deviation",
        at_least=0.0,
    )
    panel_size: int = setting(100, "panel: number of reviewers", at_least=1, at_most=10_000)
    panel_choice: Literal["most_active", "coverage"] = setting(
        "most_active",
        "panel: most_active: the users with the most training ratings; coverage: of the 20,000 "
        "most active, repeatedly the one who rated the most items that the panel lacks",
    )
    reference_size: int = setting(
        300, "reference: number of reviewers to draw for each user", at_least=1, at_most=10_000
    )
    reference_min: int | None = setting(
        None,
        "reference: smallest number of ratings of a reviewer, held-out ones included",
        at_least=1,
        example="100",
    )
    reference_max: int | None = setting(
        None, "reference: largest number of ratings of a reviewer", at_least=1, example="1000"
    )
    reference_pool: int = setting(
        20_000,
        "reference: how many reviewers to draw from at most, a sample by a hash of the id",
        at_least=2,
        at_most=200_000,
    )
    reference_ratings: Literal["training", "all"] = setting(
        "training",
        "reference: which ratings of the reviewers to use; all, as in the papers, includes "
        "held-out ones, but never the user's own",
    )
    given: str | None = setting(
        None,
        "given: Parquet file, directory or glob with columns item_id and features (a list of "
        "numbers, of one length); null: those in the letor files",
        example="vectors.parquet",
    )
    given_scale: Literal["standard", "none"] = setting(
        "standard",
        "given: standard: scale each feature to mean 0 and standard deviation 1; none: keep it",
    )
    offset_shrinkage: float = setting(
        10.0,
        "all but factors: shrinks an item's offset to 0 as this many ratings at 0 would",
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
    """One learner to train: its kind, its label and its hyper-parameters."""

    learner: str = setting("mprank", "the learner, one of `spark-rank learners`", example="svrank")
    name: str | None = setting(
        None, "value of the `learner` column; null: the learner's name", example="mine"
    )
    item_offset: bool = setting(
        True,
        "learn the rating minus the item offset; learners of ranks get the offset as a feature",
    )
    params: dict[str, Any] = setting(
        {},
        "hyper-parameters; mprank without params and grid takes those that fit features.kind",
        example="{C: 10}",
    )
    grid: dict[str, list[Any]] = setting(
        {},
        "values to choose from, per hyper-parameter; the first if there is nothing to choose by",
        example="{C: [0.1, 1, 10]}",
    )
    selection: Literal["sample", "leave_pair_out", "k_fold"] = setting(
        "sample",
        "how to choose from the grid: sample: once for all users, on a sample (stage tune); "
        "leave_pair_out (mprank) and k_fold: for each user on the training part, starting from "
        "the choice of the sample and leaving it only if that proved better on the sample",
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
    """What to learn for each user."""

    learners: list[LearnerConfig] = setting(
        [LearnerConfig("mprank", DEFAULT_LABEL, params=FACTOR_PARAMS)],
        "the learners, trained in one pass with the two baselines. Default: mprank with params "
        "that fit features.kind (`spark-rank config` shows them); these fit factors",
        example="[{learner: svrank, params: {C: 10}}]",
    )
    baselines: bool = setting(
        True,
        "also learn a constant and the item offset for each user, for comparison: two more rows "
        "per user in models and metrics",
    )
    weights: Literal["none", "propensity"] = setting(
        "none",
        "propensity: a rating weighs one over its propensity (features.propensities) when its "
        "user's model is learned; only for learners that take weights, such as mprank",
    )
    min_ratings: int = setting(
        3,
        "users with fewer training ratings get the fallback model: what is expected of them",
        at_least=2,
    )
    margin: float = setting(
        1.0,
        "the margin loss counts a pair in part if its scores differ by less than this",
        above=0.0,
    )
    max_failed_share: float = setting(
        0.01,
        "training fails if the learner fails for a larger share of users",
        at_least=0.0,
        at_most=1.0,
    )
    max_kernel_ratings: int = setting(
        4000,
        "for users with more training ratings, kernel learners use landmarks, and kernel "
        "perceptrons only this many ratings",
        at_least=10,
        at_most=20_000,
    )
    landmarks: int = setting(500, "number of landmarks for such users", at_least=2, at_most=5000)
    folds: int = setting(
        5,
        "number of folds of the training part for choosing hyper-parameters; tune uses the last",
        at_least=2,
        at_most=100,
    )
    targets_min: int | None = setting(
        None,
        "train only users with at least this many ratings, held-out ones included",
        at_least=1,
        example="20",
    )
    targets_max: int | None = setting(
        None,
        "train only users with at most this many ratings, held-out ones included",
        at_least=1,
        example="1000",
    )


@dataclass(frozen=True)
class TuneConfig:
    """Choice of hyper-parameters on a sample of users, on ratings that no feature has seen."""

    users: int = setting(
        1000,
        "number of users in the sample, chosen by a hash of the id",
        at_least=1,
        at_most=100_000,
    )


@dataclass(frozen=True)
class EnsembleLearnerConfig:
    """One ensemble of PRanks, each trained on a random part of the examples."""

    name: str | None = setting(
        None, "value of the `learner` column; null: oap_ and combine", example="mine"
    )
    combine: Literal["bpm", "bagging", "voted"] = setting(
        "bpm",
        "bpm: the mean of the members' rules; bagging: the mean of their ranks; voted: the mean "
        "of their ranks, weighted by how often each member was right",
    )
    sampling: Literal["bernoulli", "poisson"] = setting(
        "bernoulli",
        "bernoulli: a member sees an example with probability tau; poisson: a Poisson(1) number "
        "of times, Oza's online bagging",
    )
    tau: float = setting(0.3, "bernoulli: this probability", above=0.0, at_most=1.0)
    n_members: int = setting(20, "number of members", at_least=1, at_most=100_000)
    item_offset: bool = setting(
        True, "with one ensemble per user: add the item offset as a feature; linear kernel only"
    )
    keep_members: bool = setting(
        False,
        "bpm: also store each member's rule, as bagging and voted always do; rank.preference "
        "members needs them",
    )
    kernel: Literal["linear", "poly", "rbf"] = setting(
        "linear",
        "of a sequence: linear; poly: (gamma x·x' + 1)^degree, as an explicit map for degree 2; "
        "rbf: exp(-gamma ‖x - x'‖²)",
    )
    degree: int = setting(2, "poly: the degree", at_least=1, at_most=10)
    gamma: float = setting(1.0, "poly and rbf: gamma in the kernel", above=0.0)
    budget: int = setting(
        100,
        "poly and rbf without an explicit map: how many examples the expansions may use, drawn by "
        "a hash and the same for all members; other examples are projected onto them",
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
    """Ensembles of PRanks, one for each user or one on a sequence."""

    in_pipeline: bool = setting(
        False, "train ensembles in the pipeline; N members cost N times as much as one PRank"
    )
    learners: list[EnsembleLearnerConfig] = setting(
        [EnsembleLearnerConfig()], "the ensembles", example="[{combine: voted, n_members: 50}]"
    )
    sequence: str | None = setting(
        None,
        "learn one sequence instead of each user: Parquet file, directory or glob with columns "
        "features (a list of numbers, of one length) and rank (from 1), read in the order of file "
        "names and rows; optional columns: test (boolean: measure, do not learn) and trial (whole "
        "number: a sequence of its own)",
        example="examples.parquet",
    )
    user: str | None = setting(
        None,
        "learn the ratings of one user (by id) as the sequence, with the features of this run",
        example="7",
    )
    trials: int = setting(
        1,
        "of a sequence: how often to learn it, each time with other draws and, after the first "
        "time, in another order",
        at_least=1,
        at_most=1000,
    )
    groups: int | None = setting(
        None,
        "number of groups of members, one task each; does not change results; null: one group for "
        "each user, or one per core for a sequence",
        at_least=1,
        at_most=100_000,
        example="4",
    )
    chunk: int = setting(
        65_536,
        "of a sequence: how many examples a task holds at once; does not change results",
        at_least=1,
        at_most=10_000_000,
    )
    confidence: float = setting(
        0.95,
        "confidence level of the intervals over trials or users",
        above=0.0,
        at_most=0.9999,
        example="0.9",
    )


@dataclass(frozen=True)
class EvaluateConfig:
    """How the held-out ratings are compared with the scores."""

    relevant_from: float | None = setting(
        None,
        "ratings of at least this are relevant; null: the lowest level above the middle of the "
        "rating scale",
        example="4",
    )
    top_n: int = setting(
        10, "k of ndcg, precision, recall and average precision at k", at_least=1, at_most=100_000
    )
    epsilon: float = setting(
        0.25,
        "epsilon of the svr costs: smaller errors of a rating difference cost nothing",
        at_least=0.0,
    )
    weights: Literal["none", "propensity"] = setting(
        "none",
        "propensity: also measure as if held-out items had been shown at random, not chosen: every "
        "rating weighs one over its propensity (features.propensities)",
    )
    activity: list[int] = setting(
        [20, 50, 100, 300],
        "numbers of training ratings at which the next group of users begins",
        example="[10, 100]",
    )
    confidence: float = setting(
        0.95,
        "confidence level of the intervals and bounds",
        above=0.0,
        at_most=0.9999,
        example="0.9",
    )
    candidates: Literal["rated", "all", "sampled"] = setting(
        "rated",
        "which items compete: rated: the held-out items alone; all: also make every user's list of "
        "all items that are not in the training part, and measure it (table list_metrics); "
        "sampled: the same among the relevant items and `sampled_items` others",
    )
    sampled_items: int = setting(
        100,
        "sampled: other items drawn for every user, by hash",
        at_least=1,
        at_most=1_000_000,
    )
    list_learners: list[str] = setting(
        [],
        "all and sampled: whose lists, by label; empty: recommend.learner's",
        example="[mprank_linear, item_offset]",
    )


@dataclass(frozen=True)
class PredictionsConfig:
    """A table of held-out ratings and the models' scores."""

    in_pipeline: bool = setting(
        False, "write the table in the pipeline, one row per user, learner and held-out item"
    )


@dataclass(frozen=True)
class RankConfig:
    """Each user's candidate items, ordered by a preference function."""

    preference: Literal["scores", "votes", "members"] = setting(
        "scores",
        "how to compare two items: scores: by the score of one learner; votes: by the share of "
        "learners that score the first higher; members: by the share of an ensemble's members",
    )
    learners: list[str] = setting(
        [],
        "labels of the learners to compare by; empty: the first (scores) or all (votes) of "
        "train.learners, or the first of ensemble.learners (members)",
        example="[mprank_linear]",
    )
    method: Literal["quicksort", "degree"] = setting(
        "quicksort",
        "quicksort: O(n log n) comparisons, with random pivots; degree: all O(n²) comparisons",
    )
    top: int | None = setting(
        None,
        "quicksort: how many items to order; null: all",
        at_least=1,
        at_most=100_000,
        example="20",
    )


@dataclass(frozen=True)
class AggregateConfig:
    """One order of the most rated items, agreed on by all users."""

    items: int = setting(100, "how many of the most rated items to order", at_least=2, at_most=1000)
    method: Literal["borda", "copeland", "quicksort", "local_search", "exact"] = setting(
        "local_search", "how to find the order; exact is an integer program, for about 30 items"
    )
    time_limit: float = setting(
        60.0, "time limit of the exact method in seconds", above=0.0, at_most=1e6
    )


@dataclass(frozen=True)
class RefitConfig:
    """Features and models learned again from all ratings, for the lists."""

    in_pipeline: bool = setting(
        True,
        "before making lists, learn features and the models of recommend.learner again from all "
        "ratings; false: lists come from the training part",
    )


@dataclass(frozen=True)
class RecommendConfig:
    """Every user's list of unseen items."""

    in_pipeline: bool = setting(
        True,
        "make lists in the pipeline; kernel models take long, as they score one user at a time; "
        "queries (format letor) have no unseen items",
    )
    learner: str | None = setting(
        None,
        "label of the learner or ensemble that scores the items, or item_offset; null: the first "
        "of train.learners",
        example="item_offset",
    )
    top: int = setting(10, "number of best unseen items in a list", at_least=1, at_most=1000)
    bottom: int = setting(
        3, "number of worst unseen items, which not to watch; 0: none", at_least=0, at_most=1000
    )
    beta: float = setting(
        6.0,
        "how much it counts whether a user would choose an item at all: lists are in the order of "
        "score + beta · σ · choice, where choice is near 1 for items that such users choose and "
        "near 0 for others, and σ the deviation of ratings from their predictions; 0: the score "
        "alone. Of features.kind factors, for learners whose scores are ratings",
        at_least=0.0,
    )
    diversity: float = setting(
        0.0,
        "how much the items of a list shall differ: each is taken by (1 - diversity) · its value, "
        "from 0 to 1 among five times as many items as the list has, minus diversity times its "
        "greatest cosine with an item above it",
        at_least=0.0,
        at_most=1.0,
    )
    cut: Literal["none", "gap", "largest_gap"] = setting(
        "none",
        "where a list ends before it has `top` items: at the first gap of at least `cut_gap` "
        "between two values, or at the largest gap, if it is more than `cut_share` of the list's "
        "range",
    )
    cut_gap: float = setting(0.5, "gap: least gap", at_least=0.0)
    cut_share: float = setting(
        0.3, "largest_gap: least share of the list's range", at_least=0.0, at_most=1.0
    )
    cut_least: int = setting(3, "least number of items of a list that is cut", at_least=1)
    min_ratings: int = setting(
        0, "smallest number of training ratings of an item in a list", at_least=0
    )
    include: list[str] = setting(
        [],
        "ids of the only items allowed in lists; empty: all items",
        example="[tt0111161, tt0068646]",
    )
    include_from: str | None = setting(
        None, "file with more allowed ids, one per line", example="in_stock.txt"
    )
    exclude: list[str] = setting(
        [], "ids of items to keep out of lists", example="[tt0111161, tt0068646]"
    )
    exclude_from: str | None = setting(
        None, "file with more ids to keep out, one per line", example="gone.txt"
    )


@dataclass(frozen=True)
class TheoremsConfig:
    """The theorems of preference-based ranking as an experiment."""

    trials: int = setting(
        200, "number of random tournaments per size and theorem", at_least=10, at_most=1_000_000
    )


@dataclass(frozen=True)
class ExperimentConfig:
    """One of the papers' experiments."""

    name: str | None = setting(
        None,
        "name of the experiment; without settings it runs as published",
        example="prank_synthetic",
    )
    data: str = setting(
        "data",
        "folder of the data sets; an experiment without its data set is skipped with a message",
        example="/data/papers",
    )
    settings: dict[str, Any] = setting({}, "the experiment's own settings", example="{seed: 1}")


@dataclass(frozen=True)
class TrackingConfig:
    """Where to track pipelines in addition to the store."""

    mlflow: str | None = setting(
        None,
        "MLflow tracking URI, such as http://host:5000 or sqlite:///mlflow.db; `pipeline` logs "
        "one MLflow run there; null: none",
        example="sqlite:///mlflow.db",
    )
    experiment: str = setting(
        "spark_rank", "MLflow experiment; created if it is missing", example="films"
    )


@dataclass(frozen=True)
class DemoConfig:
    """The page that learns in a browser."""

    items: int = setting(
        5000,
        "number of items on the page, the most rated ones; a page of fewer items is smaller",
        at_least=2,
        at_most=100_000,
    )
    learner: str | None = setting(
        None,
        "label of the linear mprank that the page learns; null: the learner of the lists if it is "
        "one, else the first of train.learners that is",
        example="mprank_linear",
    )
    noun: str = setting("films", "what the page calls the items, a plural", example="jokes")


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
        "run id to start from: its numbering of users and items is reused, and so are the models "
        "of users whose ratings and features have not changed; latest: the promoted run; null: "
        "train all users",
        example="latest",
    )
    seed: int = setting(0, "seed of all splits and draws", at_least=0, at_most=2**62)
    users_per_wave: int = setting(
        60_000,
        "train, refit and recommend save their work after about this many users (recommend with "
        "linear models after four times as many) and resume there; a wave has at least one "
        "bucket per core",
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
