"""What a run's records say about its models: where they are, and how one more is learned."""

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
    asked_models,
    ensemble_spec,
    has_refitted,
    rating_limits,
    recorded_ensembles,
    recorded_job,
)
from spark_rank.records.facts import AnyFacts, read_facts
from spark_rank.records.features import FeatureFacts
from spark_rank.store.records import REMEDY
from spark_rank.tables.contract import Contract
from spark_rank.tables.contracts import ENSEMBLE_MODELS, FINAL_TABLES, MODELS, PANEL
from spark_rank.users.joining import Asked
from spark_rank.users.learning import LearnJob
from spark_rank.users.recommending import RecommendJob

_FEATURE_FILES = "feature_files"


@dataclass(frozen=True)
class ModelFacts:
    """The models that answer: their tables, features, and the job that learned them.

    With `all_ratings` they are learned from all ratings of a user, else from the training part.
    """

    asked: Asked
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
    """Return the facts of the learner that `lists` names; `key` is where it was named.

    With `measured` the models are those that metrics and predictions are of, else those that lists
    come from. `name` is the run's, for errors.
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
        seen = _Refitted(run, name) if all_ratings else run
        return _facts(seen, label, lists, all_ratings=all_ratings)
    except (KeyError, TypeError) as error:
        raise ContractError(
            f"{name}: a record lacks {error}: another version of this package made the run{REMEDY}"
        ) from None


def recorded_lists(run: Recorded) -> RecommendConfig | None:
    """Return how the run's lists were made; None without lists."""
    record = run.record("recommend")
    if record is None:
        return None
    settings: RecommendConfig = convert(RecommendConfig, record["settings"], "recommend")
    return settings


@dataclass(frozen=True)
class _Refitted:
    """A run whose features and models are those from all ratings."""

    run: Recorded
    run_id: str

    def facts(self, kind: type[AnyFacts]) -> AnyFacts:
        """Return what a finished stage has found out."""
        return read_facts(kind, self.record(kind.stage) or {}, self.run_id)

    def record(self, stage: str) -> Record | None:
        """Return a finished stage's record."""
        found, refit = self.run.record(stage), self.run.record(REFIT)
        return found if found is None or refit is None else as_refitted(stage, found, refit)


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
    score = RecommendJob(files, label, lists.top, lists.bottom, learn.limits.scale, low, high)
    tables = (MODELS, *((ENSEMBLE_MODELS,) if label in ensembles else ()))
    panel = PANEL
    if all_ratings:
        tables, panel = (FINAL_TABLES[MODELS.table],), FINAL_TABLES[PANEL.table]
    return ModelFacts(
        asked_models(run, label), all_ratings,
        (run.record("prepare") or {})["settings"]["buckets"], tables, panel,
        f"final_{_FEATURE_FILES}" if all_ratings else _FEATURE_FILES,
        features["settings"].get("kind", ""), lists, learn, score,
    )  # fmt: skip
