"""The estimator's parameters: columns named as in ALS, all others set configuration keys."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

from pyspark.ml.param import Param, Params, TypeConverters

from spark_rank.config import Config, config_of
from spark_rank.config.schema import LearnerConfig

_LEARNER = "train.learners."
# the configuration key that each parameter sets
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
    """Declare a parameter of the estimator that sets a configuration key."""
    KEYS[name] = key
    return setting_of(name, key)


def setting_of(name: str, key: str) -> Param[Any]:
    """Declare a parameter with the meaning and type of a configuration key."""
    declared, annotation = _declared(key)
    options = [part for part in typing.get_args(annotation) if part is not type(None)]
    if type(None) in typing.get_args(annotation):
        annotation = options[0]
    is_text = typing.get_origin(annotation) is typing.Literal or annotation is str
    convert = (
        TypeConverters.toString if is_text else _CONVERTERS.get(annotation, TypeConverters.identity)
    )
    return Param(
        Params._dummy(), name, f"{declared.metadata['doc']} ({key})", typeConverter=convert
    )


def defaults() -> dict[str, Any]:
    """Return the default of every parameter, as the configuration has it."""
    values = {}
    for name, key in KEYS.items():
        declared, _ = _declared(key)
        factory = declared.default_factory
        values[name] = declared.default if factory is dataclasses.MISSING else factory()
    return values


def column_defaults() -> dict[str, str]:
    """Return the default column names, as in ALS, and the defaults of what a model predicts."""
    return {
        "userCol": "user", "itemCol": "item", "ratingCol": "rating",
        "predictionCol": "prediction", "coldStartStrategy": "fallback",
        "predictFor": "chosen",
    }  # fmt: skip


def _declared(key: str) -> tuple[dataclasses.Field[Any], Any]:
    if key.startswith(_LEARNER):
        return _field(LearnerConfig, key.removeprefix(_LEARNER))
    section_class: Any = Config
    *sections, last = key.split(".")
    for section in sections:
        section_class = typing.get_type_hints(section_class)[section]
    return _field(section_class, last)


def _field(section_class: Any, name: str) -> tuple[dataclasses.Field[Any], Any]:
    (declared,) = [field for field in dataclasses.fields(section_class) if field.name == name]
    return declared, typing.get_type_hints(section_class)[name]


class RankerParams(Params):
    """The parameters that estimator and model share."""

    userCol = column("userCol", "column of users: ids of any type that casts to a string")
    itemCol = column("itemCol", "column of items: ids of any type that casts to a string")
    predictionCol = column("predictionCol", "column that `transform` adds")
    coldStartStrategy = Param(
        Params._dummy(),
        "coldStartStrategy",
        "what `transform` does with users and items that `fit` has not seen. fallback: predicts "
        "for a new user or an average item; nan: predicts NaN; drop: leaves the row out",
        typeConverter=TypeConverters.toString,
    )

    predictFor = Param(
        Params._dummy(),
        "predictFor",
        "what `transform` predicts. chosen: ratings that users choose to give, such as those of "
        "`fit`; shown: ratings of items shown to them at random, which takes `propensities` fitted",
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
    """The parameters of `fit`: one for each configuration key."""

    ratingCol = column("ratingCol", "column of ratings")
    timestampCol = column(
        "timestampCol",
        "column of times, as timestamps or seconds since 1970: of several ratings of one user and "
        "item the latest counts; not set: the highest counts",
    )
    weightCol = column(
        "weightCol",
        "column of weights above 0: how much a rating counts when its user's model is learned; "
        "only for learners that take weights, such as mprank; not set: all count the same",
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
    choices = setting("choices", "features.choices")
    propensities = setting("propensities", "features.propensities")
    itemTable = setting("itemTable", "input.items")
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
    trainWeights = setting("trainWeights", "train.weights")
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
    beta = setting("beta", "recommend.beta")
    relevantFrom = setting("relevantFrom", "evaluate.relevant_from")
    epsilon = setting("epsilon", "evaluate.epsilon")

    def optional_column(self, name: str) -> str | None:
        """Return the column that a parameter names; None where it is not set."""
        return str(self.getOrDefault(name)) if self.isDefined(name) else None

    def config(self) -> Config:
        """Return the configuration that the parameters describe, or raise `ConfigError`."""
        tree: dict[str, Any] = {"input": {"format": "csv"}, "prepare": {"train_share": 1.0}}
        entry: dict[str, Any] = {}
        for name, key in KEYS.items():
            value = self.getOrDefault(name)
            if key.startswith(_LEARNER):
                entry[key.removeprefix(_LEARNER)] = value
            elif self.isSet(name):
                section, _, last = key.rpartition(".")
                (tree.setdefault(section, {}) if section else tree)[last] = value
        if any(self.isSet(name) for name, key in KEYS.items() if key.startswith(_LEARNER)):
            tree["train"] = {**tree.get("train", {}), "learners": [entry]}
        return config_of(tree, "PerUserRanker")
