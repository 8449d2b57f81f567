"""recommend: every user's best and worst unseen items, by the scores of one learner."""

from __future__ import annotations

import dataclasses
import hashlib
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.labels import trained_labels
from spark_rank.config.schema import ITEM_OFFSET, RecommendConfig
from spark_rank.config.sections import check_recommend
from spark_rank.errors import ConfigError
from spark_rank.events import emit
from spark_rank.frames import recommend as frames
from spark_rank.frames.buckets import in_buckets
from spark_rank.learners import learner_class
from spark_rank.learners.costs import kernel_of
from spark_rank.reader.recorded import (
    REFIT,
    asked_learner,
    is_refitted,
    order_of_lists,
    rating_limits,
    recorded_training,
    scoring_learner,
)
from spark_rank.records.data import PrepareFacts
from spark_rank.records.models import TrainFacts
from spark_rank.records.results import RecommendFacts
from spark_rank.session.sharing import share
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.stages.final_run import refit_input, refitted_run
from spark_rank.stages.models import all_models, batches_of_models
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.stages.training import rank_scale
from spark_rank.store.run import Run
from spark_rank.store.waves import Wave, write_in_waves
from spark_rank.tables.contracts import BLOCKS, ITEM_COUNTS, ITEMS, RECOMMENDATIONS, TITLES
from spark_rank.users.candidates import ListRules, item_facts, named_ids
from spark_rank.users.recommending import RecommendJob, facts_as_bytes, list_facts
from spark_rank.wording import count_of

_QUICK = 4  # waves of `train` that are one wave of lists


def recommend(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """List every user's best and worst unseen items by the models of one learner."""
    settings = config.recommend
    label = asked_learner(settings, run)
    run = refitted_run(run, label)
    _warn_if_from_training_part(config, label, run)
    job = recommend_job(settings, label, spark, run)
    items = facts_of_items(settings, run)
    candidates = pc.sum(items.column("candidate")).as_py() or 0
    if candidates == 0:
        raise ConfigError(
            "recommend: no item may be in a list: check recommend.min_ratings, include and exclude"
        )
    shared = share(spark, facts_as_bytes(list_facts(items)))
    models, blocks, model_request = all_models(run), run.read(BLOCKS), scoring_learner(run, label)

    def lists_of(wave: Wave) -> DataFrame:
        in_wave = in_buckets(wave.buckets)
        return frames.recommend(
            blocks.where(in_wave),
            models.where(in_wave),
            model_request,
            job,
            shared,
            len(wave.buckets),
        )

    prepared = run.record("prepare") or {}
    users: int = prepared["tables"][BLOCKS.table]
    with batches_of_models(run):
        waves = write_in_waves(
            run, RECOMMENDATIONS, waves_of_lists(label, run), lists_of, users,
            partition_by=("bucket",), users_a_task=users / prepared["settings"]["buckets"],
        )  # fmt: skip
    rows = sum(wave.rows for wave in waves)
    if rows == 0:  # partitions without rows leave no file with the columns
        run.in_progress.add_parts(RECOMMENDATIONS.table, {})
        run.write(RECOMMENDATIONS, RECOMMENDATIONS.nothing(spark).coalesce(1))
    heads, places = _users_and_places(run.written(RECOMMENDATIONS))
    return StageResult(
        f"{count_of(heads, 'user')}, {count_of(rows, 'place')} in lists by {label}, from "
        f"{candidates:,} of {count_of(len(items), 'item')}"
        f"{', learned from all ratings' if run.all_ratings else ''}",
        {RECOMMENDATIONS.table: rows},
        RecommendFacts(
            learner=label,
            candidates=candidates,
            all_ratings=run.all_ratings,
            users=heads,
            places=places,
        ),
        heads,
    )


def _warn_if_from_training_part(config: Config, label: str, run: Run) -> None:
    """Warn if lists come from the training part although `refit.in_pipeline` is set."""
    refit = run.record(REFIT)
    skipped = refit is not None and not is_refitted(run)  # `refit` has reported the reason
    held_out = run.facts(PrepareFacts).test_ratings
    if config.refit.in_pipeline and held_out and not (run.all_ratings or skipped):
        state = "do not exist" if refit is None else "are of other learners only"
        emit(
            "lists_from_a_part",
            f"models from all ratings {state}: the lists by {label} come from the training part; "
            "run `spark-rank refit` first, or set refit.in_pipeline=false",
            stage="recommend", level="warning", learner=label,
        )  # fmt: skip


def waves_of_lists(label: str, run: Run) -> list[tuple[int, ...]]:
    """Return the buckets of every wave: a wave of `train`, or several if lists are quick.

    Planning and saving a wave of 60,000 users takes a fifth of the time of their lists, unless
    models score user by user.
    """
    waves = [part.buckets for part in run.facts(TrainFacts).waves]
    at_once = _QUICK if label in _quick_learners(run) else 1
    return [tuple(chain.from_iterable(waves[first : first + at_once]))
            for first in range(0, len(waves), at_once)]  # fmt: skip


def _quick_learners(run: Run) -> set[str]:
    """Return the labels of learners with linear models on features that all users share."""
    if (run.record("features") or {})["settings"]["kind"] == "reference":
        return {ITEM_OFFSET}
    return {ITEM_OFFSET} | {
        entry.label for entry in recorded_training(run).learners
        if learner_class(entry.learner).scores_linearly and kernel_of(entry) == "linear"
    }  # fmt: skip


def recommend_job(
    settings: RecommendConfig, label: str, spark: SparkSession, run: Run
) -> RecommendJob:
    """Distribute the feature files; return the job of the workers."""
    low, high = rating_limits(run)
    return RecommendJob(
        distribute_files(spark, run), label, settings.top, settings.bottom, rank_scale(run),
        low, high, settings.beta, order=order_of_lists(settings),
    )  # fmt: skip


def facts_of_items(settings: RecommendConfig, run: Run) -> pa.Table:
    """Return ``item, item_id, title, n_ratings, candidate`` of every item, by number."""
    rules = ListRules(
        settings.min_ratings,
        _named(settings, "include", run),
        _named(settings, "exclude", run),
        counted_only=bool((run.record("prepare") or {})["settings"]["filters"]),
    )
    return item_facts(
        run.read(ITEMS).select("item", "item_id").toArrow(),
        run.read(ITEM_COUNTS).select("item", "n_train").toArrow(),
        run.read(TITLES).select("item_id", "title").toArrow() if run.has(TITLES) else None,
        rules,
    )


def _named(settings: RecommendConfig, key: str, run: Run) -> list[str] | None:
    """Return the ids of a key and of its file, each once; None if neither is set."""
    path = getattr(settings, f"{key}_from")
    return named_ids(getattr(settings, key), None if path is None else _text(path, key, run))


def _text(path: str, key: str, run: Run) -> str:
    if not run.files.exists(path):
        raise ConfigError(f"recommend.{key}_from: {path}: no such file")
    try:
        # a byte order mark is no part of the first id
        return run.files.read_text(path).removeprefix("\ufeff")
    except (UnicodeDecodeError, OSError) as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise ConfigError(f"recommend.{key}_from: {path}: cannot be read ({reason})") from None


def _inputs(config: Config, run: Run) -> dict[str, str]:
    """Return checksums of the files with item ids, and the fingerprint of refitted models."""
    return refit_input(run) | {
        key: hashlib.sha256(_text(path, key, run).encode()).hexdigest()
        for key in ("include", "exclude")
        if (path := getattr(config.recommend, f"{key}_from")) is not None
    }


def needs_of_lists(config: Config) -> tuple[str, ...]:
    """Return the stages that `recommend` and `refit` need."""
    of_ensemble = config.recommend.learner not in (None, ITEM_OFFSET, *trained_labels(config))
    return ("train", "prepare", "features", "ingest", *(("ensemble",) if of_ensemble else ()))


def how_lists_are_made(settings: RecommendConfig) -> dict[str, Any]:
    """Return the settings that decide the order of lists, not which items may be in them."""
    names = ("learner", "beta", "diversity", "cut", "cut_gap", "cut_share", "cut_least")
    return {name: getattr(settings, name) for name in names}


def _deciding_settings(config: Config) -> dict[str, Any]:
    settings = dataclasses.asdict(config.recommend)
    del settings["in_pipeline"]  # it does not change the lists
    return settings


def _users_and_places(lists: DataFrame) -> tuple[int, dict[str, int]]:
    """Return how many users have a list, and how many places each source fills."""
    first = (F.col("list") == "top") & (F.col("position") == 1)
    counts = [F.count("*").alias("places"), F.sum(first.cast("int")).alias("users")]
    rows = lists.groupBy("source", "reason").agg(*counts).collect()
    in_order = sorted(rows, key=lambda row: (row["source"], row["reason"] or ""))
    places = {": ".join(filter(None, (row["source"], row["reason"]))): row["places"]
              for row in in_order}  # fmt: skip
    return sum(row["users"] for row in rows), places


STAGE = Stage(
    name="recommend",
    run=recommend,
    settings=_deciding_settings,
    needs=needs_of_lists,
    inputs=_inputs,
    follows=(REFIT,),
    validate=check_recommend,
)
