"""What landmarks cost in accuracy, and save in time, for exactly the users that they are meant for.

``python benchmarks/landmarks.py ratings.dat`` (MovieLens's format) learns factors and the kernel
learner of ``conf/kernel.yaml`` for every user with more than ``MORE_THAN`` training ratings:
exactly, and on fewer and fewer landmarks, as a lower ``train.max_kernel_ratings`` would have it.
Halves are random. Last comes one table, in Markdown: means over these users, how far each row is
from the exact models in percent, with 95 % intervals of the paired differences, and CPU seconds.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from accuracy import ROOT, Values, difference, measure
from threadpoolctl import threadpool_limits

from spark_rank.config import load_config
from spark_rank.experiments.frame import Study
from spark_rank.experiments.peers import Split
from spark_rank.experiments.rating_set import RatingSet
from spark_rank.experiments.shared_halves import Task, factor_features, split_of
from spark_rank.stages.training import specs_of
from spark_rank.users.fitting import Limits, Sample, fit
from spark_rank.users.specs import LearnerSpec

LEARNER = "mprank"
MORE_THAN = 300
LANDMARKS = (300, 200, 100, 50)
EXACT = 10**6


def heavy_tasks(path: str) -> list[Task]:
    """Return the halves of the users with many training ratings, with their features."""
    settings = load_config(str(ROOT / "conf/kernel.yaml"), []).features
    columns = pd.read_csv(path, sep="::", header=None, engine="python", dtype=str)
    ratings = RatingSet.from_columns(
        Path(path).name, columns[0].to_numpy(str), columns[1].to_numpy(str),
        columns[2].to_numpy(np.float32),
    )  # fmt: skip
    split = split_of(Study("modern", None, 0, {"ratings": ratings}))
    features = factor_features(ratings, 0, settings.rank, settings.rounds)
    heavy = np.flatnonzero(np.diff(split.ends) > MORE_THAN)
    return [features.task(split, int(user)) for user in heavy]


def learned(tasks: list[Task], spec: LearnerSpec, limits: Limits) -> tuple[Values, float]:
    """Return the users' metrics and the CPU seconds of learning them."""
    started = time.process_time()
    with threadpool_limits(1):  # as in a Spark worker
        scores = [
            fit(spec, None, Sample(task.X, task.y, task.offset), limits).scores(
                task.test_features, task.test_offset
            )
            for task in tasks
        ]
    seconds = time.process_time() - started
    held_out = [task.test_y for task in tasks]
    nothing, ends = np.zeros(len(tasks) + 1, int), np.cumsum([0, *map(len, held_out)])
    empty = np.empty(0)
    split = Split(empty, empty, nothing, empty, np.concatenate(held_out), ends, 0)
    return measure(split, np.concatenate(scores)), seconds


def main() -> None:
    (path,) = sys.argv[1:2]
    training = load_config(str(ROOT / "conf/kernel.yaml"), []).train
    (spec,) = [spec for spec in specs_of(training) if spec.label == LEARNER]
    tasks = heavy_tasks(path)
    sizes = [len(task.y) for task in tasks]
    print(f"{Path(path).name}: {len(tasks)} users with {min(sizes)} to {max(sizes)} to learn from")
    print("| | MSD | M1D | misranking | MSD % | M1D % | misranking % | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    exact: Values = {}
    for landmarks in (EXACT, *LANDMARKS):
        most = MORE_THAN if landmarks < EXACT else EXACT
        limits = Limits(None, max_kernel_ratings=most, landmarks=landmarks, folds=5)
        values, seconds = learned(tasks, spec, limits)
        exact = exact or values
        cells = [f"{np.nanmean(found):.4f}" for found in values.values()]
        cells += [difference(values[name], exact[name]) if values is not exact else ""
                  for name in values]  # fmt: skip
        name = "exact" if landmarks == EXACT else f"{landmarks} landmarks"
        print(f"| {name} | " + " | ".join(cells) + f" | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
