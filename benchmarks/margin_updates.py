"""ROMMA and passive-aggressive updates beside the perceptron's, alone and as members of OAP-BPM.

``margin_updates.py [--trials 20] [--rounds 50000] [ratings.dat]`` runs units of `oap_synthetic`,
and of `oap_ratings` if MovieLens-1M's file is given (``user::item::rating``, also gzipped). Prints
test rank losses with 95 % intervals over trials, and the paired difference to the perceptron in the
same place.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from spark_rank.experiments import oap_collaborative, oap_synthetic
from spark_rank.experiments.frame import Result, Study
from spark_rank.experiments.perceptrons import TEST_LOSS
from spark_rank.experiments.rating_set import RatingSet
from spark_rank.metrics import t_interval

TAU = 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ratings", nargs="?", type=Path, help="MovieLens-1M's ratings")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=50_000)
    given = parser.parse_args()
    few = {"trials": given.trials, "taus": [TAU], "etas": [0.1]}
    settings = oap_synthetic.OAPSynthetic(rounds=given.rounds, **few)
    study = Study("oap_synthetic", settings, 0)
    show(
        f"oap_synthetic, {given.trials} × {given.rounds:,}",
        (oap_synthetic.run_unit(study, unit) for unit in oap_synthetic.units(study)),
    )
    if given.ratings is not None:
        data = {"ratings": movielens(given.ratings)}
        study = Study("oap_ratings", oap_collaborative.OAPRatings(**few), 0, data)
        show(
            f"oap_ratings, {given.trials} trials",
            (
                oap_collaborative.run_ratings(study, unit)
                for unit in oap_collaborative.rating_units(study)
            ),
        )


def movielens(path: Path) -> RatingSet:
    """Read ratings by user and item."""
    read = gzip.open if path.suffix == ".gz" else open
    with read(path, "rt", encoding="latin-1") as lines:
        rows = [line.split("::")[:3] for line in lines]
    users, items, values = zip(*rows, strict=True)
    return RatingSet.from_columns("MovieLens-1M", users, items, [float(v) for v in values])


def show(title: str, units: Iterable[list[Result]]) -> None:
    """Print the table of an experiment."""
    losses: dict[str, list[float]] = {}
    for results in units:
        for result in results:
            if result.metric == TEST_LOSS and result.value is not None:
                losses.setdefault(result.method, []).append(result.value)
    print(f"{title}\n| method | test rank loss | beyond the perceptron |\n|---|---|---|")
    for method, values in losses.items():
        name, _, update = method.partition(", ")
        peer = losses[name] if update else None
        difference = "" if peer is None else mean(np.subtract(values, peer))
        print(f"| {method} | {mean(np.array(values))} | {difference} |")
    print(flush=True)


def mean(values: np.ndarray) -> str:
    """Return the mean with half of its interval."""
    interval = t_interval(values, 0.95)
    reach = "" if interval is None else f" ± {(interval.high - interval.low) / 2:.3f}"
    return f"{values.mean():.3f}{reach}"


if __name__ == "__main__":
    main()
