"""One model over all queries of a LETOR set, on the folds it comes with: ``letor.py Fold1 ...``.

A fold is a folder with ``train.txt`` and ``test.txt``, as in MQ2007 and MQ2008: lines
``grade qid:7 1:0.05 2:0.5 ... # docid``. Prints the misranking and NDCG@10 of the test queries,
means over queries with 95 % intervals.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from spark_rank.learners import MPRank, RankBoost, RankSVM, SVRank
from spark_rank.metrics import ndcg, pairwise_misranking, t_interval

LEARNERS: dict[str, Any] = {
    "MPRank": lambda: MPRank(100.0),
    "SVRank": lambda: SVRank(100.0),
    "RankSVM": lambda: RankSVM(100.0, loss="mean"),
    "RankBoost": lambda: RankBoost(100),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folds", nargs="+", type=Path, help="folders with train.txt and test.txt")
    found: dict[tuple[str, str], list[float]] = {}
    for fold in parser.parse_args().folds:
        X, y, qid = read(fold / "train.txt")
        test = read(fold / "test.txt")
        for name, make in LEARNERS.items():
            for way, given in (("inside queries", {"qid": qid}), ("all pairs", {})):
                started = time.perf_counter()
                model = make().fit(X, y, **given)
                seconds = time.perf_counter() - started
                print(f"{fold}: {name}, {way}: {seconds:.1f} s", file=sys.stderr)
                for metric, values in measured(model, *test).items():
                    found.setdefault((f"{name}, {way}", metric), []).extend(values)
    for (name, metric), values in found.items():
        interval = t_interval(np.array(values), 0.95)
        reach = "" if interval is None else f" ± {(interval.high - interval.low) / 2:.4f}"
        print(f"{name:28} {metric:10} {np.mean(values):.4f}{reach} ({len(values)} queries)")


def read(path: Path) -> tuple[Any, Any, Any]:
    """Return features, grades and queries of a file."""
    try:
        from sklearn.datasets import load_svmlight_file
    except ImportError:
        sys.exit("scikit-learn reads these files: install it first")
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    return X.toarray(), y, qid


def measured(model: Any, X: Any, y: Any, qid: Any) -> dict[str, list[float]]:
    """Return the metrics of each query; those without different grades have no misranking."""
    scores = model.decision_function(X)
    found: dict[str, list[float]] = {"misranking": [], "NDCG@10": []}
    for query in np.unique(qid):
        rows = qid == query
        wrong = pairwise_misranking(scores[rows], y[rows])
        gain = ndcg(scores[rows], y[rows], 10)
        found["misranking"] += [] if wrong is None else [wrong]
        found["NDCG@10"] += [] if gain is None else [gain]
    return found


if __name__ == "__main__":
    main()
