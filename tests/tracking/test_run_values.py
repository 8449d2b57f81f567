"""What MLflow is told of a run: names, values and secrets, without MLflow."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from spark_rank.config import load_config, to_yaml
from spark_rank.store.run import Run
from spark_rank.tracking.run_values import began_and_ended, metrics, mlflow_names, parameters

LEARNERS = "train.learners=[{name: a, params: {C: 0.1}}, {name: b, learner: prank}]"
SUMMARY = pa.schema(
    [("metric", pa.string()), ("learner", pa.string()), ("user_group", pa.string()),
     ("mean", pa.float64())]
)  # fmt: skip


def put(tree: Any, key: str, value: Any) -> None:
    """Put a value into a tree where its dotted key says."""
    *parents, last = key.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
    tree[last] = value


def with_numbered_sections(tree: Any) -> Any:
    """Return a tree in which a list of sections is a section with numbers for keys."""
    if isinstance(tree, list) and any(isinstance(entry, dict) for entry in tree):
        tree = {str(place): entry for place, entry in enumerate(tree)}
    if isinstance(tree, dict):
        return {key: with_numbered_sections(value) for key, value in tree.items()}
    return tree


def test_parameters_are_the_whole_configuration() -> None:
    config = load_config(None, [LEARNERS, "prepare.filters=[{user_min: 3}]", "input.path=a b.csv"])
    tree: dict[str, Any] = {}
    for key, text in parameters(config).items():
        put(tree, key, yaml.safe_load(text))
    expected = yaml.safe_load(to_yaml(config))
    expected.pop("spark")
    assert tree == with_numbered_sections(expected)
    assert tree["train"]["learners"]["0"]["params"]["C"] == 0.1


def test_settings_of_spark_have_their_names_and_hide_secrets() -> None:
    secret = "hush-hush-7"
    config = load_config(
        None,
        [f"store=s3a://bucket/{secret}"],
        ["spark.master=local[3]", f"spark.hadoop.fs.s3a.secret.key={secret}"],
    )
    told = parameters(config)
    assert told["spark.master"] == "local[3]"
    assert secret not in json.dumps(told)
    assert told["spark.hadoop.fs.s3a.secret.key"] == "*********(redacted)"


def test_no_value_is_longer_than_mlflow_takes() -> None:
    ids = [f"item-{number}" for number in range(2000)]
    told = parameters(load_config(None, [f"recommend.include={json.dumps(ids)}"]))
    assert len(told["recommend.include"]) == 6000
    assert told["recommend.include"].startswith('["item-0", "item-1"')


def test_names_are_those_that_mlflow_takes_and_stay_different() -> None:
    names = ["msd.a", "msd.ä", "msd.ö", "msd.a+b", "msd.a/b", "x" * 300, "x" * 301, "tab\there"]
    given = mlflow_names(names)
    assert list(given) == names
    assert len({*given.values()}) == len(names)
    assert given["msd.a"] == "msd.a"
    assert all(re.fullmatch(r"[A-Za-z0-9_.\- ]{1,250}", name) for name in given.values())
    assert mlflow_names(names) == given


def test_metrics_are_the_means_by_learner_and_group(finished: Run) -> None:
    folder = finished.path("summary").removeprefix("file:")
    summary = pq.read_table(folder)
    records = finished.records()
    told = metrics(summary, records)
    expected = duckdb.sql(
        f"""select metric || '.' || learner || case user_group when 'all' then ''
                   else '.' || replace(user_group, '+', '_up') end, mean
            from '{folder}/*.parquet' where mean is not null
            union all select metric || '_all_ratings.' || learner || case user_group
                   when 'all' then '' else '.' || replace(user_group, '+', '_up') end, pooled
            from '{folder}/*.parquet' where pooled is not null"""
    ).fetchall()
    for name, mean in expected:
        assert told.pop(name) == mean
    assert len(expected) > 200
    kinds = Counter(name.partition(".")[0] for name in told)
    assert kinds.keys() == {"seconds", "rows"}
    assert {name[8:] for name in told if name.startswith("seconds.")} == records.keys()
    models = pq.read_table(finished.path("models").removeprefix("file:"), columns=["user_id"])
    assert told["rows.models"] == models.num_rows


def test_what_is_no_number_is_left_out() -> None:
    rows = [
        {"metric": "msd", "learner": "a", "user_group": "all", "mean": None},
        {"metric": "msd", "learner": "b", "user_group": "all", "mean": float("nan")},
        {"metric": "msd", "learner": "c", "user_group": "300+", "mean": 0.5},
    ]
    assert metrics(pa.Table.from_pylist(rows, SUMMARY), {}) == {"msd.c.300_up": 0.5}


def test_a_run_begins_with_its_first_stage_and_ends_with_its_last() -> None:
    records = {
        "late": {"started": "2026-03-01T00:00:10+00:00", "seconds": 2.5},
        "early": {"started": "2026-03-01T00:00:00+00:00", "seconds": 3.0},
    }
    began, ended = began_and_ended(records) or (0, 0)
    assert (ended - began, began % 1000) == (12_500, 0)
    assert began_and_ended({}) is None
