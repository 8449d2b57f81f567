"""Measures lists over all items, beside the metrics of held-out ratings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.frames import evaluate as frames
from spark_rank.reader.recorded import asked_learner, scoring_learner
from spark_rank.session.sharing import share
from spark_rank.stages.models import all_models
from spark_rank.stages.recommend import facts_of_items, recommend_job
from spark_rank.stages.training import tasks_by_bucket
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS
from spark_rank.users.list_measuring import ListMeasures, MeasureJob
from spark_rank.users.list_summaries import list_table
from spark_rank.users.measuring import Measures
from spark_rank.users.recommending import facts_as_bytes, list_facts

# keys of `recommend` that decide which items may be in a list, not how lists are made
_RULES: dict[str, Any] = {
    "min_ratings": 0, "include": [], "include_from": None, "exclude": [], "exclude_from": None
}  # fmt: skip


def list_metrics(config: Config, spark: SparkSession, run: Run, measures: Measures) -> pa.Table:
    """Return the rows of the table `list_metrics`: lists from the training part, of all items."""
    settings = config.evaluate
    lists = replace(config.recommend, top=settings.top_n, bottom=0, **_RULES)
    items = facts_of_items(lists, run)
    shared = share(spark, facts_as_bytes(list_facts(items)))
    listed = ListMeasures(
        measures.relevant_from,
        measures.groups,
        (run.record("prepare") or {})["tables"][BLOCKS.table],
        settings.sampled_items if settings.candidates == "sampled" else None,
        config.seed,
    )
    sums = []
    for label in _learners(config, run):
        job = MeasureJob(recommend_job(lists, label, spark, run), listed)
        scored_by = scoring_learner(run, label)
        sums.append(frames.list_sums(
            run.read(BLOCKS), all_models(run), scored_by, job, shared, tasks_by_bucket(run)
        ))  # fmt: skip
    candidates = np.flatnonzero(items.column("candidate").to_numpy())
    return list_table(_once(sums), measures.groups, candidates, settings.confidence)


def _learners(config: Config, run: Run) -> list[str]:
    """Return the labels of the learners whose lists are measured."""
    labels: list[str | None] = [*config.evaluate.list_learners] or [config.recommend.learner]
    return [
        asked_learner(replace(config.recommend, learner=label), run, "evaluate.list_learners")
        for label in labels
    ]


def _once(sums: list[pa.Table]) -> pa.Table:
    """Return the sums of all passes; lists that are in every pass are taken from the first."""
    seen: set[str] = set()
    kept = []
    for table in sums:
        names = set(table.column("learner").to_pylist())
        is_new = pa.array([name not in seen for name in table.column("learner").to_pylist()])
        kept.append(table.filter(is_new))
        seen |= names
    return pa.concat_tables(kept)
