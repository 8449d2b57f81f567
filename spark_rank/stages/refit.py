"""refit: features, and models of the learner of the lists, from all ratings of every user."""

from __future__ import annotations

import dataclasses

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.config.schema import ITEM_OFFSET, FeaturesConfig
from spark_rank.config.values import convert
from spark_rank.reader.recorded import REFIT, asked_learner, recorded_training
from spark_rank.records.data import PrepareFacts
from spark_rank.records.facts import as_record
from spark_rank.records.features import FeatureFacts, FeatureFiles
from spark_rank.records.models import RefitFacts, SkippedRefit, TrainFacts
from spark_rank.stages.feature_tables import distribute_draft
from spark_rank.stages.features import features
from spark_rank.stages.final_run import FinalRun
from spark_rank.stages.recommend import needs_of_lists
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.stages.train import all_specs, learn_models
from spark_rank.store.run import Run
from spark_rank.store.self_checked import checked_text
from spark_rank.tables.contracts import TABLES


def refit(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Learn again with the run's settings, but from all ratings."""
    label = asked_learner(config.recommend, run)
    reason = _reason_to_skip(label, run)
    if reason is not None:
        return StageResult(f"skipped: {reason}", facts=SkippedRefit(skipped=reason, learner=label))
    measured = measured_config(config, run)
    specs = [spec for spec in all_specs(measured, run) if spec.label in (label, ITEM_OFFSET)]
    feature_result = features(measured, spark, FinalRun(run))
    assert isinstance(feature_result.facts, FeatureFacts)
    final = FinalRun(run, feature_result)
    _forget_waves_of_other_features(feature_result.facts.files, run)
    distribute_draft(spark, final, feature_result.facts.files)
    learners = [entry for entry in measured.train.learners if entry.label == label]
    training = dataclasses.replace(measured.train, learners=learners)
    learned = learn_models(dataclasses.replace(measured, train=training), specs, spark, final)
    tables = {final.own(TABLES[name]).table: rows for name, rows in feature_result.tables.items()}
    return StageResult(
        f"from all ratings: {learned.message or label}; {feature_result.message}",
        {**tables, **learned.tables},
        RefitFacts(
            status=learned.facts.status,
            failed_users=learned.facts.failed_users,
            waves=learned.facts.waves,
            job=learned.facts.job,
            previous=learned.facts.previous,
            learner=label,
            features=feature_result.facts,
        ),
        learned.users,
    )


def measured_config(config: Config, run: Run) -> Config:
    """Return the configuration with the recorded settings of the run's features and models."""
    recorded, earlier = run.record("features") or {}, run.facts(TrainFacts).previous
    settings: FeaturesConfig = convert(FeaturesConfig, recorded["settings"], "features")
    return dataclasses.replace(
        config,
        seed=recorded["seed"],
        features=settings,
        train=recorded_training(run),
        previous=None if earlier is None else earlier.run,
    )


def _reason_to_skip(label: str, run: Run) -> str | None:
    """Return why `refit` has nothing to do; None if it has."""
    if run.facts(PrepareFacts).test_ratings == 0:
        return "nothing is held out, so the models are from all ratings already"
    if label not in (ITEM_OFFSET, *(entry.label for entry in recorded_training(run).learners)):
        return f"the ensemble {label!r} makes the lists, from the training part of the ratings"
    return None


def _forget_waves_of_other_features(files: FeatureFiles, run: Run) -> None:
    """Remove the waves that a killed process has learned on other features."""
    draft = run.in_progress
    path = f"{draft.waves}/features.json"
    note = {"files": as_record(files)}
    if draft.read_note(path) == note:
        return
    draft.check()
    draft.files.delete(draft.waves)
    draft.files.write_text(path, checked_text(note))


STAGE = Stage(
    name=REFIT,
    run=refit,
    settings=lambda config: {"learner": config.recommend.learner},
    needs=needs_of_lists,
)
