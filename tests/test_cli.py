"""The command line as a person meets it: one line per mistake, exit codes, help."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from spark_rank import cli
from spark_rank.errors import SparkRankError, TooManyFailuresError

ROOT = Path(__file__).parents[1]
TINY = ["synthesize.users=20", "synthesize.items=40", "synthesize.median_ratings=10",
        "features.panel_size=5", "prepare.buckets=2"]  # fmt: skip
FEW_TASKS = ["spark.sql.shuffle.partitions=2"]


def environment(**extra: str) -> dict[str, str]:
    folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", **extra}


# no command of these takes longer, on a machine ten times too busy
LONGEST = 600.0


def spark_rank(*arguments: str, timeout: float = LONGEST) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spark_rank", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=timeout, env=environment(), check=False,
    )  # fmt: skip


def test_jobs_and_console_script_take_the_same_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = []
    for start in (lambda: cli.main(["train", "--help"]), lambda: cli.run_job("train", ["--help"])):
        with pytest.raises(SystemExit):
            start()
        texts.append(capsys.readouterr().out.split("options:")[1])
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "--config", "nowhere.yaml"], "nowhere.yaml: no such configuration file"),
        (["experiment"], "names no experiment: set it, or give a file"),
        (
            ["experiment", "--set", "experiment.name=prank_sintetic"],
            "did you mean 'prank_synthetic'?",
        ),
        (
            ["experiment", "--set", "experiment.name=bounds", "experiment.settings={x: 1}"],
            "unknown key",
        ),
        (["reproduce", "nowhere.yaml"], "nowhere.yaml: no such configuration file"),
        (["reproduce", "conf/default.yaml"], "names no experiment"),
        (["train", "--set", "sed=1"], "did you mean 'seed'?"),
        (["config", "--set", "input.format=jpeg"], "input.format"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(ROOT)
    assert cli.main(arguments) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert shown.count("\n") == 1
    assert shown.startswith("spark-rank: ")


def test_unknown_arguments_are_exit_2() -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["tarin"])
    assert ended.value.code == 2


def test_config_show_is_yaml_that_can_be_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.main(["config", "--show", "--set", "seed=42"]) == 0
    shown = capsys.readouterr().out
    assert "seed: 42" in shown
    again = tmp_path / "again.yaml"
    again.write_text(shown)
    assert cli.main(["config", "--config", str(again)]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("error", "code", "trace"),
    [
        (TooManyFailuresError("many"), 4, False),
        (SparkRankError("odd"), 1, False),
        (KeyboardInterrupt(), 130, False),
        (ZeroDivisionError("oops\nmore"), 1, True),
    ],
)
def test_every_end_has_its_code(
    error: BaseException, code: int, trace: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def action() -> int:
        raise error

    assert cli._guarded(action) == code
    shown = capsys.readouterr().err
    assert ("Traceback" in shown) == trace
    assert shown.splitlines()[-1].startswith("spark-rank: ")


def test_java_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["java"]) == 0
    assert capsys.readouterr().out.startswith("Java ")
    assert cli.main(["java", "--check"]) == 0
    assert capsys.readouterr().out == ""


# the JVM says it before any of this code runs
FIRST_LINE = "WARNING: Using incubator modules: jdk.incubator.vector"


@pytest.mark.timeout(2 * LONGEST)
def test_the_console_command_runs_the_pipeline_and_its_wrong_paths_are_told(
    tmp_path: Path,
) -> None:
    store = f"store={tmp_path / 'store'}"
    settings = ["spark.master=local[1]", *SECRETS, *READABLE, *FEW_TASKS]
    done = spark_rank(
        "pipeline", "--log-format", "json", "--set", store, *TINY, "--spark", *settings
    )
    assert done.returncode == 0, done.stderr
    assert "item_offset" in done.stdout
    assert "report.html" in done.stdout
    told = [json.loads(line) for line in done.stderr.splitlines() if line != FIRST_LINE]
    assert {line["run"] for line in told if line["event"] != "jvm"} == {"default"}
    assert {("train", "finished"), ("features", "round")} <= {
        (line["stage"], line["event"]) for line in told
    }
    assert SECRET not in done.stdout + done.stderr
    no_file_holds_the_secret(tmp_path / "store")
    wrong = spark_rank("ingest", "--set", store, "run_id=b", "input.path=nothing.here")
    assert wrong.returncode == 2
    assert "\nspark-rank: input.path: nothing.here: no such file" in wrong.stderr
    assert "Traceback" not in wrong.stderr


SECRET = "hunter2+Zk9secret"
SECRET_NAMES = ["secret.key", "encryption.key"]
SECRETS = [f"spark.hadoop.fs.s3a.{name}={SECRET}" for name in SECRET_NAMES]
# event logs that a test can search
READABLE = ["spark.eventLog.compress=false"]


def no_file_holds_the_secret(store: Path) -> None:
    files = [path for path in store.rglob("*") if path.is_file()]
    (log,) = [path for path in files if path.name.startswith("events_1_")]
    text = log.read_text()
    assert all(f"spark.hadoop.fs.s3a.{name}" in text for name in SECRET_NAMES)
    assert any(path.name == "train.prom" for path in files)
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path


def spark_submit(*arguments: str) -> subprocess.CompletedProcess[str]:
    from spark_rank.session.java import find_java

    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[1]"]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=LONGEST,
        check=False, env=environment(**find_java().environment(), SPARK_LOCAL_IP="127.0.0.1"),
    )  # fmt: skip


@pytest.mark.timeout(2 * LONGEST)
def test_spark_submit_runs_the_same_pipeline(tmp_path: Path) -> None:
    sets = [f"store={tmp_path / 'store'}", "run_id=s", *TINY, "recommend.in_pipeline=false"]
    secret = [part for setting in [*SECRETS, *READABLE, *FEW_TASKS] for part in ("--conf", setting)]
    done = spark_submit(
        *secret, "jobs/pipeline.py", "--log-format", "json", "--set", *sets,
        "--spark", "spark.hadoop.fs.s3a.secret.key=another-one", "spark.sql.shuffle.partitions=8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    # spark-submit passes both streams of Python on as its own stdout
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {line["run"] for line in lines} == {"s"}
    finished = {line["stage"]: line for line in lines if line["event"] == "finished"}
    # two baselines and the default's learner
    assert (finished["train"]["users"], finished["train"]["rows"]) == (20, {"models": 3 * 20})
    overruled = [line["message"] for line in lines if line["event"] == "overruled"]
    assert len(overruled) == 2
    assert sum("secret.key=*********(redacted) overrides" in said for said in overruled) == 1
    assert sum("shuffle.partitions=2 overrides" in said for said in overruled) == 1
    assert SECRET not in done.stderr + done.stdout
    assert "another-one" not in done.stderr + done.stdout
    no_file_holds_the_secret(tmp_path / "store")
    models = tmp_path / "store" / "runs" / "run_id=s" / "models"
    assert duckdb.sql(f"select count(*) from '{models}/*.parquet'").fetchall() == [(60,)]


def test_settings_of_spark_submit_win(tmp_path: Path) -> None:
    script = tmp_path / "show.py"
    script.write_text(
        "from spark_rank.session.session import spark_session\n"
        "ours = {'spark.sql.shuffle.partitions': '7', 'spark.sql.files.minPartitionNum': '5'}\n"
        "with spark_session('show', ours) as spark:\n"
        "    print('shown', *[spark.conf.get(name) for name in ours], flush=True)\n"
    )
    done = spark_submit("--conf", "spark.sql.shuffle.partitions=2", str(script))
    assert "shown 2 5\n" in done.stdout, done.stderr[-2000:]


@pytest.mark.slow
def test_ctrl_c_is_quiet_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spark_rank", "pipeline", "--spark", "spark.master=local[1]"]
    command += ["--set", f"store={tmp_path / 'store'}", *TINY, "features.kind=panel"]
    command += ["recommend.in_pipeline=false", "train.learners=[{params: {C: 0.1}}]"]
    process = subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment(),
        start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith("[ingest]"):
            break
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130, "".join(seen) + rest
    assert "Traceback" not in rest
    assert "the same command goes on" in rest
    again = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=200, env=environment(),
        check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert "[synthesize] already done" in again.stderr


@pytest.mark.parametrize("format_", ["text", "json"])
def test_explain_asks_what_the_command_line_says(
    format_: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_rank.runs import users

    asked = []

    def fake(config: object, question: users.Question) -> dict[str, object]:
        asked.append(question)
        head = {"user_id": "7", "learner": "one", "status": "learned", "reason": None,
                "n_train": 3, "n_test": 2, "kernel": "linear"}  # fmt: skip
        return {**head, "own_ratings": [], "top": [], "bottom": [], "features": [],
                "rated_items": []}  # fmt: skip

    monkeypatch.setattr(users, "explain", fake)
    monkeypatch.chdir(ROOT)
    arguments = ["explain", "--user", "7", "--item", "9", "--count", "3", "--format", format_]
    assert cli.main(arguments) == 0
    assert cli.main(["explain", "--user", "7", "--all", "--format", format_]) == 0
    assert asked == [users.Question("7", "9", None, 3), users.Question("7")]
    shown = capsys.readouterr().out
    assert shown.startswith("{" if format_ == "json" else "user 7, one: learned from 3 ratings")
