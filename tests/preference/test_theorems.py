"""The theorem experiment: it holds, it repeats, and it can fail."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from spark_rank.preference import InvalidSettingError, TheoremRow, run_theorems
from spark_rank.preference.theorem_rows import at_most, equality
from spark_rank.preference.tournaments import (
    noisy_tournament,
    random_tournament,
    random_truth,
    transitive_tournament,
)


@pytest.fixture(scope="module")
def rows() -> list[TheoremRow]:
    return run_theorems(seed=0, trials=100, sizes=(6, 12, 24, 48))


def test_every_theorem_holds(rows: list[TheoremRow]) -> None:
    assert [row for row in rows if not row.holds] == []


def test_each_statement_is_there_at_each_size(rows: list[TheoremRow]) -> None:
    tried = {row.theorem for row in rows}
    for n in (6, 12, 24, 48):
        here = {row.theorem for row in rows if row.n == n}
        # of one size: the 3-cycle, fits, and what is enumerated
        single = ("3-cycle", "~", "regret", "decomposition")
        left_out = {t for t in tried - here if not any(word in t for word in single)}
        assert left_out == ({t for t in tried if "optimal" in t} if n > 15 else set())


def test_the_three_cycle_separates_deterministic_from_randomised(rows: list[TheoremRow]) -> None:
    cycle = {row.kind: row for row in rows if "3-cycle" in row.theorem}
    assert cycle["enumerated"].measured == 2.0
    assert cycle["random"].ci_high < 2.0


def test_equal_seeds_give_equal_rows() -> None:
    first, second, other = (run_theorems(s, trials=5, sizes=(4, 5, 7, 9)) for s in (3, 3, 4))
    assert first == second != other


def test_a_row_fails_where_the_theorem_would_be_wrong() -> None:
    rng = np.random.default_rng(2)
    loss = rng.uniform(1.0, 2.0, 500)
    assert equality("", "", 5, (loss, loss), 1.0).holds
    assert not equality("", "", 5, (1.2 * loss, loss), 1.0).holds
    assert at_most("", "", 5, (1.9 * loss, loss), 2.0).holds
    assert not at_most("", "", 5, (2.1 * loss, loss), 2.0).holds
    undefined = at_most("", "", 5, (loss, 0.0 * loss), 2.0)
    assert (undefined.measured, undefined.ci_low, undefined.holds) == (None, None, None)


def test_the_interval_covers_a_known_ratio_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(1000):
        base = rng.uniform(0.5, 1.5, 60)
        hits += equality("", "", 5, (1.5 * base + rng.normal(0, 0.3, 60), base), 1.5).holds
    assert hits >= 990


def test_tournaments_are_complete_and_noise_is_a_share() -> None:
    rng = np.random.default_rng(6)
    truth = random_truth(60, rng, bipartite=False)
    assert sorted(truth) == list(range(60))
    noisy = noisy_tournament(truth, rng, 0.1)
    for h in (random_tournament(60, rng), noisy, transitive_tournament(60, rng)):
        off = ~np.eye(60, dtype=bool)
        assert ((h + h.T)[off] == 1.0).all()
        assert set(np.unique(h)) == {0.0, 1.0}
    wrong = np.mean([noisy[v, u] for u, v in itertools.combinations(truth, 2)])
    assert abs(wrong - 0.1) < 5 * np.sqrt(0.09 / 1770)
    top, bottom = random_truth(60, rng, bipartite=True)
    assert top
    assert bottom
    assert top | bottom == set(range(60))


@pytest.mark.parametrize("arguments", [{"trials": 1}, {"sizes": ()}, {"sizes": (2,)}])
def test_wrong_settings_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidSettingError, match="give at least"):
        run_theorems(**arguments)
