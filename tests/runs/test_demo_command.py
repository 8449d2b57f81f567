"""``spark-rank demo`` writes the page of a run, or says in one line what is missing."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_rank import Recommender, cli
from spark_rank.config import load_config
from spark_rank.config.schema import DemoConfig, RecommendConfig
from spark_rank.demo import reading
from spark_rank.demo.page import page_of
from spark_rank.demo.reading import DemoSource
from spark_rank.runs.users import folder_of
from spark_rank.session.filesystem import Filesystem
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from spark_rank.store.run_records import RunRecords
from spark_rank.store.self_checked import DEMO_PAGE
from spark_rank.tables.contracts import ITEMS, RATINGS
from tests.demo.made import CSV_IDS, CSV_LEVELS, RATINGS_CSV


@pytest.fixture
def store(finished: Run, tmp_path: Path) -> Path:
    """Return a store with a copy of a run, called `copy`."""
    place = tmp_path / "store" / "runs" / "run_id=copy"
    shutil.copytree(finished.root.removeprefix("file:"), place)
    return tmp_path / "store"


def demo(store: Path, *sets: str) -> int:
    return cli.main(["demo", "--set", f"store={store}", "run_id=copy", *sets])


def page(store: Path) -> Path:
    return store / "runs" / "run_id=copy" / "demo" / "index.html"


def data_of(store: Path) -> dict[str, Any]:
    (text,) = re.findall(
        r'<script type="application/json" id="run">(.*?)</script>', page(store).read_text(), re.S
    )
    data: dict[str, Any] = json.loads(text)
    return data


def test_it_writes_the_run_into_one_file(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(store) == 0
    assert str(page(store)) in capsys.readouterr().out
    data = data_of(store)
    run = Recommender.open(store / "runs" / "run_id=copy")
    assert sorted(data["ids"]) == sorted(run.item_ids)
    assert data["counts"] == sorted(data["counts"], reverse=True)
    assert data["learner"] == "linear"
    assert data["params"]["C"] == 0.1
    assert data["scale"]["levels"] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert data["scale"]["cuts"] == [1.5, 2.5, 3.5, 4.5]
    assert 0.1 < data["noise"] < 3
    features = run.items.features
    numbers = run.items.numbers(data["ids"])
    stored = np.frombuffer(base64.b64decode(data["features"]["values"]), "<i2")
    values = stored.reshape(len(numbers), -1) * np.array(data["features"]["scale"])
    exact = features.matrix[numbers]
    assert np.abs(values - exact).max() <= np.abs(exact).max() / 65534 * 1.001


def test_the_store_stays_sound_and_a_changed_page_is_found(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo(store) == 0
    first = page(store).read_bytes()
    assert demo(store) == 0
    assert page(store).read_bytes() == first
    verify = ["runs", "verify", "--set", f"store={store}", "run_id=copy"]
    assert cli.main(verify) == 0
    page(store).write_bytes(first.replace(b"Choose", b"Chose!", 1))
    assert cli.main(verify) == 3
    assert "demo/index.html" in capsys.readouterr().out


def test_a_store_on_any_file_system_gives_the_same_page(store: Path, spark: SparkSession) -> None:
    assert demo(store) == 0
    first = page(store).read_bytes()
    run = RunRecords(Filesystem(spark), f"file:{store}", "copy")
    source = DemoSource(folder_of(run), run.run_id, DemoConfig(), RecommendConfig())
    run.files.write_text(run.path(DEMO_PAGE), page_of(source.contents()))
    assert page(store).read_bytes() == first


def test_settings_of_the_page(store: Path) -> None:
    assert demo(store, "demo.items=10", "demo.noun=jokes") == 0
    data = data_of(store)
    assert len(data["ids"]) == len(data["titles"]) == 10
    assert data["leftOut"] == 70
    assert "the others in your order" in page(store).read_text()
    assert "Rate a few jokes" in page(store).read_text()


def test_a_page_that_is_too_large_says_so(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_rank.runs.demo.LARGE", 1000)
    assert demo(store) == 0
    assert "demo.items" in capsys.readouterr().err


def without_stages(store: Path, *stages: str) -> None:
    for stage in stages:
        (store / "runs" / "run_id=copy" / "manifest" / f"{stage}.json").unlink()


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["run_id=nothing"], "run `spark-rank train` first"),
        (["demo.learner=rbf"], "'rbf' is no linear mprank"),
        (["demo.learner=nobody"], "demo.learner: the run has no models of 'nobody'"),
        (["demo.noun="], "demo.noun"),
        (["demo.items=1"], "demo.items"),
    ],
)
def test_a_mistake_is_one_line(
    sets: list[str], words: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo(store, *sets) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not page(store).exists()


def test_a_run_without_features_says_what_to_do(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without_stages(store, "refit", "train", "features")
    assert demo(store) == 2
    said = capsys.readouterr().err
    assert "run `spark-rank train` first, or `spark-rank pipeline` for all" in said
    assert said.count("\n") == 1


def test_a_run_whose_learners_the_page_cannot_learn_says_so(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_is_able", lambda spec: False)
    assert demo(store) == 2
    assert "make a run with `{learner: mprank}`" in capsys.readouterr().err


def test_ingest_takes_the_ratings_that_the_page_saves(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text(RATINGS_CSV)
    sets = [f"store={tmp_path / 'store'}", f"input.path={tmp_path / 'ratings.csv'}",
            "prepare.buckets=1"]  # fmt: skip
    config = load_config(None, sets)
    run = Run(spark, config.store, config.run_id)
    run_stages([STAGES["ingest"]], config, spark, run)
    items = {row["item_id"]: row["item"] for row in run.read(ITEMS).collect()}
    found = {row["item"]: row["rating"] for row in run.read(RATINGS).collect()}
    assert {name: found[item] for name, item in items.items()} == pytest.approx(
        dict(zip(CSV_IDS, CSV_LEVELS, strict=True))
    )


def test_it_starts_no_java_and_takes_seconds(store: Path, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/java-was-started\nexit 1\n")
    java.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if "HADOOP" not in name}
    environment = kept | {"JAVA_HOME": str(tmp_path), "PATH": f"{java.parent}:{os.environ['PATH']}"}
    words = [sys.executable, "-m", "spark_rank", "demo", "--set", f"store={store}", "run_id=copy"]
    started = time.monotonic()
    done = subprocess.run(
        words, env=environment, check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 60
    assert not (tmp_path / "java-was-started").exists()
