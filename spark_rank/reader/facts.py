"""Facts about a run's models from its records: their tables, and how to learn one more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_rank.config.schema import RecommendConfig
from spark_rank.config.values import convert
from spark_rank.errors import ConfigError, ContractError
from spark_rank.reader.recorded import (
    REFIT,
    Record,
    Recorded,
    as_refitted,
    asked_learner,
    ensemble_spec,
    has_refitted,
    order_of_lists,
    rating_limits,
    recorded_ensembles,
    recorded_job,
    scoring_learner,
)
from spark_rank.records.facts import AnyFacts, read_facts
from spark_rank.records.features import FeatureFacts
from spark_rank.store.records import REMEDY
from spark_rank.tables.contract import Contract
from spark_rank.tables.contracts import ENSEMBLE_MODELS, FINAL_TABLES, MODELS, PANEL
from spark_rank.users.joining import ScoringLearner
from spark_rank.users.learning import LearnJob
from spark_rank.users.recommending import RecommendJob

_FEATURE_FILES = "feature_files"


@dataclass(frozen=True)
class ModelFacts:
    """The models that a `Recommender` uses: their tables, their features and their learning job.

    With `all_ratings` they are learned from all ratings of a user, else from the training part.
    """

    scored_by: ScoringLearner
    all_ratings: bool
    buckets: int
    tables: tuple[Contract, ...]
    panel: Contract
    feature_files: str
    features_kind: str
    lists: RecommendConfig
    learn: LearnJob
    score: RecommendJob


def model_facts(
    run: Recorded, name: str, lists: RecommendConfig, key: str, *, measured: bool
) -> ModelFacts:
    """Return the facts of the learner that `lists` names.

    With `measured` the models are those that metrics and predictions describe, else those that
    make the lists. Errors name the run `name` and the configuration key `key`.
    """
    for stage in ("train", "features", "prepare", "ingest"):
        if run.record(stage) is None:
            raise ConfigError(
                f"{name}: the run has no models yet: run `spark-rank train` first, or "
                "`spark-rank pipeline` for all"
            )
    try:
        label = asked_learner(lists, run, key)
        all_ratings = has_refitted(run, label) and not measured
        source = _Refitted(run, name) if all_ratings else run
        return _facts(source, label, lists, all_ratings=all_ratings)
    except (KeyError, TypeError) as error:
        raise ContractError(
            f"{name}: a record lacks {error}: another version of this package wrote the run{REMEDY}"
        ) from None


def recorded_lists(run: Recorded) -> RecommendConfig | None:
    """Return the settings of the run's lists; None without lists."""
    record = run.record("recommend")
    if record is None:
        return None
    settings: RecommendConfig = convert(RecommendConfig, record["settings"], "recommend")
    return settings


@dataclass(frozen=True)
class _Refitted:
    """A run seen through the records of `refit`: features and models from all ratings."""

    run: Recorded
    run_id: str

    def facts(self, kind: type[AnyFacts]) -> AnyFacts:
        """Return the facts of a finished stage."""
        return read_facts(kind, self.record(kind.stage) or {}, self.run_id)

    def record(self, stage: str) -> Record | None:
        """Return a finished stage's record."""
        measured, refit = self.run.record(stage), self.run.record(REFIT)
        return (
            measured if measured is None or refit is None else as_refitted(stage, measured, refit)
        )


def _facts(run: Recorded, label: str, lists: RecommendConfig, *, all_ratings: bool) -> ModelFacts:
    features: Record = run.record("features") or {}
    files = run.facts(FeatureFacts).files
    ensembles = recorded_ensembles(run)
    learn = recorded_job(run, files)
    if label in ensembles:
        seed = (run.record("ensemble") or {})["seed"]
        specs = (*learn.specs, ensemble_spec(ensembles[label], seed))
        learn = replace(learn, specs=specs)
    low, high = rating_limits(run)
    score = RecommendJob(
        files, label, lists.top, lists.bottom, learn.limits.scale, low, high, lists.beta,
        order=order_of_lists(lists),
    )  # fmt: skip
    tables = (MODELS, *((ENSEMBLE_MODELS,) if label in ensembles else ()))
    panel = PANEL
    if all_ratings:
        tables, panel = (FINAL_TABLES[MODELS.table],), FINAL_TABLES[PANEL.table]
    return ModelFacts(
        scoring_learner(run, label), all_ratings,
        (run.record("prepare") or {})["settings"]["buckets"], tables, panel,
        f"final_{_FEATURE_FILES}" if all_ratings else _FEATURE_FILES,
        features["settings"].get("kind", ""), lists, learn, score,
    )  # fmt: skip
