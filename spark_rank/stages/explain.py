"""explain: what moved one user's scores, and the user's own ratings beside the new list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.schema import RecommendConfig
from spark_rank.config.values import convert
from spark_rank.errors import ConfigError
from spark_rank.features.files import open_distributed
from spark_rank.session.session import spark_session
from spark_rank.stages.final_run import as_refitted
from spark_rank.stages.models import all_models
from spark_rank.stages.recommend import (
    asked_learner,
    asked_models,
    item_facts,
    recommend_job,
)
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract
from spark_rank.tables.contracts import BLOCKS, ITEMS, PANEL, USERS
from spark_rank.users.explanation import Case
from spark_rank.users.joining import MODELS_SCHEMA, scoring_models, with_models

Row = dict[str, Any]
_NEAR = 3  # ids suggested for one that is not there


@dataclass(frozen=True)
class Question:
    """Whom and what to explain; `count` is how many of everything to name."""

    user_id: str
    item_id: str | None = None
    learner: str | None = None
    count: int = 10


def explain(config: Config, question: Question) -> Row:
    """Answer in a Spark session of its own."""
    with spark_session(f"spark_rank explain {config.run_id}", config.spark) as spark:
        return answer(config, Run(spark, config.store, config.run_id), question)


def answer(config: Config, run: Run, question: Question) -> Row:
    """Return the explanation as plain values, ready for JSON or text."""
    case = find(config, run, question)
    if question.item_id is not None:
        return {**case.head(), "item": case.item(question.item_id, question.count)}
    return {**case.head(), **case.lists(), **case.influences_on_all(question.count)}


def find(config: Config, run: Run, question: Question) -> Case:
    """Collect what there is about the user; of anybody else no more than a name."""
    _check_trained(run)
    listed = _list_settings(config, run)
    settings = replace(listed, learner=question.learner or listed.learner)
    key = "--learner" if question.learner else "recommend.learner"
    label = asked_learner(settings, run, key)
    run = as_refitted(run, label)
    user = F.col("user_id") == question.user_id
    blocks = run.read(BLOCKS).where(user)
    block, record = blocks.head(), all_models(run).where(user & (F.col("learner") == label)).head()
    if block is None or record is None:
        raise ConfigError(_no_user(run, question.user_id, label))
    if question.item_id is not None:
        _check_item(run, question.item_id)
    models = all_models(run).where(user).select(*MODELS_SCHEMA.names).toArrow()
    own_model = scoring_models(models.cast(MODELS_SCHEMA), asked_models(run, label))
    own_block = blocks.select("items", "bucket").toArrow().combine_chunks().to_batches()[0]
    files = recommend_job(settings, label, run.spark, run)
    return Case(
        with_models(own_block, own_model, pa.array([0], pa.int32())),
        record.asDict(), block.asDict(), item_facts(settings, run),
        open_distributed(files.files), files, _reviewers(run),
        (run.record("features") or {})["settings"].get("kind") == "factors",
    )  # fmt: skip


def _list_settings(config: Config, run: Run) -> RecommendConfig:
    """Return how the run's lists were made; where it has none, how this command would."""
    record = run.record("recommend")
    if record is None:
        return config.recommend
    settings: RecommendConfig = convert(RecommendConfig, record["settings"], "recommend")
    return settings


def _check_trained(run: Run) -> None:
    if run.record("train") is None:
        raise ConfigError(
            f"explain: run {run.run_id!r} in {run.root} has no models yet: run `spark-rank train` "
            "first, or `spark-rank pipeline` for all"
        )


def _reviewers(run: Run) -> dict[int, str]:
    if not run.has(PANEL):
        return {}
    return {row["feature"]: row["user_id"] for row in run.read(PANEL).collect()}


def _no_user(run: Run, user_id: str, label: str) -> str:
    if run.read(USERS).where(F.col("user_id") == user_id).head() is not None:
        return (
            f"--user: {user_id!r} has no model of {label!r}: prepare.filters or train.targets_min "
            "and targets_max left the user out"
        )
    return f"--user: the run has no user {user_id!r} ({_near(run, USERS, 'user_id', user_id)})"


def _check_item(run: Run, item_id: str) -> None:
    if run.read(ITEMS).where(F.col("item_id") == item_id).head() is None:
        raise ConfigError(
            f"--item: the run has no item {item_id!r} ({_near(run, ITEMS, 'item_id', item_id)})"
        )


def _near(run: Run, contract: Contract, column: str, wanted: str) -> str:
    """Return ``did you mean …`` with the ids that take the fewest letters to change."""
    distance = F.levenshtein(F.col(column), F.lit(wanted))
    rows = run.read(contract).orderBy(distance, column).limit(_NEAR).collect()
    names = [repr(row[column]) for row in rows]
    return f"did you mean {' or '.join(names)}?" if names else "there are none"
