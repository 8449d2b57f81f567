"""Every night one run of spark_rank: a task per stage, each a spark-submit command.

Copy or link this file into Airflow's DAG folder. What it needs it takes from the environment of
the workers: SPARK_RANK_HOME (where `jobs/` is), SPARK_RANK_CONFIG (a configuration file of your
own, whose `input.path` names ratings), SPARK_SUBMIT (the command with its options, such as
`spark-submit --master yarn`) and SPARK_RANK (the program `spark-rank`, which the packed environment
has in `bin`).

The run id is the logical date, so that a task that is cleared and run again goes on with the same
run: what is finished is not done twice, what was broken off is taken up. A crash is tried again by
itself; a wrong configuration, bad input and too many failed users wait until somebody looks.
Consumers are pointed to the run when it has been read back and found whole.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from airflow.exceptions import AirflowFailException
from airflow.providers.standard.hooks.subprocess import SubprocessHook, SubprocessResult
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

HOME = os.environ.get("SPARK_RANK_HOME", "/opt/spark_rank")
CONFIG = os.environ.get("SPARK_RANK_CONFIG", f"{HOME}/conf/nightly.yaml")
SPARK_SUBMIT = os.environ.get("SPARK_SUBMIT", "spark-submit")
SPARK_RANK = os.environ.get("SPARK_RANK", "spark-rank")
# a run started by hand may have no logical date
RUN_ID = "{{ (logical_date or dag_run.run_after) | ds }}"
# a run goes on from the one that consumers have
SETTINGS = f"run_id={RUN_ID} previous=latest"
# add tune before train where a learner has a grid
STAGES = (
    "ingest",
    "prepare",
    "features",
    "train",
    "evaluate",
    "rank",
    "aggregate",
    "refit",
    "recommend",
    "report",
)
# what follows when all of them are done: consumers are pointed to a run that is whole
AFTERWARDS = {
    "verify": f"runs verify --run {RUN_ID}",
    "promote": f"runs promote {RUN_ID}",
    "prune": "runs prune --keep 14 --older-than 30 --yes",
    "prune_event_logs": "history --delete-older-than 30",
}
# exit codes after which the same command fails again: configuration, input, failed users
FINAL = (2, 3, 4)


class FinalFailures(SubprocessHook):
    """Runs a command; some of its exit codes are the end, whatever `retries` says."""

    def run_command(self, *arguments: Any, **named: Any) -> SubprocessResult:
        """Run it, and raise what Airflow does not try again after one of these codes."""
        result = super().run_command(*arguments, **named)
        if result.exit_code in FINAL:
            raise AirflowFailException(
                f"exit code {result.exit_code}: another attempt helps nobody, see the log"
            )
        return result


class Command(BashOperator):
    """A command of spark_rank, tried again only where that can help."""

    @cached_property
    def subprocess_hook(self) -> FinalFailures:
        """Return what runs the command."""
        return FinalFailures()


with DAG(
    dag_id="spark_rank",
    description="One ranking model per user, every night",
    schedule="0 3 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    # two commands must not work on one store's newest run at a time
    max_active_runs=1,
    default_args={
        "retries": 1,
        "retry_delay": timedelta(minutes=5),
        "execution_timeout": timedelta(hours=6),
    },
    tags=["spark_rank"],
) as dag:
    commands = {stage: f"{SPARK_SUBMIT} jobs/{stage}.py --set {SETTINGS}" for stage in STAGES}
    commands |= {name: f"{SPARK_RANK} {command}" for name, command in AFTERWARDS.items()}
    before = None
    for name, command in commands.items():
        task = Command(
            task_id=name,
            bash_command=f"exec {command} --config {CONFIG} --log-format json",
            cwd=HOME,
        )
        if before is not None:
            before >> task
        before = task
