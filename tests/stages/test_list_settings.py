"""Lists of a run on factors: measured over all items, more diverse, and cut at gaps."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_rank import Recommender
from spark_rank.config import Config
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEMS, LIST_METRICS, RECOMMENDATIONS

pytestmark = pytest.mark.slow
MADE = ("synthesize", "ingest", "prepare", "features", "train", "evaluate")
SETS = ("features.kind=factors", "features.rank=4", "features.rounds=3", "evaluate.candidates=all",
        "evaluate.top_n=5", "evaluate.relevant_from=4")  # fmt: skip


@pytest.fixture(scope="module")
def config(make_config: Callable[..., Config]) -> Config:
    return make_config(*SETS)


@pytest.fixture(scope="module")
def run(spark: SparkSession, config: Config) -> Run:
    made = Run(spark, config.store, config.run_id)
    for stage in MADE:
        run_stage(STAGES[stage], config, spark, made)
    return made


def reader_of(run: Run) -> Recommender:
    return Recommender.open(Path(run.root.removeprefix("file:")))


def test_lists_of_all_items_are_those_that_the_models_give(run: Run) -> None:
    reader = reader_of(run)
    numbers = {row["item"]: row["item_id"] for row in run.read(ITEMS).collect()}
    choice = reader._items.features.choice
    assert choice is not None
    recalls, shown = [], set()
    for block in run.read(BLOCKS).collect():
        n, items = block["n_train"], block["items"]
        seen = set(items[:n])
        wanted = {i for i, r in zip(items[n:], block["ratings"][n:], strict=True) if r >= 4}
        free = sorted((i for i in numbers if i not in seen), key=lambda i: numbers[i])
        code = choice.codes(np.array(items[:n], dtype=np.int32), np.array([0, n]))[0]
        values = reader.score(block["user_id"], [numbers[i] for i in free])
        values = values + 6.0 * choice.decoder[free].astype(float) @ code
        listed = [free[place] for place in np.argsort(-values, kind="stable")[:5]]
        shown |= set(listed)
        if wanted:
            recalls.append(len(wanted & set(listed)) / len(wanted))
    found = {row["metric"]: row for row in run.read(LIST_METRICS).collect()
             if row["user_group"] == "all" and row["learner"] == reader.learner}  # fmt: skip
    assert found["recall"]["users"] == len(recalls) > 30
    assert found["recall"]["mean"] == pytest.approx(math.fsum(recalls) / len(recalls), abs=1e-6)
    assert found["coverage"]["mean"] == pytest.approx(len(shown) / len(numbers))
    names = {row["learner"] for row in run.read(LIST_METRICS).collect()}
    assert names == {reader.learner, "most_popular", "item_offset"}


def table_lists(run: Run) -> dict[str, list[dict[str, Any]]]:
    rows = run.read(RECOMMENDATIONS).where("list = 'top'").orderBy("user_id", "position")
    lists: dict[str, list[dict[str, Any]]] = {}
    for row in rows.drop("schema_version").collect():
        lists.setdefault(row["user_id"], []).append(row.asDict())
    return lists


def test_the_reader_gives_the_lists_of_the_table(
    spark: SparkSession, run: Run, config: Config, make_config: Callable[..., Config]
) -> None:
    plain: dict[str, list[str]] = {}
    for number, order in enumerate(
        ("recommend.beta=6", "recommend.diversity=0.6", "recommend.cut=largest_gap")
    ):
        changed = make_config(*SETS, f"store={config.store}", order, "refit.in_pipeline=false")
        if number:
            run.files.delete(f"{run.root}/manifest/recommend.json")
        again = Run(spark, config.store, config.run_id)
        run_stage(STAGES["recommend"], changed, spark, again)
        reader, lists = reader_of(again), table_lists(again)
        assert all(reader.recommend(user, 10) == rows for user, rows in lists.items())
        if number == 0:
            plain = {user: [row["item_id"] for row in rows] for user, rows in lists.items()}
        elif number == 1:
            assert all(rows[0]["item_id"] == plain[user][0] for user, rows in lists.items())
            assert any(
                {row["item_id"] for row in rows} != set(plain[user]) for user, rows in lists.items()
            )
        else:
            assert any(3 <= len(rows) < 10 for rows in lists.values())
            assert all(
                [row["item_id"] for row in rows] == plain[user][: len(rows)]
                for user, rows in lists.items()
            )
