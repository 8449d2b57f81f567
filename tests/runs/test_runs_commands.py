"""The commands about runs, as they are typed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.errors import ContractError
from spark_rank.stages.runner import run_stage
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.catalogue import REQUIRED, RunState
from spark_rank.store.lease import Lease, held
from spark_rank.store.needed_runs import note_latest, note_needed_runs
from spark_rank.store.pruning import choose
from spark_rank.store.run import Run
from spark_rank.store.verification import _check_rows
from spark_rank.tables.contracts import USERS
from tests.records.counts import prepared_counts

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(asking: Callable[[str], Ask]) -> Ask:
    return asking("runs")


def make_run(
    spark: SparkSession, store: Path, run_id: str, stages: tuple[str, ...] = REQUIRED, seed: int = 0
) -> Run:
    """Make a run whose stages all write a tiny table or nothing."""
    run = Run(spark, str(store), run_id)

    def work(config: Config, spark: SparkSession, run: Run) -> StageResult:
        if run.in_progress.stage != "prepare":
            return StageResult("nothing")
        rows = run.write(USERS, spark.createDataFrame([("a", 0)], "user_id string, user int"))
        counts = prepared_counts(1, 1, 1, 1)
        return StageResult("one user", {"users": rows, "blocks": 1}, counts)

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


def flip(path: Path, place: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if place is None else place] ^= 1
    path.write_bytes(content)


def test_verify_names_a_table_whose_checksums_have_a_damaged_head(ask: Ask, copied: Run) -> None:
    tables = ("models", "metrics")
    damaged = [s for table in tables for s in sorted(local(copied).glob(f"{table}/.part-*.crc"))][
        :4
    ]
    for sums, place in zip(damaged, (0, 3, 6, 8), strict=True):
        flip(sums, place)
    code, out, err = ask("verify", "--run", copied.run_id, "--format", "json")
    assert (code, "Traceback" in err) == (3, False)
    named = {problem["path"] for problem in json.loads(out)["problems"]}
    assert named == {f"{s.parent.name}/{s.name[1:].removesuffix('.crc')}" for s in damaged}


def test_verify_finds_files_that_readers_do_not_list(ask: Ask, copied: Run) -> None:
    odd = ["models/_evil.parquet", "models/.hidden.parquet", ".hidden", "_more/file",
           "models/.gone.parquet.crc", "manifest/.odd"]  # fmt: skip
    for name in odd:
        path = local(copied) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"PAR1")
    (local(copied) / "models" / "_SUCCESS").write_bytes(b"x")
    (local(copied) / "manifest" / ".train.json.0123abcd.part").write_text("{")  # of a killed one
    code, out, _ = ask("verify", "--run", copied.run_id, "--format", "json")
    problems = {problem["path"]: problem["kind"] for problem in json.loads(out)["problems"]}
    assert (code, problems) == (3, dict.fromkeys([*odd, "models/_SUCCESS"], "foreign"))


def test_no_digit_of_a_record_can_change_unseen(
    ask: Ask, spark: SparkSession, tmp_path: Path
) -> None:
    run = make_run(spark, tmp_path / "store", "r1", ("prepare",))
    record = run.record("prepare") or {}
    number = 0.35918800834921494
    run.write_record("prepare", {**record, "facts": {"mean": number}}, renew=True)
    path = local(run) / "manifest" / "prepare.json"
    whole = path.read_bytes()
    begin = whole.index(str(number).encode())
    assert float("0.35918800834921495") == number
    for place in range(begin, begin + len(str(number))):
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            with pytest.raises(ContractError, match="not a valid stage record"):
                run.record("prepare")
    assert ask("verify", "--run", "r1")[0] == 3
    for text in ("5", "[]", '"fingerprint"', "[" * 100_000):
        path.write_text(text)
        with pytest.raises(ContractError, match="not a valid stage record"):
            run.record("prepare")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.fault(
    "a bit of a file is flipped, in every file of a run, one after another",
    "`runs verify` names the file, exit code 3",
)
def test_verify_finds_a_flipped_bit_in_any_file(
    copied: Run, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    # rows are counted in the table of the file alone: all of them each time takes hours
    tables: list[str] = []
    monkeypatch.setattr(
        "spark_rank.store.verification._check_rows",
        lambda run, table: _check_rows(run, table) if table in tables else [],
    )
    root = local(copied)
    paths = sorted(path for path in root.rglob("*") if path.is_file() and path.stat().st_size)
    tried = [path for path in paths if path.name != "._SUCCESS.crc"]  # of a file that is empty
    assert {path.suffix for path in tried} >= {".parquet", ".crc", ".npy", ".json", ".html"}
    assert ask("verify", "--run", copied.run_id)[0] == 0
    for path in tried:
        whole = path.read_bytes()
        name = path.relative_to(root)
        tables[:] = [name.parts[0]]
        if path.suffix == ".crc":  # the checksum of the file beside it
            name = name.with_name(path.name[1:].removesuffix(".crc"))
        for place in (0, len(whole) // 2, len(whole) - 1):
            flip(path, place)
            code, out, _ = ask("verify", "--run", copied.run_id, "--format", "json")
            path.write_bytes(whole)
            problems = {problem["path"] for problem in json.loads(out)["problems"]}
            assert (code, str(name) in problems) == (3, True), (name, place)
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


def test_prune_deletes_nothing_through_links(ask: Ask, spark: SparkSession, tmp_path: Path) -> None:
    store, outside = tmp_path / "store", tmp_path / "outside"
    runs = store / "runs"
    for days, name in enumerate(("promoted", "linked", "old")):
        as_of(make_run(spark, store, name), days)
    ask("promote", "promoted")
    (runs / "run_id=alias").symlink_to(runs / "run_id=promoted")
    outside.mkdir()
    (outside / "precious").write_text("mine")
    (runs / "run_id=linked" / "models").symlink_to(outside)
    before = sorted(path for path in (runs / "run_id=promoted").rglob("*"))
    code, out, _ = ask("prune", "--keep", "0", "--yes")
    assert code == 0
    assert re.search(r"^alias +kept .*is a link to .*run_id=promoted", out, re.MULTILINE)
    assert re.search(r"^linked +kept .*models is a link to .*outside", out, re.MULTILINE)
    assert sorted(path for path in (runs / "run_id=promoted").rglob("*")) == before
    assert (outside / "precious").read_text() == "mine"
    assert not (runs / "run_id=old").exists()
    pointer = json.loads((store / "latest.json").read_text())
    (store / "latest.json").write_text(json.dumps({**pointer, "run_id": "alias"}))
    assert "deleted" not in ask("prune", "--keep", "0", "--yes")[1]
    code, out, err = ask("verify", "--run", "linked")
    assert (code, "is a link to" in err) == (2, True)


def test_an_odd_directory_stops_no_command(ask: Ask, spark: SparkSession, tmp_path: Path) -> None:
    store = tmp_path / "store"
    runs = store / "runs"
    for days, name in enumerate(("new", "old")):
        as_of(make_run(spark, store, name), days)
    for name in ("bad name", "x\x1b[2J"):
        (runs / f"run_id={name}").mkdir()
    (runs / "run_id=file").write_text("")
    (runs / "run_id=away").symlink_to(tmp_path)
    code, out, _ = ask("list", "--format", "json")
    states = {run["run_id"]: run["state"] for run in json.loads(out)["runs"]}
    foreign = ("bad name", "x\\x1b[2J", "file", "away")
    assert code == 0
    assert states == {"new": "complete", "old": "complete", **dict.fromkeys(foreign, "foreign")}
    code, out, _ = ask("prune", "--keep", "1", "--yes")
    assert code == 0
    assert "\x1b" not in out
    left = {path.name for path in runs.iterdir()}
    assert left == {f"run_id={name}" for name in ("new", "bad name", "x\x1b[2J", "file", "away")}


def test_a_run_that_was_begun_or_damaged_keeps_what_it_needs(
    ask: Ask, spark: SparkSession, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    for days, name in enumerate(("new", "damaged", "needed", "old")):
        as_of(make_run(spark, store, name), days)
    begun = Run(spark, str(store), "begun")  # killed before its first stage was done
    note_needed_runs(begun, Config(previous="needed"))
    note_needed_runs(begun, Config())  # another command with less to say takes nothing back
    goes = pruned(ask, "1", "--older-than", "0.5")
    assert goes == {"new": False, "begun": False, "damaged": True, "needed": False, "old": True}
    begun.files.delete(begun.root)

    damaged = Run(spark, str(store), "damaged")
    ask("promote", "damaged")
    features = damaged.record("features") or {}
    features["settings"] = {"kept_from": "needed"}
    damaged.write_record("features", features, renew=True)
    for broken in ("ingest", "features"):
        flip(local(damaged) / "manifest" / f"{broken}.json")
        goes = pruned(ask, "1")
        assert goes == {"new": False, "damaged": False, "needed": False, "old": False}
    note_needed_runs(damaged, Config(previous="needed"))
    assert pruned(ask, "1") == {"new": False, "damaged": False, "needed": False, "old": True}
    flip(local(damaged) / "_needed_runs.json")
    assert not any(pruned(ask, "1").values())
    _, out, _ = ask("verify", "--run", "damaged", "--format", "json")
    assert "_needed_runs.json" in {problem["path"] for problem in json.loads(out)["problems"]}


def test_nights_that_go_on_from_the_latest_run_do_not_keep_all(
    ask: Ask, spark: SparkSession, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    nights = ("wednesday", "tuesday", "monday")
    for days, name in enumerate(nights):
        as_of(make_run(spark, store, name), days)
    for name, latest in pairwise(nights):
        note_latest(Run(spark, str(store), name), latest)
    assert pruned(ask, "1") == {"wednesday": False, "tuesday": True, "monday": True}
    # until a night is over it needs the one before
    (local(Run(spark, str(store), "wednesday")) / "manifest" / "report.json").unlink()
    assert pruned(ask, "1") == {"wednesday": False, "tuesday": False, "monday": True}


def pruned(ask: Ask, *limits: str) -> dict[str, bool]:
    """Return which runs would go."""
    code, out, _ = ask("prune", "--keep", *limits, "--format", "json")
    assert code == 0
    return {run["run_id"]: run["goes"] for run in json.loads(out)["runs"]}


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
