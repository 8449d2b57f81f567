"""A learner from somebody else's module goes through every stage, as the design page shows it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.errors import ConfigError
from spark_rank.learners import learner_class
from spark_rank.report.explanation import as_text
from spark_rank.runs.users import Question, answer
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, METRICS, MODELS, RECOMMENDATIONS, TUNING
from tests.predicted import predicted

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/design/add-a-learner.md").read_text()
READ_TABLES = (ROOT / "docs/guide/read-tables.md").read_text()
NAME = "toy_rank:CovarianceScorer"
LEARNERS = f"[{{name: toy, learner: '{NAME}', grid: {{shrinkage: [1000, 1]}}}}]"


@pytest.fixture(scope="module")
def toy(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Put the module of the page where driver and workers find it."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path_factory.mktemp("toy") / "toy_rank.py"
    path.write_text(code)
    spark.sparkContext.addPyFile(str(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path.parent))
        yield learner_class(NAME)
    sys.modules.pop("toy_rank", None)
    learner_class.cache_clear()


@pytest.fixture(scope="module")
def run(
    toy: Any, make_config: Callable[..., Config], run_pipeline: Callable[..., Run]
) -> tuple[Config, Run]:
    config = make_config(
        f"train.learners={LEARNERS}",
        "tune.users=20",
        "predictions.in_pipeline=true",
        "recommend.in_pipeline=true",
    )
    return config, run_pipeline(config)


def table(run: Run, name: str) -> list[dict[str, Any]]:
    return pq.read_table(run.path(name).removeprefix("file:")).to_pylist()


def test_it_is_tuned_learned_and_measured(run: tuple[Config, Run]) -> None:
    _, found = run
    tuned = found.read(TUNING).collect()
    assert [row["learner"] for row in tuned] == ["toy", "toy"]
    (chosen,) = [json.loads(row["hyperparameters"]) for row in tuned if row["chosen"]]
    models = found.read(MODELS).where("learner = 'toy' and status = 'learned'").collect()
    assert len(models) > 30
    assert {row["hyperparameters"] for row in models} == {json.dumps(chosen, sort_keys=True)}
    measured = found.read(METRICS).where("learner = 'toy' and msd is not null").count()
    assert measured > 30


def test_its_rows_are_what_the_class_learns(toy: Any, run: tuple[Config, Run]) -> None:
    _, found = run
    items = {row["item"]: row for row in table(found, "item_features")}
    blocks = {row["user_id"]: row for row in found.read(BLOCKS).collect()}
    said = predicted(found)
    (model,) = found.read(MODELS).where("learner = 'toy' and status = 'learned'").take(1)
    block, n = blocks[model["user_id"]], model["n_train"]
    X = np.array([items[item]["features"] for item in block["items"]], dtype=float)
    if model["excluded_feature"] is not None:
        X[:, model["excluded_feature"]] = 0.0
    offset = np.array([items[item]["offset"] for item in block["items"]])
    own = toy(**json.loads(model["hyperparameters"]))
    own.fit(X[:n], np.array(block["ratings"][:n], dtype=float), offset[:n])
    scores = own.decision_function(X[n:], offset[n:])
    np.testing.assert_allclose(said[model["user_id"], "toy"].scores, scores, rtol=1e-4)


def test_the_page_about_tables_scores_its_rows(run: tuple[Config, Run]) -> None:
    (code,) = re.findall(r"```python\n([^`]*def score\(row, item\):.*?)```", READ_TABLES, re.DOTALL)
    _, found = run
    items = table(found, "item_features")
    names: dict[str, Any] = {
        "np": np, "json": json,
        "features": {row["item_id"]: np.array(row["features"]) for row in items},
        "offset": {row["item_id"]: row["offset"] for row in items},
    }  # fmt: skip
    exec(code, names)
    models = {row["user_id"]: row for row in table(found, "models") if row["learner"] == "toy"}
    compared = 0
    for (user, learner), own in predicted(found).items():
        if learner == "toy" and models[user]["excluded_feature"] is None:
            again = [names["score"](models[user], item) for item in own.items]
            np.testing.assert_allclose(again, own.scores, atol=1e-4)
            compared += len(again)
    assert compared > 100


def test_lists_explanations_and_the_report_have_it(run: tuple[Config, Run]) -> None:
    config, found = run
    lists = found.read(RECOMMENDATIONS).where("learner = 'toy'")
    assert lists.count() > 0
    user = lists.select("user_id").first()
    assert user is not None
    text = as_text(answer(config, found, Question(user["user_id"])), everything=True)
    assert "toy" in text
    page = Path(found.path("report/report.html").removeprefix("file:")).read_text()
    assert "toy" in page


def test_what_is_no_learner_is_refused() -> None:
    for name, words in (
        ("nowhere_to_be_found:Class", "cannot be imported"),
        ("json:JSONDecoder", "is not a learner class"),
        ("mprnk", "did you mean 'mprank'"),
    ):
        learners = f"[{{learner: '{name}'}}]"
        with pytest.raises(ConfigError, match=words):
            load_config(None, [f"train.learners={learners}"])
