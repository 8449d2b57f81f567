"""The lecture's theorems on QuickSort and sort-by-degree, tested in repeated trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_rank.config.schema import setting
from spark_rank.experiments.frame import Experiment, Published, Result, Study, Unit
from spark_rank.preference.theorem_rows import TheoremRow
from spark_rank.preference.theorems import run_theorems

_SOURCE = "Mohri, lecture on ranking; Ailon and Mohri 2008; Balcan et al. 2007"


@dataclass(frozen=True)
class PreferenceSettings:
    """Settings of `preference`."""

    repeats: int = setting(10, "independent repeats, from which intervals follow", at_least=2)
    trials: int = setting(100, "random tournaments per statement and size", at_least=2)
    sizes: list[int] = setting([5, 10, 20, 50, 100, 200], "numbers of items, from 3")


def units(study: Study) -> Sequence[Unit]:
    """Return a unit per repeat."""
    return [(repeat,) for repeat in range(study.settings.repeats)]


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Test all statements on the tournaments of one repeat."""
    (repeat,) = unit
    seed = int(study.generator("tournaments", repeat).integers(2**63))
    rows = run_theorems(seed, study.settings.trials, tuple(study.settings.sizes))
    return [Result(_case(row), row.theorem, row.measured, repeat=repeat) for row in rows]


def published(settings: PreferenceSettings) -> list[Published]:
    """Return the theory's value for every case, which does not depend on the draws."""
    rows = run_theorems(trials=2, sizes=tuple(settings.sizes))
    return [Published(_case(row), row.theorem, row.reference, source=_SOURCE) for row in rows]


def _case(row: TheoremRow) -> str:
    first = "" if row.k is None else f", first {row.k}"
    return f"{row.kind}, {row.n} items{first}"


EXPERIMENT = Experiment(
    name="preference",
    title="Theorems of preference-based ranking",
    source=_SOURCE,
    about=(
        "Losses of QuickSort and of sort-by-degree on random and noisy tournaments, as ratios to "
        "the loss of the preference itself or of the optimal order, and the calls of QuickSort. "
        "'published' is the theory's value: an equality or a bound. A bound holds if the figure "
        "does not exceed it. R² of the laws of growth should reach 0.99."
    ),
    settings=PreferenceSettings,
    units=units,
    run_unit=run_unit,
    published=published,
    higher_is_better=frozenset(
        {"calls ~ n log n", "calls ~ n + k log k", "deterministic on the 3-cycle >= 2"}
    ),
    exact=frozenset(
        {
            "quicksort bipartite = 1",
            "quicksort on the 3-cycle = 1",
            "quicksort decomposition = 1",
            "calls = 2(n+1)H_n - 4n",
            "calls for the first k",
        }
    ),
    deviations=(
        "A figure is the mean over repeats of a ratio of mean losses. With few trials and mean "
        "losses near 0, such means differ slightly from 1. Of a hundred 95 % intervals around "
        "exact equalities, five are expected to miss.",
        "`spark-rank theorems` tests the same statements once, with intervals at 99.9 %.",
    ),
)
