"""Runs and models in a real MLflow, with a database and files of this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from spark_rank import Recommender, cli
from spark_rank.config import Config, load_config
from spark_rank.errors import RunHeldError
from spark_rank.store.run import Run
from spark_rank.tracking import mlflow_run
from spark_rank.tracking.mlflow_run import tracked
from spark_rank.tracking.run_values import parameters

pytestmark = [pytest.mark.mlflow, pytest.mark.filterwarnings("ignore")]

SETTINGS = """
store: {folder}/store
run_id: night
features: {{kind: panel, panel_size: 3}}
prepare: {{buckets: 2}}
train: {{learners: [{{name: linear, learner: mprank, params: {{C: 1}}}}]}}
aggregate: {{items: 5}}
input: {{path: {folder}/ratings.csv, format: csv, max_bad_share: 0}}
evaluate: {{activity: [5]}}
spark: {{spark.hadoop.own.secret.key: hush-hush-7}}
tracking: {{mlflow: "{uri}"}}
"""
RATINGS = [
    f"{u},{i},{(u * 7 + i * 3) % 5 + 1}" for u in range(12) for i in range(25) if (u + i) % 4
]
GUIDE = Path(__file__).parents[2] / "docs/guide/mlflow.md"


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return MLflow with an empty database, or skip where it is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.chdir(tmp_path_factory.mktemp("mlflow"))  # where its files go
        module = pytest.importorskip(
            "mlflow",
            reason="MLflow is not installed: `make mlflow-test` installs it and runs this test",
        )
        module.set_tracking_uri(f"sqlite:///{Path.cwd()}/mlflow.db")
        yield module


class Nightly:
    """A pipeline of a few ratings, and what MLflow has of it."""

    def __init__(self, mlflow: Any, folder: Path) -> None:
        self.folder = folder
        self.uri = mlflow.get_tracking_uri()
        self.client = mlflow.MlflowClient()
        self.experiment = f"of {folder.name}"
        self.config = folder / "night.yaml"
        self.config.write_text(SETTINGS.format(folder=folder, uri=self.uri))
        self.ratings("4")

    def ratings(self, last: str) -> None:
        rows = ["user,item,rating", *RATINGS, f"0,99,{last}"]
        (self.folder / "ratings.csv").write_text("\n".join(rows) + "\n")

    def does(self, command: str, *sets: str) -> int:
        own = f"tracking.experiment={self.experiment}"
        return cli.main([command, "--config", str(self.config), "--set", own, *sets])

    def told(self) -> list[Any]:
        found = self.client.get_experiment_by_name(self.experiment)
        return [] if found is None else list(self.client.search_runs([found.experiment_id]))

    @property
    def run(self) -> Path:
        return self.folder / "store/runs/run_id=night"


@pytest.fixture(scope="module")
def nightly(mlflow: Any, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Nightly:
    """Return a pipeline that has ended well, once for the tests that look at it."""
    made = Nightly(mlflow, tmp_path_factory.mktemp("nightly"))
    assert made.does("pipeline") == 0
    return made


def test_a_pipeline_is_one_run_with_its_values(nightly: Nightly) -> None:
    (told,) = nightly.told()
    assert (told.info.run_name, told.info.status) == ("night", "FINISHED")
    config = load_config(nightly.config, [f"tracking.experiment={nightly.experiment}"])
    assert told.data.params == parameters(config)
    assert told.data.params["train.learners.0.params.C"] == "1"
    means = duckdb.sql(
        f"""select metric || '.' || learner || case user_group when 'all' then ''
                   else '.' || replace(user_group, '+', '_up') end, mean
            from '{nightly.run}/summary/*.parquet' where mean is not null"""
    ).fetchall()
    assert {name: told.data.metrics[name] for name, _ in means} == dict(means)
    assert {"msd.linear", "msd.linear.5_up"} <= dict(means).keys()
    manifest = {path.stem: json.loads(path.read_text())
                for path in (nightly.run / "manifest").glob("*.json")}  # fmt: skip
    for stage, record in manifest.items():
        assert told.data.metrics[f"seconds.{stage}"] == record["seconds"]
        for table, rows in record["tables"].items():
            assert told.data.metrics[f"rows.{table}"] == rows
    tags = {name: value for name, value in told.data.tags.items() if "mlflow." not in name}
    assert tags == {
        "spark_rank.run": "night",
        "spark_rank.store": f"file:{nightly.folder}/store",
        "spark_rank.version": "0.1.0",
    }


def test_the_page_and_the_manifest_are_its_files(nightly: Nightly, tmp_path: Path) -> None:
    (told,) = nightly.told()
    copies = Path(nightly.client.download_artifacts(told.info.run_id, "", str(tmp_path)))
    assert (copies / "report.html").read_bytes() == (
        nightly.run / "report/report.html"
    ).read_bytes()
    own = sorted(path for path in (nightly.run / "manifest").glob("*.json"))
    assert [path.name for path in own] == sorted(os.listdir(copies / "manifest"))
    for path in own:
        assert (copies / "manifest" / path.name).read_bytes() == path.read_bytes()
    for path in copies.rglob("*.*"):
        assert "hush-hush-7" not in path.read_text()


def test_the_same_run_again_is_the_same_mlflow_run(nightly: Nightly) -> None:
    (before,) = nightly.told()
    assert nightly.does("pipeline", "users_per_wave=50000") == 0
    assert nightly.does("track") == 0
    (after,) = nightly.told()
    assert after.info.run_id == before.info.run_id
    assert after.data.params["users_per_wave"] == "60000"  # MLflow lets no parameter change
    assert after.data.metrics == before.data.metrics
    assert after.info.end_time - after.info.start_time == (
        before.info.end_time - before.info.start_time
    )


def test_a_refused_command_leaves_it_alone(
    nightly: Nightly, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("pipeline", "track"):
        assert nightly.does(command, "aggregate.items=6") == 2
        assert "has finished 'aggregate' with other settings" in capsys.readouterr().err
    (told,) = nightly.told()
    assert told.info.status == "FINISHED"
    assert told.data.params["aggregate.items"] == "5"


def test_a_run_of_another_store_is_another_mlflow_run(nightly: Nightly, tmp_path: Path) -> None:
    before = {told.info.run_id for told in nightly.told()}
    store = tmp_path / "it's another"
    shutil.copytree(nightly.run, store / "runs/run_id=night")
    assert nightly.does("track", f"store={store}") == 0
    (added,) = [told for told in nightly.told() if told.info.run_id not in before]
    assert added.data.tags["spark_rank.store"] == f"file:{store}"
    nightly.client.delete_run(added.info.run_id)


def test_a_failed_pipeline_has_failed_until_it_goes_on(
    mlflow: Any, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Nightly(mlflow, tmp_path)
    made.ratings("no number")
    assert made.does("pipeline") == 3
    (failed,) = made.told()
    assert failed.info.status == "FAILED"
    *_, said = capsys.readouterr().err.splitlines()
    error = said.removeprefix("spark-rank: ")
    assert failed.data.tags["spark_rank.error"] == f"InputDataError: {error}"
    assert failed.data.metrics == {}
    made.ratings("4")
    # what is not yet whole is sent as such
    assert made.does("ingest") == 0
    assert made.does("track") == 0
    (begun,) = made.told()
    assert begun.info.status == "FAILED"
    assert begun.data.tags["spark_rank.error"].startswith("incomplete: without prepare")
    assert begun.data.metrics["rows.ratings"] == len(RATINGS) + 1
    assert made.does("pipeline") == 0
    (whole,) = made.told()
    assert whole.info.run_id == failed.info.run_id
    assert whole.info.status == "FINISHED"
    assert "spark_rank.error" not in whole.data.tags
    assert "msd.linear" in whole.data.metrics


class Server(BaseHTTPRequestHandler):
    """Knows the experiment when it is asked first, and then nothing any more."""

    asked = 0

    def do_GET(self) -> None:
        Server.asked += 1
        found = {"experiment": {"experiment_id": "1", "name": "x", "lifecycle_stage": "active"}}
        body = json.dumps(found).encode()
        self.send_response(200 if Server.asked == 1 else 400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


def test_a_server_that_fails_at_the_end_fails_no_pipeline(
    nightly: Nightly, capsys: pytest.CaptureFixture[str]
) -> None:
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    capsys.readouterr()
    try:
        uri = f"http://127.0.0.1:{server.server_port}"
        assert nightly.does("pipeline", f"tracking.mlflow={uri}") == 0
    finally:
        server.shutdown()
        server.server_close()
    assert Server.asked > 1
    said = capsys.readouterr()
    (line,) = [line for line in said.err.splitlines() if "MLflow" in line]
    assert line.startswith(f"[pipeline: warning] MLflow at {uri} has not taken the run (")
    assert "`spark-rank track` with the same configuration sends it again" in line
    assert str(nightly.run / "report/report.html") in said.out


@pytest.mark.parametrize("uri", ["http://127.0.0.1:9", "nonsense://x", "sqlite:////proc/no/x.db"])
def test_an_address_that_is_none_is_refused_before_anything_runs(
    nightly: Nightly, uri: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert nightly.does("pipeline", "run_id=never", f"tracking.mlflow={uri}") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"spark-rank: tracking.mlflow: {uri} cannot be used (")
    assert not (nightly.folder / "store/runs/run_id=never").exists()


def test_a_deleted_experiment_is_refused(
    nightly: Nightly, mlflow: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    client = mlflow.MlflowClient()
    client.delete_experiment(client.create_experiment("gone"))
    assert nightly.does("pipeline", "run_id=never", "tracking.experiment=gone") == 2
    assert "'gone' was deleted in MLflow" in capsys.readouterr().err


def test_a_driver_without_its_jvm_still_tells(nightly: Nightly, mlflow: Any) -> None:
    """The files of a local store are read without Spark, which may be what has died."""

    class Dead:
        def __getattr__(self, name: str) -> Any:
            raise ConnectionRefusedError(name)

    config = _config(nightly, "dead")
    run = Run.__new__(Run)
    run.files, run.run_id, run.root = Dead(), "night", f"file:{nightly.run}"  # type: ignore[assignment]
    with pytest.raises(ConnectionRefusedError), tracked(config, run):
        raise ConnectionRefusedError("the JVM has ended")
    (told,) = _runs_of(mlflow, "dead")
    assert told.info.status == "FAILED"
    assert told.data.tags["spark_rank.error"] == "ConnectionRefusedError: the JVM has ended"
    assert "msd.linear" in told.data.metrics


def test_who_was_taken_over_tells_nothing(nightly: Nightly, mlflow: Any) -> None:
    run = Run.__new__(Run)
    with pytest.raises(RunHeldError), tracked(_config(nightly, "taken"), run):
        raise RunHeldError("another process")
    assert mlflow.MlflowClient().get_experiment_by_name("taken") is None


def test_any_number_of_values_arrives(mlflow: Any) -> None:
    client = mlflow.MlflowClient()
    own = client.create_run(client.create_experiment("many"))
    settings = {f"key {number}": str(number) for number in range(250)}
    measured = {f"metric {number}": float(number) for number in range(2500)}
    mlflow_run._log_values(client, own, settings, measured)
    told = client.get_run(own.info.run_id)
    assert (told.data.params, told.data.metrics) == (settings, measured)


def _config(nightly: Nightly, experiment: str) -> Config:
    return load_config(nightly.config, [f"tracking.experiment={experiment}"])


def _runs_of(mlflow: Any, experiment: str) -> list[Any]:
    client = mlflow.MlflowClient()
    return list(client.search_runs([client.get_experiment_by_name(experiment).experiment_id]))


LOAD = """
import json, sys
sys.modules["pyspark"] = None  # whoever imports it fails
import mlflow, pandas
mlflow.set_tracking_uri(sys.argv[1])
model = mlflow.pyfunc.load_model(sys.argv[2])
questions = json.loads(sys.stdin.read())
told = [model.predict(pandas.DataFrame(frame)).to_json(orient="split", double_precision=15)
        for frame in questions]
print(json.dumps(told))
"""

Answers = Callable[[str, list[dict[str, list[Any]]]], list[pd.DataFrame]]


@pytest.fixture
def answers(mlflow: Any, tmp_path: Path) -> Answers:
    """Return what a process without Spark and Java answers with a logged model."""
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/java-was-started\nexit 1\n")
    java.chmod(0o755)
    path = f"{java.parent}:{os.environ['PATH']}"

    def ask(model: str, questions: list[dict[str, list[Any]]]) -> list[pd.DataFrame]:
        done = subprocess.run(
            [sys.executable, "-c", LOAD, mlflow.get_tracking_uri(), model],
            env={**os.environ, "JAVA_HOME": str(tmp_path), "PATH": path}, check=False,
            capture_output=True, text=True, timeout=280, input=json.dumps(questions),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert not (tmp_path / "java-was-started").exists()
        told = [json.loads(text) for text in json.loads(done.stdout.splitlines()[-1])]
        return [pd.DataFrame(one["data"], columns=one["columns"]) for one in told]

    return ask


@pytest.mark.parametrize(("learner", "measured"), [(None, False), ("rbf", True)])
def test_a_logged_model_answers_as_the_recommender(
    finished: Run, mlflow: Any, answers: Answers, learner: str | None, measured: bool
) -> None:
    from spark_rank.tracking.pyfunc import log_model

    place = finished.root.removeprefix("file:")
    own = Recommender.open(place, learner=learner, measured=measured)
    mlflow.set_experiment("models")
    info = log_model(place, learner=learner, measured=measured)
    users, items = ["1", "7", "31", "nobody"], [*own.item_ids[:9], "nothing"]
    pairs = [(user, item) for item in items for user in users]  # no user's rows are together
    scored, listed, short, mixed = answers(
        info.model_uri,
        [
            {"user": [user for user, _ in pairs], "item": [item for _, item in pairs]},
            {"user": users},
            {"user": users, "k": [2, 0, 4, 1]},
            {"user": ["7", "1", "7"], "item": [items[0], None, items[1]], "k": [9, 2, 9]},
        ],
    )
    assert list(zip(scored["user"], scored["item"], strict=True)) == pairs
    expected = [
        np.nan if user == "nobody" else own.score(user, [item], default=np.nan)[0]
        for user, item in pairs
    ]
    np.testing.assert_allclose(scored["score"].astype(float), expected, rtol=1e-12)
    assert _rows(listed) == _lists(own, [("1", 10), ("7", 10), ("31", 10)])
    assert len(listed) > 20
    assert _rows(short) == _lists(own, [("1", 2), ("31", 4)])
    assert _rows(mixed) == [
        ("7", items[0], pytest.approx(own.score("7", items[:1])[0])),
        *_lists(own, [("1", 2)]),
        ("7", items[1], pytest.approx(own.score("7", items[1:2])[0])),
    ]


def _rows(told: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(told[["user", "item", "score"]].itertuples(index=False, name=None))


def _lists(own: Recommender, asked: list[tuple[str, int]]) -> list[tuple[Any, ...]]:
    return [
        (user, row["item_id"], pytest.approx(row["score"], rel=1e-12))
        for user, count in asked
        for row in own.recommend(user, count)
    ]


def test_questions_have_a_signature(finished: Run, mlflow: Any) -> None:
    from spark_rank.tracking.pyfunc import log_model

    mlflow.set_experiment("models")
    info = log_model(Recommender.open(finished.root), "signed")
    model = mlflow.pyfunc.load_model(info.model_uri)
    inputs = {column.name: (column.type.name, column.required) for column in
              model.metadata.get_input_schema().inputs}  # fmt: skip
    assert inputs == {"user": ("string", True), "item": ("string", False), "k": ("long", False)}
    assert model.metadata.get_output_schema().input_names() == ["user", "item", "score"]
    for wrong in ({"user": [1]}, {"item": ["1"]}):
        with pytest.raises(mlflow.exceptions.MlflowException, match="schema"):
            model.predict(pd.DataFrame(wrong))


def test_the_guides_lines_do_what_they_say(nightly: Nightly, mlflow: Any) -> None:
    text = GUIDE.read_text()
    for said, here in (
        ("http://127.0.0.1:5000", nightly.uri), ("tuesday", "night"),
        ('set_experiment("spark_rank")', f'set_experiment("{nightly.experiment}")'),
    ):  # fmt: skip
        text = text.replace(said, here)
    (log, ask) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(nightly.folder)
        exec(log, names)
        exec(ask.replace("model.predict(", "told = model.predict("), names)
    (pipeline,) = nightly.told()
    version = mlflow.MlflowClient().get_model_version("ranking", "1")
    assert version.run_id == pipeline.info.run_id
    own = Recommender.open(nightly.run)
    assert _rows(names["told"]) == _lists(own, [("1", 3), ("7", 5)])
