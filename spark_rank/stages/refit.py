"""refit: features and models of the learner that makes lists, from all ratings of every user."""

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
    """Learn again with the measured run's settings, but with nothing held out."""
    label = asked_learner(config.recommend, run)
    needless = _why_not(label, run)
    if needless is not None:
        return StageResult(
            f"skipped: {needless}", facts=SkippedRefit(skipped=needless, learner=label)
        )
    measured = measured_config(config, run)
    specs = [spec for spec in all_specs(measured, run) if spec.label in (label, ITEM_OFFSET)]
    made = features(measured, spark, FinalRun(run))
    assert isinstance(made.facts, FeatureFacts)
    final = FinalRun(run, made)
    _forget_waves_of_other_features(made.facts.files, run)
    distribute_draft(spark, final, made.facts.files)
    learners = [entry for entry in measured.train.learners if entry.label == label]
    training = dataclasses.replace(measured.train, learners=learners)
    found = learn_models(dataclasses.replace(measured, train=training), specs, spark, final)
    tables = {final.own(TABLES[name]).table: rows for name, rows in made.tables.items()}
    return StageResult(
        f"from all ratings: {found.message or label}; {made.message}",
        {**tables, **found.tables},
        RefitFacts(
            status=found.facts.status,
            failed_users=found.facts.failed_users,
            waves=found.facts.waves,
            job=found.facts.job,
            previous=found.facts.previous,
            learner=label,
            features=made.facts,
        ),
        found.users,
    )


def measured_config(config: Config, run: Run) -> Config:
    """Return the configuration with what the run's features and models were made with."""
    made, earlier = run.record("features") or {}, run.facts(TrainFacts).previous
    settings: FeaturesConfig = convert(FeaturesConfig, made["settings"], "features")
    return dataclasses.replace(
        config,
        seed=made["seed"],
        features=settings,
        train=recorded_training(run),
        previous=None if earlier is None else earlier.run,
    )


def _why_not(label: str, run: Run) -> str | None:
    """Return why there is nothing to learn again, or None."""
    if run.facts(PrepareFacts).test_ratings == 0:
        return "nothing is held out, so the models are from all ratings already"
    if label not in (ITEM_OFFSET, *(entry.label for entry in recorded_training(run).learners)):
        return f"the ensemble {label!r} makes the lists, from the training part of the ratings"
    return None


def _forget_waves_of_other_features(files: FeatureFiles, run: Run) -> None:
    """Remove what a process that was killed has learned on features that are not these."""
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
