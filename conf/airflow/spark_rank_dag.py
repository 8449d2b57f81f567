"""Every night one run of spark_rank: a task per stage, each a spark-submit command.

Copy or link this file into Airflow's DAG folder. What it needs it takes from the environment of
the workers: SPARK_RANK_HOME (where `jobs/` is), SPARK_RANK_CONFIG (a configuration file) and
SPARK_SUBMIT (the command with its options, such as `spark-submit --master yarn`).

The run id is the logical date, so that a task that is cleared and run again goes on with the same
run: what is finished is not done twice, what was broken off is taken up.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

HOME = os.environ.get("SPARK_RANK_HOME", "/opt/spark_rank")
CONFIG = os.environ.get("SPARK_RANK_CONFIG", f"{HOME}/conf/default.yaml")
SPARK_SUBMIT = os.environ.get("SPARK_SUBMIT", "spark-submit")
# add tune before train where a learner has a grid for all users
STAGES = (
    "ingest",
    "prepare",
    "features",
    "train",
    "evaluate",
    "rank",
    "aggregate",
    "recommend",
    "report",
)
# a run started by hand may have no logical date
RUN_ID = "{{ (logical_date or dag_run.run_after) | ds }}"

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
    before = None
    for stage in STAGES:
        task = BashOperator(
            task_id=stage,
            bash_command=(
                f"exec {SPARK_SUBMIT} jobs/{stage}.py --config {CONFIG} "
                f"--set run_id={RUN_ID} --log-format json"
            ),
            cwd=HOME,
        )
        if before is not None:
            before >> task
        before = task
