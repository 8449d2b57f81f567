"""Reads a run's records about its models: learners, their labels, and which make lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from spark_rank.config.labels import user_ensembles
from spark_rank.config.schema import (
    ITEM_OFFSET,
    EnsembleConfig,
    EnsembleLearnerConfig,
    RecommendConfig,
    TrainConfig,
)
from spark_rank.config.values import convert
from spark_rank.errors import ConfigError
from spark_rank.records.data import IngestFacts
from spark_rank.records.facts import AnyFacts, was_skipped
from spark_rank.records.features import FeatureFiles
from spark_rank.records.models import RefitFacts, TrainFacts, UserEnsembleFacts
from spark_rank.users.choice_prior import ChoicePrior
from spark_rank.users.ensembles import EnsembleSpec
from spark_rank.users.fitting import Limits
from spark_rank.users.joining import ScoringLearner
from spark_rank.users.learning import FAILED, LearnJob
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.recommending import ListOrder
from spark_rank.users.specs import LearnerSpec

REFIT = "refit"
# items, over the length of a list, among which a diverse one chooses
_POOL = 5

Record = dict[str, Any]


class Recorded(Protocol):
    """A run whose records can be read."""

    def record(self, stage: str) -> Record | None:
        """Return a finished stage's record, or None."""

    def facts(self, kind: type[AnyFacts]) -> AnyFacts:
        """Return the facts of a finished stage."""


def recorded_training(run: Recorded) -> TrainConfig:
    """Return the settings that the run's models were trained with."""
    record = run.record("train") or {}
    settings: TrainConfig = convert(TrainConfig, record["settings"], "train")
    return settings


def rating_limits(run: Recorded) -> tuple[float, float]:
    """Return the least and the greatest rating of the scale, in the units of the input."""
    scale = run.facts(IngestFacts).rating_scale
    return scale.low, scale.high


def recorded_ensemble(run: Recorded) -> EnsembleConfig | None:
    """Return the settings that the run's ensembles were learned with."""
    record = run.record("ensemble")
    if record is None:
        return None
    settings: EnsembleConfig = convert(EnsembleConfig, record["settings"], "ensemble")
    return settings


def recorded_ensembles(run: Recorded) -> dict[str, EnsembleLearnerConfig]:
    """Return the settings of the ensembles that are learned per user, by label."""
    settings = recorded_ensemble(run)
    return {} if settings is None else user_ensembles(settings)


def recorded_job(run: Recorded, files: FeatureFiles) -> LearnJob:
    """Return the job that learned the run's models, as `train` recorded it."""
    job = run.facts(TrainFacts).job
    limits, scale = job.limits, job.limits["scale"]
    if scale is not None:
        cuts = scale["cuts"]
        scale = RankScale(tuple(scale["levels"]), None if cuts is None else tuple(cuts))
    return LearnJob(
        files,
        tuple(_spec(spec) for spec in job.specs),
        dict(job.panel),
        job.min_ratings,
        job.margin,
        Limits(scale, limits["max_kernel_ratings"], limits["landmarks"], limits["folds"]),
    )


def _spec(recorded: Mapping[str, Any]) -> LearnerSpec:
    prior = recorded["prior"]
    if prior is not None:
        prior = ChoicePrior(tuple(prior["errors"]), tuple(prior["own_errors"]), prior["ratings"])
    return LearnerSpec(**{**recorded, "prior": prior})


def model_labels(run: Recorded) -> list[str]:
    """Return the labels of the learners with models in the run, without baselines."""
    trained = [entry.label for entry in recorded_training(run).learners]
    return [*trained, *recorded_ensembles(run)]


def status_of(run: Recorded, label: str) -> Mapping[str, int]:
    """Return how many users have each status with this learner."""
    if label in recorded_ensembles(run):
        return run.facts(UserEnsembleFacts).status[label]
    return run.facts(TrainFacts).status[label]


def asked_learner(settings: RecommendConfig, run: Recorded, key: str = "recommend.learner") -> str:
    """Return the label of the learner whose models score; an error names the key `key`."""
    labels = model_labels(run)
    if recorded_training(run).baselines:
        labels.append(ITEM_OFFSET)
    name = labels[0] if settings.learner is None else settings.learner
    if name not in labels:
        raise ConfigError(f"{key}: the run has no models of {name!r}, only of {', '.join(labels)}")
    return name


def order_of_lists(settings: RecommendConfig) -> ListOrder:
    """Return what becomes of the lists of best items."""
    return ListOrder(
        settings.diversity, _POOL * settings.top, settings.cut, settings.cut_gap,
        settings.cut_share, settings.cut_least,
    )  # fmt: skip


def scoring_learner(run: Recorded, label: str) -> ScoringLearner:
    """Return the learner that makes lists; the item offset replaces models that failed."""
    failed = any(status.startswith(FAILED) for status in status_of(run, label))
    return ScoringLearner(label, ITEM_OFFSET if failed else None)


def is_refitted(run: Recorded) -> bool:
    """Tell whether the run has features and models from all ratings."""
    record = run.record(REFIT)
    return record is not None and not was_skipped(record)


def has_refitted(run: Recorded, label: str) -> bool:
    """Tell whether the run has models of a learner from all ratings."""
    return is_refitted(run) and label in run.facts(RefitFacts).status


def as_refitted(stage: str, measured: Record, refit: Record) -> Record:
    """Return the record of `features` or `train` with the facts of `refit` in their place."""
    if stage not in ("features", "train"):
        return measured
    record = {**measured, "fingerprint": refit["fingerprint"], "versions": refit["versions"]}
    if stage == "features":
        return {**record, "facts": refit["facts"]["features"]}
    learners = [
        entry for entry in measured["settings"]["learners"]
        if (entry["name"] or entry["learner"]) in refit["facts"]["status"]
    ]  # fmt: skip
    settings = {**measured["settings"], "learners": learners}
    return {**record, "facts": refit["facts"], "settings": settings}


def ensemble_spec(entry: EnsembleLearnerConfig, seed: int) -> EnsembleSpec:
    """Return an ensemble as the specification that workers take."""
    return EnsembleSpec(
        entry.label, "oap", entry.item_offset, params=oap_params(entry, seed),
        keep_members=entry.keep_members,
    )  # fmt: skip


def oap_params(entry: EnsembleLearnerConfig, seed: int) -> dict[str, Any]:
    """Return OAP's hyper-parameters, without ranks and problem."""
    names = ("combine", "sampling", "tau", "n_members")
    return {**{name: getattr(entry, name) for name in names}, "seed": seed}
