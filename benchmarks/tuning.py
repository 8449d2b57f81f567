"""What choosing from a grid costs against the grid's best point, from end to end.

``python benchmarks/tuning.py ratings.dat movielens-dat [user_share]`` runs the pipeline on the file
with half of every user's ratings held out: linear MPRank at every point of a grid of C alone, and
the grid by every selection, all on the default's item factors. With ``svrank`` as a fourth argument
it is SVRank, which has no leave-pair-out. A table in Markdown shows the held-out MSD of each and
how far above the best point it is, what tuning itself measured, and the seconds of the stages.
A share below 1 takes so many of the users, by hash.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rank.config import load_config
from spark_rank.session.session import spark_session
from spark_rank.stages import pipeline
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run

ROOT = Path(__file__).parents[1]
STAGES = ("ingest", "prepare", "features", "tune", "train", "evaluate")
GRIDS = {"mprank": (0.1, 1, 10, 100), "svrank": (1, 10, 100, 1000)}
PARAMS = {"mprank": "ridge: fixed, growth: 0.0067", "svrank": "epsilon: 0.5"}
SELECTIONS = {"mprank": ("sample", "leave_pair_out", "k_fold"), "svrank": ("sample", "k_fold")}


def learners(learner: str) -> str:
    """Return the setting: every point of the grid alone, then the grid by every selection."""
    params, grid = PARAMS[learner], list(GRIDS[learner])
    points = [f"{{name: C {C}, learner: {learner}, params: {{C: {C}, {params}}}}}" for C in grid]
    grids = [
        f"{{name: {selection}, learner: {learner}, params: {{{params}}}, "
        f"grid: {{C: {grid}}}, selection: {selection}}}"
        for selection in SELECTIONS[learner]
    ]
    return ", ".join(points + grids)


def measured(spark: SparkSession, sets: list[str]) -> tuple[Run, dict[str, float]]:
    config = load_config(str(ROOT / "conf/default.yaml"), sets)
    run = Run(spark, config.store, config.run_id)
    seconds = {
        stage.name: float(run_stage(stage, config, spark, run)["seconds"])
        for stage in pipeline(config)
        if stage.name in STAGES
    }
    return run, seconds


def print_table(run: Run, learner: str) -> None:
    facts = (run.record("evaluate") or {})["facts"]
    means = {name: values["msd"] for name, values in facts["means"].items()}
    least = min(means[f"C {C}"] for C in GRIDS[learner])
    tuning = (run.record("tune") or {})["facts"]
    print("| | held-out MSD | above the best point | chosen | in tuning | the same held out |")
    print("|---|---|---|---|---|---|")
    for name in (*(f"C {C}" for C in GRIDS[learner]), *SELECTIONS[learner]):
        cells = [f"{means[name]:.4f}", f"{100.0 * (means[name] / least - 1.0):+.2f} %"]
        found = facts["tuned"].get(name)
        if found is not None:
            prior = tuning["priors"].get(name)
            own = "" if prior is None else f", own with {prior['ratings']:g}"
            cells += [f"C {tuning['chosen'][name]['C']}{own}", f"{found['tuning']:.4f}",
                      f"{found['held_out']:.4f}"]  # fmt: skip
        print(f"| {name} | " + " | ".join(cells) + " |" * (1 + 3 * (found is None)))
    for text in tuning["edges"]:
        print(text)


def main() -> None:
    path, kind = sys.argv[1:3]
    share = sys.argv[3] if len(sys.argv) > 3 else "1"
    learner = sys.argv[4] if len(sys.argv) > 4 else "mprank"
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4",
                "spark.driver.memory": "3g"}  # fmt: skip
    with (
        tempfile.TemporaryDirectory(prefix="spark-rank-") as store,
        spark_session("tuning", settings) as spark,
    ):
        sets = [f"store={store}", "run_id=tuning", f"input.path={path}", f"input.format={kind}",
                f"prepare.user_share={share}", f"train.learners=[{learners(learner)}]"]  # fmt: skip
        run, seconds = measured(spark, sets)
        users = (run.record("prepare") or {})["tables"]["blocks"]
        print(f"{Path(path).name}: {learner}, {users:,} users")
        print_table(run, learner)
        print(", ".join(f"{name} {value:.1f} s" for name, value in seconds.items()))


if __name__ == "__main__":
    main()
