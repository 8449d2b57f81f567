"""`itemTable`: factors start from what items are, and an item without ratings has some too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame

from spark_rank.ml import PerUserRanker
from spark_rank.records.features import FactorFacts
from spark_rank.store.run import Run
from spark_rank.tables.contracts import ITEM_FEATURES
from tests.ml.conftest import SMALL, STEPS, Given, rows_of


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory, given: Given) -> Path:
    """Write a table of two genres for the rated items and for one that nobody has rated."""
    path = tmp_path_factory.mktemp("items") / "items.csv"
    items = [*sorted({item for _, item in given}), "new"]
    lines = [f"{item},{'Drama' if place % 2 else 'Comedy'}" for place, item in enumerate(items)]
    path.write_text("\n".join(["item,genre", *lines]))
    return path


@pytest.mark.slow
def test_fit_with_a_table_of_items_learns_what_the_command_line_learns(
    described: Path, rated: DataFrame, run_of: Callable[..., Run]
) -> None:
    model = PerUserRanker(**SMALL, itemTable=str(described)).fit(rated)
    run = run_of("described", STEPS[:3], "prepare.train_share=1.0", f"input.items={described}")
    features = rows_of(model.itemFeatures)
    assert features == rows_of(run.read(ITEM_FEATURES))
    assert run.facts(FactorFacts).content == ("genre: Comedy", "genre: Drama")
    (new,) = [row for row in features if row["item_id"] == "new"]
    assert new["offset"] != 0.0
    assert np.ptp(new["features"]) > 0.0
    plain = {row["item_id"]: row for row in rows_of(PerUserRanker(**SMALL).fit(rated).itemFeatures)}
    assert "new" not in plain
    assert all(plain[row["item_id"]] != row for row in features if row is not new)
