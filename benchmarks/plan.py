"""The plan held against what stages take.

``python benchmarks/plan.py run [setting …]`` runs the default pipeline, on the input that the
settings name, after a small one, and prints for every stage the CPU seconds that it took and those
that `spark_rank/planning/times.py` says, and the memory of JVM and workers beside that of
`spark_rank/planning/memory.py`. Settings are as for ``--set``.

``python benchmarks/plan.py check STORE RUN [setting …]`` holds the plan against a finished run of
one machine: the range of every stage and how long it took, and the memory that Spark saw.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from machine import Watch

from spark_rank.config import Config, load_config
from spark_rank.planning.memory import demand
from spark_rank.planning.offer import offered, this_machine
from spark_rank.planning.plan import layout_of, stage_time
from spark_rank.planning.rendering import span
from spark_rank.planning.sizes import Sizes, of_records
from spark_rank.planning.times import stage_work
from spark_rank.records.models import TrainFacts
from spark_rank.session.session import spark_session
from spark_rank.stages import pipeline
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run

DEFAULT = Path(__file__).parents[1] / "conf" / "default.yaml"
CORES = os.cpu_count() or 1
SESSION = {"spark.master": f"local[{CORES}]", "spark.driver.memory": "4g"}


def counted(run: Run) -> Sizes:
    found = of_records(run.records(), run.run_id)
    assert found is not None
    return found


def run_pipeline(config: Config, run: Run) -> dict[str, Watch]:
    watches = {}
    for stage in pipeline(config):
        with Watch() as watches[stage.name]:
            run_stage(stage, config, run.spark, run)
    return watches


def measure_run(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as store, spark_session("plan benchmark", SESSION) as spark:
        small = load_config(DEFAULT, [f"store={store}", "run_id=small", "synthesize.users=300"])
        run_pipeline(small, Run(spark, store, "small"))
        config = load_config(DEFAULT, [f"store={store}", "run_id=run", *words])
        run = Run(spark, store, "run")
        watches, sizes = run_pipeline(config, run), counted(run)
    print(f"{sizes.in_words()}; {CORES} cores")
    for stage, watch in watches.items():
        work, need = stage_work(stage, config, sizes), demand(stage, config, sizes, CORES, CORES)
        print(
            f"{stage:<12}{watch.seconds:8.1f} s, {watch.cpu_seconds:8.1f} CPU s, reckoned without "
            f"starting {sum(work):8.1f}; JVM {watch.jvm_gigabytes:.1f} GB, heap reckoned "
            f"{need.heap / 1e9:.1f}; worker {watch.worker_gigabytes:.2f} GB, reckoned "
            f"{need.worker / 1e9:.2f}",
            flush=True,
        )


def check(words: list[str]) -> None:
    store, run_id, *sets = words
    config = load_config(DEFAULT, [f"store={store}", f"run_id={run_id}", *sets])
    offer = offered(SESSION, this_machine())
    with spark_session("plan benchmark", SESSION) as spark:
        run = Run(spark, store, run_id)
        records, sizes, waves = run.records(), counted(run), len(run.facts(TrainFacts).waves)
        print(sizes.in_words())
        for stage in pipeline(config):
            if (record := records.get(stage.name)) is None:
                continue
            cores = int(record["spark"]["parallelism"])
            time = stage_time(
                stage.name, config, sizes, layout_of(config, cores, offer, waves), offer
            )
            need = demand(stage.name, config, sizes, cores, cores)
            path = run.path(f"run_metrics/{stage.name}.json")
            seen = json.loads(run.files.read_text(path)) if run.files.exists(path) else {}
            peaks = (seen.get("peak_memory_bytes") or {}).get("driver", {})
            python, heap = (peaks.get(name, 0) for name in ("python_processes", "jvm_heap"))
            print(
                f"{stage.name:<12} {span(time)}, measured {record['seconds']:.1f} s; Python "
                f"expected {cores * need.worker / 1e9:.1f} GB, seen {python / 1e9:.1f} GB so far; "
                f"heap {heap / 1e9:.1f} GB so far",
                flush=True,
            )


if __name__ == "__main__":
    {"run": measure_run, "check": check}[sys.argv[1]](sys.argv[2:])
