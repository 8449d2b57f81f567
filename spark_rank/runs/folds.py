"""Several runs of one configuration on different folds: means and paired differences over folds."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.metrics import compare_paired, t_interval
from spark_rank.runs.comparison import means_of, settings_of
from spark_rank.runs.rendering import columns
from spark_rank.session.files import store_files
from spark_rank.store.catalogue import Catalogue, Records
from spark_rank.users.measuring import HIGHER_IS_BETTER

Row = dict[str, Any]
FloatArray = NDArray[np.float64]
# what the text shows; JSON has all metrics
SHOWN = ("rmse over all ratings", "mae over all ratings", "msd", "misranking")
# settings in which the runs of different folds differ; paths are those of given splits
_OF_A_FOLD = (
    "prepare: fold", "ingest: path", "ingest: test_path", "ingest: validation_path",
    "ingest: dictionaries_from",
)  # fmt: skip


def show_folds(options: argparse.Namespace, config: Config) -> None:
    """Print the statistics of the named runs."""
    with store_files("spark_rank folds", config.store, config.spark) as files:
        catalogue = Catalogue(files, config.store)
        records = {name: catalogue.run(name).records() for name in options.runs}
    found = over_folds(records, config.evaluate.confidence)
    text = json.dumps(found, indent=2) if options.format == "json" else "\n".join(_lines(found))
    print(text, flush=True)


def over_folds(records: Mapping[str, Records], confidence: float = 0.95) -> Row:
    """Return, over the folds, the distribution of every mean, and the learners in pairs.

    `records` has the records of each fold's run by its id.
    """
    _check(records)
    by_run = [means_of(name, own) for name, own in records.items()]
    found: dict[str, dict[str, FloatArray]] = {}
    for name in by_run[0]:
        learner, _, metric = name.partition(": ")
        values = [means.get(name, (None, None, None))[0] for means in by_run]
        if None not in values:
            found.setdefault(metric, {})[learner] = np.array(values, dtype=np.float64)
    return {
        "runs": list(records),
        "confidence": confidence,
        "means": [_mean(metric, learner, values, confidence)
                  for metric, of_learners in found.items()
                  for learner, values in of_learners.items()],
        "pairs": [_pair(metric, pair, of_learners, confidence)
                  for metric, of_learners in found.items()
                  for pair in combinations(of_learners, 2)],
    }  # fmt: skip


def paired_t_test(differences: FloatArray) -> float | None:
    """Return the two-sided p-value of the paired t test; None if all differences are equal."""
    n = len(differences)
    spread = float(differences.std(ddof=1))
    if spread == 0.0:
        return None
    t = float(differences.mean()) / (spread / math.sqrt(n))
    return float(2.0 * stdtr(n - 1, -abs(t)))


def _check(records: Mapping[str, Records]) -> None:
    """Raise `ConfigError` unless the runs are different folds of one configuration."""
    if len(records) < 2:
        raise ConfigError("folds: name two runs or more, each of another fold")
    missing = [name for name, own in records.items() if "evaluate" not in own]
    if missing:
        raise ConfigError(
            f"folds: run {missing[0]!r} has not finished 'evaluate': complete it with "
            "`spark-rank pipeline` and its configuration"
        )
    (first, of_first), *others = records.items()
    seen: dict[str, str] = {}
    for name, own in records.items():
        fold = json.dumps(_fold(own), sort_keys=True)
        if fold in seen:
            raise ConfigError(
                f"folds: runs {seen[fold]!r} and {name!r} hold out the same ratings: give each "
                "another prepare.fold, seed or input.test_path"
            )
        seen[fold] = name
    for name, own in others:
        differing = _differing(of_first, own)
        if differing:
            raise ConfigError(
                f"folds: runs {first!r} and {name!r} differ in {', '.join(differing[:3])}: folds "
                "are runs of one configuration"
            )


def _fold(records: Records) -> Row:
    """Return what decides which ratings are held out."""
    settings = settings_of(records)
    names = (*_OF_A_FOLD, *(name for name in settings if name.startswith("prepare: ")))
    return {name: settings.get(name) for name in names}


def _differing(first: Records, other: Records) -> list[str]:
    one, two = settings_of(first), settings_of(other)
    return [name for name in sorted(one.keys() | two.keys())
            if one.get(name) != two.get(name)
            and name not in _OF_A_FOLD and not name.endswith(": seed")]  # fmt: skip


def _mean(metric: str, learner: str, values: FloatArray, confidence: float) -> Row:
    interval = t_interval(values, confidence)
    return {"metric": metric, "learner": learner, "folds": values.tolist(),
            "mean": float(values.mean()), "sd": float(values.std(ddof=1)),
            "ci": None if interval is None else list(interval)}  # fmt: skip


def _pair(
    metric: str, pair: tuple[str, str], values: Mapping[str, FloatArray], confidence: float
) -> Row:
    learner, rival = pair
    lower = metric.partition(" ")[0] not in HIGHER_IS_BETTER
    found = compare_paired(values[learner], values[rival], level=confidence, lower_is_better=lower)
    return {"metric": metric, "learner": learner, "rival": rival,
            "difference": found.mean_difference, "sd": found.sd,
            "ci": None if found.t_interval is None else list(found.t_interval),
            "t_p": paired_t_test(values[learner] - values[rival]),
            "wilcoxon_p": found.wilcoxon_p,
            "wins": found.wins, "ties": found.ties, "losses": found.losses}  # fmt: skip


def _lines(found: Row) -> list[str]:
    n, level = len(found["runs"]), f"{100 * found['confidence']:g} %"
    lines: list[str] = []
    for metric in SHOWN:
        means = [row for row in found["means"] if row["metric"] == metric]
        if not means:
            continue
        rows = [(metric, f"mean of {n} folds", "sd", *found["runs"])]
        rows += [(row["learner"], f"{row['mean']:.4f}", f"{row['sd']:.4f}",
                  *(f"{value:.4f}" for value in row["folds"])) for row in means]  # fmt: skip
        pairs = [row for row in found["pairs"] if row["metric"] == metric]
        lines += [*columns(rows), "", *columns(_pair_rows(pairs, level)), ""]
    return [*lines, "folds share training ratings: intervals and p-values are too narrow by some"]


def _pair_rows(pairs: Sequence[Row], level: str) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("difference", "mean", level, "paired t", "Wilcoxon", "folds won")]
    for row in pairs:
        low, high = row["ci"]
        p = "-" if row["t_p"] is None else f"{row['t_p']:.4f}"
        rows.append((
            f"{row['learner']} - {row['rival']}", f"{row['difference']:+.4f}",
            f"{low:+.4f} to {high:+.4f}", p, f"{row['wilcoxon_p']:.4f}",
            f"{row['wins']} of {row['wins'] + row['ties'] + row['losses']}",
        ))  # fmt: skip
    return rows
