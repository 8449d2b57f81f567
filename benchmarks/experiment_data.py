"""`mprank_table2` on Netflix-shaped ratings of any number: time and memory, no accuracy.

Text is generated (`netflix_text`) as the combined files that the experiment looks for, and the
experiment is run on it as it is configured in ``conf/paper``, but for few reviewers. What is told
is how long each step took, and the most memory that the JVM, the driver's Python and a worker
had: a worker maps the ratings, which all of a node share, and has as its own what is private.
Generated ratings are drawn at random: MSD and the like mean nothing.

Run: ``python benchmarks/experiment_data.py [ratings] [folder] [reviewers]`` (1,000,000; a temporary
folder; 2 of each density to choose parameters on, and as many to test). A folder that holds the
generated text already is used again.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

from machine import Watch
from netflix_text import write_netflix_text

from spark_rank.config import load_config
from spark_rank.session.session import spark_session
from spark_rank.stages import experiment
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run

CONFIG = Path(__file__).parents[1] / "conf" / "paper" / "mprank_table2.yaml"


def write_text(data: Path, ratings: int) -> None:
    """Write combined files below a data folder, where the experiment looks for them."""
    folder = data / "netflix"
    if (folder / "_SUCCESS").exists():
        return
    # what a process of its own has needed for that is not counted as the driver's
    spawned = multiprocessing.get_context("spawn")
    writer = spawned.Process(target=write_netflix_text, args=(folder, ratings))
    writer.start()
    writer.join()
    for part in folder.glob("part-*.txt"):
        part.rename(folder / part.name.replace("part-", "combined_data_"))


def main(ratings: int, folder: str, reviewers: int) -> None:
    data = Path(folder, f"data-{ratings}")
    write_text(data, ratings)
    few = {"repeats": 1, "test_reviewers": reviewers, "held_out": reviewers}
    sets = [f"experiment.settings.{name}={value}" for name, value in few.items()]
    sets += [f"experiment.data={data}", f"store={folder}/store", f"run_id=run{os.getpid()}"]
    config = load_config(CONFIG, sets)
    with spark_session("experiment data benchmark", {"spark.master": "local[2]"}) as spark:
        run = Run(spark, config.store, config.run_id)
        with Watch() as watch:
            run_stage(experiment.STAGE, config, spark, run)
        facts = (run.record("experiment") or {})["facts"]
    profile = facts["profiles"][0]
    print(
        f"{profile['ratings']:,} ratings of {profile['users']:,} users, {profile['items']:,} items"
    )
    for step, seconds in facts["seconds_by_step"].items():
        print(f"  {step:<35}{seconds:8.1f} s")
    print(f"  {facts['units']} units; {watch.seconds:.0f} s, {watch.cpu_seconds:.0f} CPU s in all")
    print(
        f"  JVM {watch.jvm_gigabytes:.2f} GB, driver's Python {watch.own_gigabytes:.2f} GB, "
        f"largest worker {watch.worker_gigabytes:.2f} GB, {watch.worker_private_gigabytes:.2f} GB "
        "of them private"
    )


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    few_reviewers = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    if len(sys.argv) > 2:
        main(wanted, sys.argv[2], few_reviewers)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(wanted, temporary, few_reviewers)
