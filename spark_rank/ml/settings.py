"""The estimator's parameters: columns by ALS's names, all else by the configuration's keys."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

from pyspark.ml.param import Param, Params, TypeConverters

from spark_rank.config import Config, config_of
from spark_rank.config.schema import LearnerConfig

_LEARNER = "train.learners."
# parameters by the keys of the configuration that they set
KEYS: dict[str, str] = {}
_CONVERTERS: dict[Any, Any] = {
    int: TypeConverters.toInt,
    float: TypeConverters.toFloat,
    bool: TypeConverters.toBoolean,
    list[float]: TypeConverters.toListFloat,
    list[int]: TypeConverters.toListInt,
}


def column(name: str, doc: str) -> Param[str]:
    """Declare a parameter that names a column."""
    return Param(Params._dummy(), name, doc, typeConverter=TypeConverters.toString)


def setting(name: str, key: str) -> Param[Any]:
    """Declare a parameter of the estimator, which sets a key of the configuration."""
    KEYS[name] = key
    return setting_of(name, key)


def setting_of(name: str, key: str) -> Param[Any]:
    """Declare a parameter with the meaning and the type of a key of the configuration."""
    declared, kind = _declared(key)
    options = [part for part in typing.get_args(kind) if part is not type(None)]
    if type(None) in typing.get_args(kind):
        kind = options[0]
    words = typing.get_origin(kind) is typing.Literal or kind is str
    convert = TypeConverters.toString if words else _CONVERTERS.get(kind, TypeConverters.identity)
    return Param(
        Params._dummy(), name, f"{declared.metadata['doc']} ({key})", typeConverter=convert
    )


def defaults() -> dict[str, Any]:
    """Return what the configuration takes where nothing is named, by parameter."""
    found = {}
    for name, key in KEYS.items():
        declared, _ = _declared(key)
        made = declared.default_factory
        found[name] = declared.default if made is dataclasses.MISSING else made()
    return found


def column_defaults() -> dict[str, str]:
    """Return ALS's names of columns, and the strategy for what is not known."""
    return {
        "userCol": "user", "itemCol": "item", "ratingCol": "rating",
        "predictionCol": "prediction", "coldStartStrategy": "fallback",
    }  # fmt: skip


def _declared(key: str) -> tuple[dataclasses.Field[Any], Any]:
    if key.startswith(_LEARNER):
        return _field(LearnerConfig, key.removeprefix(_LEARNER))
    kind: Any = Config
    *rooms, last = key.split(".")
    for room in rooms:
        kind = typing.get_type_hints(kind)[room]
    return _field(kind, last)


def _field(kind: Any, name: str) -> tuple[dataclasses.Field[Any], Any]:
    (found,) = [field for field in dataclasses.fields(kind) if field.name == name]
    return found, typing.get_type_hints(kind)[name]


class RankerParams(Params):
    """What estimator and model share."""

    userCol = column("userCol", "column of users: ids of any type that text can stand for")
    itemCol = column("itemCol", "column of items: ids of any type that text can stand for")
    predictionCol = column("predictionCol", "column that `transform` adds")
    coldStartStrategy = Param(
        Params._dummy(),
        "coldStartStrategy",
        "what `transform` does with users and items that were not there in fit. fallback: the "
        "rating expected of a new user, or of an average item; nan: NaN; drop: leaves the row out",
        typeConverter=TypeConverters.toString,
    )

    def getUserCol(self) -> str:
        """Return the name of the column of users."""
        return str(self.getOrDefault("userCol"))

    def getItemCol(self) -> str:
        """Return the name of the column of items."""
        return str(self.getOrDefault("itemCol"))

    def getPredictionCol(self) -> str:
        """Return the name of the column that `transform` adds."""
        return str(self.getOrDefault("predictionCol"))

    def getColdStartStrategy(self) -> str:
        """Return what `transform` does with unknown users and items."""
        return str(self.getOrDefault("coldStartStrategy"))


class TrainingParams(RankerParams):
    """What `fit` takes: the keys of the configuration, one parameter each."""

    ratingCol = column("ratingCol", "column of ratings")
    timestampCol = column(
        "timestampCol",
        "column of times, as timestamps or seconds since 1970: which of a user's ratings of one "
        "item is the latest; not set: the highest counts",
    )
    weightCol = column(
        "weightCol",
        "column of weights above 0: how often a rating counts when its user's model is learned; "
        "for learners that take weights, such as mprank; not set: all count alike",
    )
    seed = setting("seed", "seed")
    learner = setting("learner", "train.learners.learner")
    learnerName = setting("learnerName", "train.learners.name")
    learnerParams = setting("learnerParams", "train.learners.params")
    learnerGrid = setting("learnerGrid", "train.learners.grid")
    gridSelection = setting("gridSelection", "train.learners.selection")
    itemOffset = setting("itemOffset", "train.learners.item_offset")
    featureKind = setting("featureKind", "features.kind")
    rank = setting("rank", "features.rank")
    rounds = setting("rounds", "features.rounds")
    userShare = setting("userShare", "features.user_share")
    maxRatings = setting("maxRatings", "features.max_ratings")
    alsRounds = setting("alsRounds", "features.als_rounds")
    alsRegularization = setting("alsRegularization", "features.als_regularization")
    panelSize = setting("panelSize", "features.panel_size")
    panelChoice = setting("panelChoice", "features.panel_choice")
    referenceSize = setting("referenceSize", "features.reference_size")
    referenceMin = setting("referenceMin", "features.reference_min")
    referenceMax = setting("referenceMax", "features.reference_max")
    referencePool = setting("referencePool", "features.reference_pool")
    given = setting("given", "features.given")
    givenScale = setting("givenScale", "features.given_scale")
    offsetShrinkage = setting("offsetShrinkage", "features.offset_shrinkage")
    numBuckets = setting("numBuckets", "prepare.buckets")
    minRatings = setting("minRatings", "train.min_ratings")
    margin = setting("margin", "train.margin")
    maxFailedShare = setting("maxFailedShare", "train.max_failed_share")
    maxKernelRatings = setting("maxKernelRatings", "train.max_kernel_ratings")
    landmarks = setting("landmarks", "train.landmarks")
    folds = setting("folds", "train.folds")
    tuneUsers = setting("tuneUsers", "tune.users")
    duplicates = setting("duplicates", "input.duplicates")
    levels = setting("levels", "input.levels")
    cuts = setting("cuts", "input.cuts")
    topN = setting("topN", "evaluate.top_n")
    relevantFrom = setting("relevantFrom", "evaluate.relevant_from")
    epsilon = setting("epsilon", "evaluate.epsilon")

    def optional_column(self, name: str) -> str | None:
        """Return the column that a parameter names; None where it is not set."""
        return str(self.getOrDefault(name)) if self.isDefined(name) else None

    def config(self) -> Config:
        """Return the configuration that the parameters ask for, or raise `ConfigError`."""
        tree: dict[str, Any] = {"input": {"format": "csv"}, "prepare": {"train_share": 1.0}}
        entry: dict[str, Any] = {}
        for name, key in KEYS.items():
            value = self.getOrDefault(name)
            if key.startswith(_LEARNER):
                entry[key.removeprefix(_LEARNER)] = value
            elif self.isSet(name):
                room, _, last = key.rpartition(".")
                (tree.setdefault(room, {}) if room else tree)[last] = value
        if any(self.isSet(name) for name, key in KEYS.items() if key.startswith(_LEARNER)):
            tree["train"] = {**tree.get("train", {}), "learners": [entry]}
        return config_of(tree, "PerUserRanker")
