"""Regrets of rankings and preferences, and QuickSort's decomposition, exactly on few items.

References
----------
Mohri's lecture, "(Weak) Regret", "(Strong) Regret Definitions" and "Proof Ideas"; Ailon, Mohri: An
Efficient Reduction of Ranking to Classification.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.preference.rankings import read_ranking
from spark_rank.preference.ready_made import from_matrix
from spark_rank.preference.sorting import degree_rank
from spark_rank.preference.theorem_rows import TheoremRow
from spark_rank.preference.tournaments import noisy_tournament, random_tournament, random_truth

FloatArray = NDArray[np.float64]

_TRUTHS = 3  # equally likely truths of a set of items
_ITEMS, _SUBSET = 6, 4  # of the whole set, and of the sets to rank for the strong regret
_NOISE = 0.1
_ROUNDING = 1e-12


def regret_rows(trials: int, rng: np.random.Generator) -> Iterator[TheoremRow]:
    """Test the bounds on regrets in the bipartite case, each exactly on every tournament.

    QuickSort's regret is at most that of the preference, sort-by-degree's at most twice that. In
    the weak form the best ranking may differ from set to set; in the strong form one order of all
    items must do for every set of four. As truths are truths of all items, seen on the set, the
    strong form's assumption (pairwise independence on irrelevant alternatives) holds. `measured`
    is the ratio of the mean regrets.
    """
    for kind in ("random", "noisy"):
        weak, strong = _sample_regrets(kind, trials, rng)
        for form, size, found in (("weak", _ITEMS, weak), ("strong", _SUBSET, strong)):
            of_h, of_quicksort, of_degree = found
            name = f"quicksort {form} regret <= that of h"
            yield _bounded(name, kind, size, of_quicksort, of_h, 1.0)
            name = f"degree {form} regret <= 2 times that of h"
            yield _bounded(name, kind, size, of_degree, of_h, 2.0)


def _bounded(
    theorem: str, kind: str, n: int, regrets: FloatArray, of_h: FloatArray, factor: float
) -> TheoremRow:
    holds = bool((regrets <= factor * of_h + _ROUNDING).all())
    measured = float(regrets.mean() / of_h.mean()) if of_h.mean() > 0.0 else None
    return TheoremRow(theorem, kind, n, None, len(of_h), measured, None, None, factor, holds)


def decomposition_row(trials: int, rng: np.random.Generator) -> TheoremRow:
    """Enumerate QuickSort on random tournaments, and check its decomposition for every pair.

    `measured` is the value that is furthest from 1.
    """
    values = np.concatenate([
        decomposition(random_tournament(n, rng)) for n in (4, _ITEMS) for _ in range(trials)
    ])  # fmt: skip
    furthest = float(values[np.argmax(np.abs(values - 1.0))])
    holds = abs(furthest - 1.0) <= _ROUNDING
    return TheoremRow("quicksort decomposition = 1", "enumerated", _ITEMS, None, trials, furthest,
                      None, None, 1.0, holds)  # fmt: skip


def decomposition(h: FloatArray) -> FloatArray:
    """Return ``p_uv + ⅓ Σ_w p_uvw (h(u,w) h(w,v) + h(v,w) h(w,u))`` for every pair u < v.

    p_uv is the probability that QuickSort compares u with v, p_uvw that u, v and w are together in
    a part when one of them is the pivot. Both follow from the probabilities of all parts.
    """
    compared, split = _comparisons(h)
    return np.asarray((compared + split + split.T)[np.triu_indices(len(h), 1)])


def order_chances(h: FloatArray) -> FloatArray:
    """Return the probability that QuickSort puts u before v, for a tournament h of 0 and 1.

    Either the two are compared, or a pivot parts them.
    """
    compared, split = _comparisons(h)
    return np.asarray(compared * h + split)


def _comparisons(h: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return p_uv, and ``⅓ Σ_w p_uvw h(u,w) h(w,v)``: a pivot w puts u before v."""
    n = len(h)
    pairs, triples = np.zeros((n, n)), np.zeros((n, n, n))
    for part, chance in _parts(h).items():
        for u, v in itertools.permutations(part, 2):
            pairs[u, v] += chance * 2.0 / len(part)
        for u, v, w in itertools.permutations(part, 3):
            triples[u, v, w] += chance * 3.0 / len(part)
    return pairs, np.einsum("uvw,uw,wv->uv", triples, h, h) / 3.0


def _parts(h: FloatArray) -> dict[frozenset[int], float]:
    """Return the probability that each set of two or more items is a part of QuickSort."""
    chances = {frozenset(range(len(h))): 1.0}
    for size in range(len(h), 2, -1):
        for part in [part for part in chances if len(part) == size]:
            for pivot in part:
                others = part - {pivot}
                before = frozenset(u for u in others if h[u, pivot] > 0.5)
                for smaller in (before, others - before):
                    if len(smaller) > 1:
                        more = chances[part] / size
                        chances[smaller] = chances.get(smaller, 0.0) + more
    return chances


def _sample_regrets(
    kind: str, trials: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return weak and strong regrets of h, QuickSort and sort-by-degree, one column per trial."""
    weak, strong = np.empty((2, 3, trials))
    subsets = [np.array(each) for each in itertools.combinations(range(_ITEMS), _SUBSET)]
    for trial in range(trials):
        truths = [random_truth(_ITEMS, rng, bipartite=True) for _ in range(_TRUTHS)]
        h = random_tournament(_ITEMS, rng)
        if kind == "noisy":
            h = noisy_tournament(truths[0], rng, _NOISE)
        above = mean_truth(truths)
        least_h, least_order = least_losses(above)
        least = np.array([least_h, least_order, least_order])
        weak[:, trial] = losses_of(h, above) - least
        # every pair is in as many of the subsets: what is best for them is best for the whole
        seen = [losses_of(h[np.ix_(some, some)], above[np.ix_(some, some)]) for some in subsets]
        strong[:, trial] = np.mean(seen, axis=0) - least
    return weak, strong


def mean_truth(truths: Sequence[Any]) -> FloatArray:
    """Return the share of the truths that put u above v."""
    places = [read_ranking(truth) for truth in truths]
    items = range(len(places[0]))
    shares = [[[p[u] < p[v] for v in items] for u in items] for p in places]
    return np.asarray(np.mean(shares, axis=0))


def losses_of(h: FloatArray, above: FloatArray) -> FloatArray:
    """Return the expected losses of h, of QuickSort and of sort-by-degree under a mean truth."""
    n = len(h)
    order = degree_rank(range(n), from_matrix(h))
    places = np.argsort(order)
    by_degree = (places[:, None] < places).astype(np.float64)
    wrong = [float((puts * above.T).sum()) for puts in (h, order_chances(h), by_degree)]
    return 2.0 * np.array(wrong) / (n * (n - 1))


def least_losses(above: FloatArray) -> tuple[float, float]:
    """Return the least loss of any preference, and that of any order, by trying all orders."""
    n = len(above)
    orders = np.array(list(itertools.permutations(range(n))))
    first, second = np.triu_indices(n, 1)
    of_orders = above[orders[:, second], orders[:, first]].sum(axis=1).min()
    of_pairs = np.minimum(above, above.T)[first, second].sum()
    scale = 2.0 / (n * (n - 1))
    return scale * float(of_pairs), scale * float(of_orders)
