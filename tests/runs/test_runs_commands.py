"""The commands about runs, as they are typed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from spark_rank import cli
from spark_rank.config import Config
from spark_rank.data.tables import USERS
from spark_rank.engine.lease import Lease, held
from spark_rank.engine.runner import run_stage
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.runs.catalogue import REQUIRED, RunState
from spark_rank.runs.pruning import choose

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "test.yaml"
    path.write_text(f"store: {tmp_path / 'store'}\n")
    return path


@pytest.fixture
def ask(
    spark: SparkSession,
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Ask:
    @contextmanager
    def shared(name: str, settings: Any) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("spark_rank.runs.commands.spark_session", shared)

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main(["runs", *words, "--config", str(config)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def make_run(
    spark: SparkSession, store: Path, run_id: str, stages: tuple[str, ...] = REQUIRED, seed: int = 0
) -> Run:
    """Make a run whose stages all write a tiny table or nothing."""
    run = Run(spark, str(store), run_id)

    def work(config: Config, spark: SparkSession, run: Run) -> StageResult:
        if run.in_progress.stage != "prepare":
            return StageResult("nothing")
        rows = run.write(USERS, spark.createDataFrame([("a", 0)], "user_id string, user int"))
        return StageResult("one user", {"users": rows, "blocks": 1})

    for name in stages:
        stage = Stage(name, work, settings=lambda config: config.prepare)
        run_stage(stage, Config(seed=seed), spark, run)
    return run


def as_of(run: Run, days: int) -> None:
    """Let a run have begun so many days ago."""
    started = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
    for name, record in run.records().items():
        run.write_record(name, {**record, "started": started}, renew=True)


@pytest.fixture
def copied(finished: Run, tmp_path: Path, spark: SparkSession) -> Run:
    """Return a whole run that a test may damage."""
    store = tmp_path / "store"
    run = Run(spark, str(store), finished.run_id)
    shutil.copytree(local(finished), local(run))
    return run


def local(run: Run) -> Path:
    return Path(run.root.removeprefix("file:"))


def files(run: Run) -> list[Path]:
    paths = [path.relative_to(local(run)) for path in local(run).rglob("*") if path.is_file()]
    return [path for path in paths if not any(part[0] in "_." for part in path.parts)]


def test_list_tells_the_state_of_every_run(ask: Ask, spark: SparkSession, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert ask("list") == (0, f"no runs in {store}\n", "")
    as_of(make_run(spark, store, "whole"), 3)
    as_of(make_run(spark, store, "begun", ("ingest",)), 2)
    damaged = make_run(spark, store, "damaged", ("ingest",))
    damaged.files.write_text(damaged.path("manifest/ingest.json"), "{")
    broken = as_of_broken(spark, store)
    with held(Lease(broken.files, Run(spark, str(store), "begun").root, "begun")):
        code, out, _ = ask("list", "--format", "json")
    runs = {run["run_id"]: run for run in json.loads(out)["runs"]}
    assert code == 0
    assert {name: run["state"] for name, run in runs.items()} == {
        "whole": "complete", "begun": "running", "damaged": "damaged", "broken": "incomplete",
    }  # fmt: skip
    assert runs["whole"]["users"] == 1
    assert runs["whole"]["size"] > 100
    assert runs["whole"]["stages"] == sorted(REQUIRED)
    assert runs["broken"]["detail"] == "train was broken off"
    assert list(runs)[:3] == ["broken", "begun", "whole"]
    _, out, _ = ask("list")
    assert re.search(r"^begun +incomplete ", out, re.MULTILINE)
    assert "without prepare, features, train, evaluate, report" in out


def as_of_broken(spark: SparkSession, store: Path) -> Run:
    run = make_run(spark, store, "broken", ("ingest",))
    as_of(run, 1)
    run.files.write_text(run.path("_drafts/train/x"), "")
    return run


def test_show_names_stages_tables_and_times(ask: Ask, copied: Run) -> None:
    code, out, _ = ask("show", copied.run_id)
    assert code == 0
    assert f"{copied.run_id}: complete" in out
    train = (copied.record("train") or {})["message"]
    assert train in out
    assert "models  " in out
    code, _, err = ask("show", "nothing")
    assert code == 2
    assert "no run 'nothing'" in err


def test_diff_shows_settings_rows_and_means(ask: Ask, copied: Run, spark: SparkSession) -> None:
    other = Run(spark, str(local(copied).parents[1]), "other")
    shutil.copytree(local(copied), local(other))
    record = other.record("evaluate") or {}
    record["settings"]["top_n"] = 5
    record["facts"]["means"]["linear"]["msd"] = 99.5
    other.write_record("evaluate", record, renew=True)
    code, out, _ = ask("diff", copied.run_id, "other", "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert found["settings"] == [{"name": "evaluate: top_n", "first": 10, "second": 5}]
    assert found["versions"] == []
    assert {row["name"]: row["first"] for row in found["rows"]}["models"] > 0
    (msd,) = [row for row in found["means"] if row["name"] == "linear: msd"]
    assert msd["second"] == 99.5 != msd["first"]
    assert "evaluate: top_n" in ask("diff", copied.run_id, "other")[1]


def test_verify_names_every_file_with_a_flipped_byte(ask: Ask, copied: Run) -> None:
    code, out, _ = ask("verify", "--run", copied.run_id)
    assert code == 0
    assert "all as the manifest says" in out
    data = [path for path in files(copied) if path.parts[0] not in ("manifest", "run_metrics")]
    assert {"models", "recommendations", "feature_files", "report"} <= {p.parts[0] for p in data}
    for path in data:
        flip(local(copied) / path)
    code, out, err = ask("verify", "--run", copied.run_id, "--format", "json")
    assert code == 3
    assert "problems, the first: " in err
    problems = json.loads(out)["problems"]
    assert {problem["path"] for problem in problems} == {str(path) for path in data}
    assert {problem["kind"] for problem in problems} == {"changed"}


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.fault(
    "a bit of a file is flipped, in every file of a run, one after another",
    "`runs verify` names the file, exit code 3",
)
def test_verify_finds_a_flipped_bit_in_any_file(
    copied: Run, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    # rows are counted where files are what they should be: here one never is
    monkeypatch.setattr("spark_rank.runs.verification._check_rows", lambda run, table: [])
    root = local(copied)
    paths = sorted(path for path in root.rglob("*") if path.is_file() and path.stat().st_size)
    tried = [path for path in paths if path.name != "._SUCCESS.crc"]  # of a file that is empty
    assert {path.suffix for path in tried} >= {".parquet", ".crc", ".npy", ".json", ".html"}
    assert ask("verify", "--run", copied.run_id)[0] == 0
    for path in tried:
        whole = path.read_bytes()
        flip(path)
        code, out, _ = ask("verify", "--run", copied.run_id, "--format", "json")
        path.write_bytes(whole)
        name = path.relative_to(root)
        if path.suffix == ".crc":  # the checksum of the file beside it
            name = name.with_name(path.name[1:].removesuffix(".crc"))
        problems = {problem["path"] for problem in json.loads(out)["problems"]}
        assert (code, str(name) in problems) == (3, True), name
    assert ask("verify", "--run", copied.run_id)[0] == 0


def test_verify_names_damaged_records(ask: Ask, copied: Run) -> None:
    records = sorted(path for path in files(copied) if path.parts[0] == "manifest")
    assert len(records) > 7
    for path in records:
        flip(local(copied) / path)
    code, out, _ = ask("verify", "--run", copied.run_id, "--format", "json")
    assert code == 3
    named = [p["path"] for p in json.loads(out)["problems"] if p["kind"] == "record"]
    assert named == [str(path) for path in records]


def test_verify_names_what_is_missing_foreign_or_from_another_run(ask: Ask, copied: Run) -> None:
    lost = next(path for path in files(copied) if path.parts[0] == "models")
    (local(copied) / lost).unlink()
    (local(copied) / "metrics" / "part-9.parquet").write_bytes(b"PAR1")
    record = copied.record("prepare") or {}
    copied.write_record("prepare", {**record, "fingerprint": "another"}, renew=True)
    _, out, _ = ask("verify", "--run", copied.run_id, "--format", "json")
    problems = {problem["path"]: problem["kind"] for problem in json.loads(out)["problems"]}
    assert problems[str(lost)] == "missing"
    assert problems["metrics/part-9.parquet"] == "foreign"
    assert problems["manifest/train.json"] == "record"


def test_verify_counts_rows(ask: Ask, spark: SparkSession, tmp_path: Path) -> None:
    run = make_run(spark, tmp_path / "store", "r1", ("prepare",))
    record = run.record("prepare") or {}
    run.write_record("prepare", {**record, "tables": {"users": 2}}, renew=True)
    code, out, _ = ask("verify", "--run", "r1")
    assert code == 3
    assert "holds 1 rows, the manifest says 2" in out


def test_consumers_follow_the_pointer_to_a_complete_run(
    ask: Ask, spark: SparkSession, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    for name in ("first", "second"):
        make_run(spark, store, name)
        assert ask("promote", name)[0] == 0
        (found,) = duckdb.sql(f"select path from '{store}/latest.json'").fetchall()
        assert found == (str(store / "runs" / f"run_id={name}"),)
        duckdb.sql(f"set variable run = (select path from '{store}/latest.json')")
        users = "select user_id from read_parquet(getvariable('run') || '/users/*.parquet')"
        assert duckdb.sql(users).fetchall() == [("a",)]
    make_run(spark, store, "begun", ("ingest", "prepare"))
    code, _, err = ask("promote", "begun")
    assert code == 2
    assert "is incomplete (without features, train, evaluate, report)" in err
    assert json.loads((store / "latest.json").read_text())["run_id"] == "second"
    assert "second *" in ask("list")[1]


def test_prune_deletes_only_what_nobody_needs(
    ask: Ask, spark: SparkSession, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    for days, name in enumerate(("new", "promoted", "old")):
        as_of(make_run(spark, store, name), days)
    ask("promote", "promoted")
    assert ask("prune")[0] == 2
    code, out, _ = ask("prune", "--keep", "1")
    assert code == 0
    assert "nothing is deleted yet: add --yes" in out
    assert (store / "runs" / "run_id=old" / "manifest").exists()
    run = Run(spark, str(store), "old")
    with held(Lease(run.files, run.root, "old")):
        assert "going on" in ask("prune", "--keep", "1", "--yes")[1]
    assert "deleted" in ask("prune", "--keep", "1", "--older-than", "1.5", "--yes")[1]
    assert sorted(path.name for path in (store / "runs").iterdir()) == [
        "run_id=new", "run_id=promoted",
    ]  # fmt: skip


def state(name: str, days: int, *, needs: tuple[str, ...] = (), **more: Any) -> RunState:
    started = datetime(2026, 1, 31, tzinfo=UTC) - timedelta(days=days)
    return RunState(
        name, "complete", "", started=started.isoformat(), needs=frozenset(needs), **more
    )


def test_runs_that_others_were_made_with_stay_through_any_chain() -> None:
    states = [
        state("d", 1, needs=("b",)), state("c", 2), state("b", 3, needs=("a", "gone")),
        state("a", 4), state("z", 5, promoted=True),
    ]  # fmt: skip
    now = datetime(2026, 1, 31, tzinfo=UTC)
    goes = {choice.run_id: choice.goes for choice in choose(states, 1, None, now)}
    assert goes == {"d": False, "c": True, "b": False, "a": False, "z": False}
    goes = {choice.run_id: choice.goes for choice in choose(states, None, 2.5, now)}
    assert goes == {"d": False, "c": False, "b": False, "a": False, "z": False}
    goes = {choice.run_id: choice.goes for choice in choose(states[1:], 0, 2.5, now)}
    assert goes == {"c": False, "b": True, "a": True, "z": False}
