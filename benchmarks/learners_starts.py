"""What the first call of every learner takes in a fresh process, with and without a cache on disk.

Imports are not in it. Run: ``python benchmarks/learners_starts.py`` (some minutes: most of it is
compiling).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

STARTS = {
    "PRank": "PRank(5).fit(X, y)",
    "PRank averaged": "PRank(5, readout='averaged').fit(X, y)",
    "PRank voted, predict": "PRank(5, readout='voted').fit(X, y).predict(X)",
    "Widrow–Hoff": "WidrowHoff(5).fit(X, y)",
    "multiclass perceptron": "MulticlassPerceptron(5).fit(X, y)",
    "OAP": "OAP(5).fit(X, y)",
    "OAP voted, predict": "OAP(5, combine='voted').fit(X, y).predict(X)",
    "MPRank linear": "MPRank().fit(X, y)",
    "MPRank Gaussian": "MPRank(kernel='rbf').fit(X, y)",
    "MPRank Gaussian, predict": "MPRank(kernel='rbf').fit(X, y).predict(X)",
    "MPRank.path": "MPRank.path(X, y, [1.0, 10.0], kernel='linear+rbf')",
    "SVRank": "SVRank(10.0).fit(X, y)",
    "SVRank Gaussian": "SVRank(10.0, kernel='rbf').fit(X, y)",
    "RankSVM": "RankSVM().fit(X, y)",
    "RankBoost": "RankBoost().fit(X, y)",
}
START = """
import time
import numpy as np
from spark_rank.learners import *
rng = np.random.default_rng(0)
X, y = rng.normal(size=(100, 20)), rng.integers(1, 6, 100)
seconds = []
for _ in range(3):
    begin, spent = time.perf_counter(), time.process_time()
    {call}
    seconds += [time.perf_counter() - begin, time.process_time() - spent]
print(*seconds)
"""


def first_calls(call: str, cache: str) -> list[float]:
    """Return wall and CPU seconds of three calls in one fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", START.format(call=call)],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(number) for number in done.stdout.split()]


def main() -> None:
    print(f"load {os.getloadavg()[0]:.0f}; 100 × 20, first call in a fresh process")
    print("                            nothing cached        kernels cached      later")
    for name, call in STARTS.items():
        with tempfile.TemporaryDirectory() as cache:
            wall, spent, *_ = first_calls(call, cache)
            warm = [first_calls(call, cache) for _ in range(2)]
        again, again_spent, *later = map(min, zip(*warm, strict=True))
        print(
            f"  {name:25s} {wall:6.2f} s (CPU {spent:5.2f}) {again * 1e3:7.0f} ms"
            f" (CPU {again_spent * 1e3:4.0f}) {min(later[0], later[2]) * 1e3:8.2f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
