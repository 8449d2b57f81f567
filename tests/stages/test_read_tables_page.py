"""The function of docs/guide/read-tables.md scores models as any library reads them."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from spark_rank.store.run import Run
from tests.predicted import predicted

PAGE = (Path(__file__).parents[2] / "docs/guide/read-tables.md").read_text()


def local(run: Run, name: str) -> str:
    return run.path(name).removeprefix("file:")


def rows_as_read(folder: str, reader: str) -> list[dict[str, Any]]:
    """Return a table's rows as a consumer's library gives them."""
    if reader == "pandas":
        return list(pd.read_parquet(folder).to_dict("records"))
    if reader == "pyarrow":
        return pq.read_table(folder).to_pylist()
    found = duckdb.sql(f"select * from '{folder}/*.parquet'")
    if reader == "duckdb to pandas":
        return list(found.df().to_dict("records"))
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("reader", ["pandas", "pyarrow", "duckdb", "duckdb to pandas"])
def test_the_function_of_the_page_scores(finished: Run, reader: str) -> None:
    (code,) = re.findall(r"```python\n([^`]*def score\(row, item\):.*?)```", PAGE, re.DOTALL)
    items = pq.read_table(local(finished, "item_features")).to_pylist()
    names: dict[str, Any] = {"np": np, "json": json}
    names["features"] = {row["item_id"]: np.array(row["features"]) for row in items}
    names["offset"] = {row["item_id"]: row["offset"] for row in items}
    exec(code, names)
    ids = {row["item"]: row["item_id"] for row in items}
    blocks = pq.read_table(local(finished, "blocks")).to_pylist()
    held_out = {row["user_id"]: row["items"][row["n_train"] :] for row in blocks}
    said = predicted(finished)
    compared: Counter[str] = Counter()
    for row in rows_as_read(local(finished, "models"), reader):
        if row["status"] != "learned" or not pd.isna(row["excluded_feature"]):
            continue
        key = row["user_id"], row["learner"]
        scores = said[key].scores if key in said else []
        for item, score in zip(held_out[row["user_id"]], scores, strict=True):
            assert names["score"](row, ids[item]) == pytest.approx(score, abs=1e-4)
            compared[row["learner"]] += 1
    assert compared["linear"] > 100
    assert compared["rbf"] > 100
