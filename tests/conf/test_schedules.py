"""The examples of schedules run what they promise: Airflow's DAG, cron's line, systemd's units."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_rank import cli
from spark_rank.help.commands import STAGES
from spark_rank.session.java import find_java

ROOT = Path(__file__).parents[2]
DAG = ROOT / "conf" / "airflow" / "spark_rank_dag.py"
CRON = ROOT / "conf" / "cron.example"
NIGHTLY = ROOT / "conf" / "nightly.sh"
SERVICE = ROOT / "conf" / "systemd" / "spark-rank.service"
# what the DAG puts for the run's id
RUN_ID = "{{ (logical_date or dag_run.run_after) | ds }}"
# the Python of an environment with Airflow; `make airflow-test` makes one
AIRFLOW = os.environ.get("AIRFLOW_PYTHON", "")

Understood = Callable[[list[str]], argparse.Namespace]

DRIVER = """
import json, sys
from datetime import datetime, timedelta, timezone
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
dag = bag.dags["spark_rank"]
if sys.argv[2] == "show":
    print(json.dumps([[t.task_id, t.bash_command, sorted(t.upstream_task_ids)]
                      for t in dag.topological_sort()]))
else:
    for task in dag.tasks:
        task.retry_delay = timedelta(0)
    ended = dag.test(logical_date=datetime(2026, 3, 1, tzinfo=timezone.utc))
    print("state", ended.state)
"""


def airflow(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    home.mkdir(exist_ok=True)
    own = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
           "AIRFLOW__CORE__DAGS_FOLDER": str(DAG.parent), "PYTHONPATH": ""}  # fmt: skip
    return subprocess.run(
        [AIRFLOW, *arguments], env={**os.environ, **own, **more}, cwd=home, capture_output=True,
        text=True, timeout=900, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return Airflow's directory with a database, or skip where there is no Airflow."""
    if not AIRFLOW:
        pytest.skip("Airflow is not installed: `make airflow-test` installs it and runs this test")
    folder = tmp_path_factory.mktemp("airflow")
    (folder / "driver.py").write_text(DRIVER)
    made = airflow(folder, "-m", "airflow", "db", "migrate")
    assert made.returncode == 0, made.stderr[-2000:]
    return folder


@pytest.fixture
def understood(monkeypatch: pytest.MonkeyPatch) -> Understood:
    """Return what the command line makes of arguments."""

    def parse(arguments: list[str]) -> argparse.Namespace:
        found: list[argparse.Namespace] = []
        monkeypatch.setattr(cli, "_dispatch", lambda options: found.append(options) or 0)
        assert cli.main(arguments) == 0
        return found[0]

    return parse


@pytest.mark.airflow
def test_the_dag_loads_and_chains_the_stages(home: Path, understood: Understood) -> None:
    shown = airflow(home, "driver.py", str(DAG.parent), "show")
    assert shown.returncode == 0, shown.stderr[-2000:]
    tasks = json.loads(shown.stdout.splitlines()[-1])
    order = [task for task, _, _ in tasks]
    stages = [task for task in order if task in STAGES]
    assert stages == [stage for stage in STAGES if stage in order]
    assert order == [*stages, "verify", "promote", "prune", "prune_event_logs"]
    assert [upstream for _, _, upstream in tasks] == [[], *[[task] for task in order[:-1]]]
    for task, command, _ in tasks[: len(stages)]:
        assert f" jobs/{task}.py --set run_id={RUN_ID} " in command
    for _, command, _ in tasks[len(stages) :]:
        arguments = command.replace(RUN_ID, "2026-03-01").split()
        assert arguments[:2] == ["exec", "spark-rank"]
        assert understood(arguments[2:]).log_format == "json"


@pytest.mark.airflow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("code", "attempts"), [(137, 2), (2, 1), (3, 1), (4, 1)])
def test_what_fails_for_good_is_not_tried_again(
    home: Path, tmp_path: Path, code: int, attempts: int
) -> None:
    """With a stand-in for spark-submit, whose first command ends so."""
    submit = tmp_path / "submit"
    submit.write_text(
        f'#!/bin/sh\necho "$1" >> {tmp_path}/asked\n[ "$1" != jobs/ingest.py ] || exit {code}\n'
    )
    submit.chmod(0o755)
    settings = {"SPARK_RANK_HOME": str(tmp_path), "SPARK_SUBMIT": str(submit)}
    done = airflow(home, "driver.py", str(DAG.parent), "run", **settings)
    asked = (tmp_path / "asked").read_text().split()
    assert asked.count("jobs/ingest.py") == attempts, done.stdout[-3000:] + done.stderr[-3000:]
    # nothing is built on what has failed
    assert {*asked} == {"jobs/ingest.py"}


@pytest.mark.airflow
def test_without_a_configuration_of_ones_own_nothing_is_generated(home: Path) -> None:
    """The packaged configurations name no ratings, and the DAG makes none: it cannot run them."""
    shown = airflow(home, "driver.py", str(DAG.parent), "show")
    (named,) = {*re.findall(r"--config (\S+)", shown.stdout)}
    assert Path(named).name == "nightly.yaml"
    assert not (ROOT / "conf" / "nightly.yaml").exists()


@pytest.mark.airflow
@pytest.mark.timeout(1200)
def test_the_dag_runs_and_names_the_run_after_the_logical_date(home: Path, tmp_path: Path) -> None:
    ratings = [f"u{u},i{i},{(u * 7 + i * 3) % 5 + 1}" for u in range(12) for i in range(15)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *ratings]) + "\n")
    config = tmp_path / "nightly.yaml"
    config.write_text(
        f"store: {tmp_path / 'store'}\ninput: {{path: {tmp_path / 'ratings.csv'}, format: csv}}\n"
        "features: {kind: panel, panel_size: 3}\n"
    )
    submit = f"{Path(sys.executable).parent / 'spark-submit'} --master local[1]"
    program = f"{sys.executable} -m spark_rank"
    settings = {
        "SPARK_RANK_HOME": str(ROOT), "SPARK_RANK_CONFIG": str(config), "SPARK_SUBMIT": submit,
        "SPARK_RANK": program,
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT),
        **find_java().environment(),
    }  # fmt: skip
    # Airflow runs what its database knows
    known = airflow(home, "-m", "airflow", "dags", "reserialize", **settings)
    assert known.returncode == 0, known.stderr[-2000:]
    done = airflow(home, "driver.py", str(DAG.parent), "run", **settings)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.splitlines()[-1].lower().endswith("success"), done.stdout[-3000:]
    manifest = tmp_path / "store" / "runs" / "run_id=2026-03-01" / "manifest"
    assert (tmp_path / "store" / "runs" / "run_id=2026-03-01" / "report" / "report.html").exists()
    finished = {path.stem for path in manifest.glob("*.json")}
    assert {"ingest", "train", "evaluate", "recommend", "report"} <= finished
    pointer = json.loads((tmp_path / "store" / "latest.json").read_text())
    assert Path(pointer["path"]).name == "run_id=2026-03-01"


def test_the_dag_names_stages_in_their_order() -> None:
    """What can be seen of it without Airflow."""
    text = DAG.read_text()
    named = re.findall(r'^    "(\w+)",$', text, re.MULTILINE)
    assert named == [stage for stage in STAGES if stage in named]
    assert set(STAGES) - set(named) == {
        "synthesize", "tune", "ensemble", "predictions", "theorems", "experiment", "pipeline",
    }  # fmt: skip
    compile(text, str(DAG), "exec")


def commands() -> list[str]:
    cron = [line for line in CRON.read_text().splitlines() if line.startswith("0 3")]
    service = re.findall(r"^ExecStart=(.*)$", SERVICE.read_text(), re.MULTILINE)
    assert len(cron) == len(service) == 1
    # cron takes a bare % for the end of the line, systemd for a specifier
    assert "%" not in cron[0] + service[0]
    return [cron[0].split(None, 5)[5], service[0]]


class Machine:
    """A folder in place of /opt/spark_rank, with a program that writes down what it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "conf").mkdir()
        shutil.copy(NIGHTLY, folder / "conf")
        program = folder / ".venv" / "bin" / "spark-rank"
        program.parent.mkdir(parents=True)
        program.write_text(
            f'#!/bin/sh\necho "$*" >> {folder}/asked\ncase "$*" in $FAILING*) exit 3;; esac\n'
        )
        program.chmod(0o755)

    def does(self, command: str, failing: str = "nothing") -> subprocess.CompletedProcess[str]:
        """Run the very line, with the places of this machine."""
        for place in ("/opt/spark_rank", "/run/lock", "/var/log"):
            command = command.replace(place, str(self.folder))
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, check=False,
            env={**os.environ, "FAILING": failing},
        )  # fmt: skip

    def asked(self) -> list[list[str]]:
        return [line.split() for line in (self.folder / "asked").read_text().splitlines()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("number", [0, 1])
def test_cron_and_systemd_make_a_run_check_it_point_to_it_and_clean_up(
    number: int, machine: Machine, understood: Understood
) -> None:
    ended = machine.does(commands()[number])
    assert (ended.returncode, ended.stdout) == (0, "")
    asked = [understood(arguments) for arguments in machine.asked()]
    assert {(options.config, options.log_format) for options in asked} == {
        ("conf/nightly.yaml", "json")
    }
    made, checked, promoted, pruned, cleaned = asked
    run_id, previous = made.sets
    assert previous == "previous=latest"
    day = run_id.removeprefix("run_id=")
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", day)
    assert (made.command, checked.action, checked.run) == ("pipeline", "verify", day)
    assert (promoted.action, promoted.run) == ("promote", day)
    assert (pruned.action, pruned.keep, pruned.older_than, pruned.yes) == ("prune", 14, 30, True)
    assert (cleaned.command, cleaned.delete_older_than) == ("history", 30)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(("failing", "asked"), [("pipeline", 1), ("runs verify", 2)])
def test_what_failed_is_neither_pointed_to_nor_a_reason_to_delete(
    number: int, failing: str, asked: int, machine: Machine
) -> None:
    ended = machine.does(commands()[number], failing)
    assert len(machine.asked()) == asked
    if number == 0:
        assert ended.stdout == "spark_rank ended with 3\n"  # cron sends it by mail
    else:
        assert ended.returncode == 3


def test_the_units_are_valid() -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not on this machine")
    units = sorted(map(str, SERVICE.parent.glob("spark-rank.*")))
    found = subprocess.run(
        [verify, "verify", *units], capture_output=True, text=True, timeout=60, check=False
    )
    own = [line for line in found.stderr.splitlines() if "spark-rank" in line]
    assert own == []
