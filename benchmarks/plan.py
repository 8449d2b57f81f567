"""The plan held against what stages take.

``python benchmarks/plan.py stages [USERS] [setting …]`` runs the default pipeline on generated
text of USERS / 10 and of USERS users (20,000) in one session, and prints for every stage seconds
and CPU seconds of both, and the CPU seconds that the larger run took more over those that
`spark_rank/planning/rates.py` says. Settings are as for ``--set``.

``python benchmarks/plan.py run [setting …]`` runs the default pipeline, on the input that the
settings name, after a small one, and prints for every stage its CPU seconds over those that the
plan reckons with: cores times the time of a stage.

``python benchmarks/plan.py check STORE RUN [setting …]`` holds the plan against a finished run of
one machine: expected and measured seconds of every stage, and the memory that Spark saw.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from machine import Watch

from spark_rank.config import Config, load_config
from spark_rank.planning.memory import stage_memory
from spark_rank.planning.plan import Layout, expected_seconds
from spark_rank.planning.rates import starting
from spark_rank.planning.sizes import Sizes, of_records
from spark_rank.planning.work import stage_work
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


def measure_stages(words: list[str]) -> None:
    largest = int(words[0]) if words else 20_000
    with tempfile.TemporaryDirectory() as store, spark_session("plan benchmark", SESSION) as spark:
        found = []
        for users in (200, largest // 10, largest):
            sets = [f"store={store}", f"run_id=users-{users}", f"synthesize.users={users}",
                    "synthesize.format=csv"]  # fmt: skip
            config = load_config(DEFAULT, [*sets, *words[1:]])
            run = Run(spark, store, config.run_id)
            found.append((run_pipeline(config, run), counted(run)))
        (few, small), (many, large) = found[1:]
        print(f"{small.in_words()}; {large.in_words()}; {CORES} cores")
        print(f"{'stage':<12}{'s':>8}{'s':>8}{'CPU s':>8}{'CPU s':>8}{'over table':>12}")
        for stage, watch in many.items():
            works = [stage_work(stage, config, sizes) for sizes in (small, large)]
            least, most = (work.executors + work.driver for work in works)
            cpu = watch.cpu_seconds - few[stage].cpu_seconds
            over = f"{cpu / (most - least):.2f}" if most > least else "-"
            print(
                f"{stage:<12}{few[stage].seconds:8.1f}{watch.seconds:8.1f}"
                f"{few[stage].cpu_seconds:8.1f}{watch.cpu_seconds:8.1f}{over:>12}"
                f"   JVM {watch.jvm_gigabytes:.1f} GB, worker {watch.worker_gigabytes:.2f} GB",
                flush=True,
            )


def measure_run(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as store, spark_session("plan benchmark", SESSION) as spark:
        small = load_config(DEFAULT, [f"store={store}", "run_id=small", "synthesize.users=300"])
        run_pipeline(small, Run(spark, store, "small"))
        config = load_config(DEFAULT, [f"store={store}", "run_id=run", *words])
        run = Run(spark, store, "run")
        watches, sizes = run_pipeline(config, run), counted(run)
    print(f"{sizes.in_words()}; {CORES} cores")
    reckoned = {}
    for stage, watch in watches.items():
        work = stage_work(stage, config, sizes)
        reckoned[stage] = CORES * starting(stage) + work.executors + work.driver
        cpu, own = watch.cpu_seconds, reckoned[stage]
        print(f"{stage:<12}{cpu:8.1f} CPU s, reckoned {own:8.1f}: {cpu / own:.2f}")
    over = sum(watch.cpu_seconds for watch in watches.values()) / sum(reckoned.values())
    print(f"all of them: {over:.2f}")


def check(words: list[str]) -> None:
    store, run_id, *sets = words
    config = load_config(DEFAULT, [f"store={store}", f"run_id={run_id}", *sets])
    with spark_session("plan benchmark", SESSION) as spark:
        run = Run(spark, store, run_id)
        records, sizes = run.records(), counted(run)
        print(sizes.in_words())
        for stage in pipeline(config):
            if (record := records.get(stage.name)) is None:
                continue
            cores = int(record["spark"]["parallelism"])
            waves = len(record["facts"].get("waves", [])) or 1
            layout = Layout(cores, 1, cores, config.prepare.buckets, waves)
            expected = expected_seconds(stage.name, config, sizes, layout, cores)
            memory = stage_memory(stage.name, config, sizes)
            own = cores * memory.worker
            path = run.path(f"run_metrics/{stage.name}.json")
            seen = json.loads(run.files.read_text(path)) if run.files.exists(path) else {}
            peaks = (seen.get("peak_memory_bytes") or {}).get("driver", {})
            python, heap = (peaks.get(name, 0) for name in ("python_processes", "jvm_heap"))
            print(
                f"{stage.name:<12} expected {expected:7.1f} s, measured {record['seconds']:7.1f} s:"
                f" {record['seconds'] / expected:5.2f}; Python expected {own / 1e9:4.1f} GB, seen "
                f"{python / 1e9:4.1f} GB so far; heap {heap / 1e9:4.1f} GB so far",
                flush=True,
            )


if __name__ == "__main__":
    {"stages": measure_stages, "run": measure_run, "check": check}[sys.argv[1]](sys.argv[2:])
