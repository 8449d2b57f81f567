"""The draws of an ensemble: the hash against published values, the counts against chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from spark_rank.learners.perceptrons.draws import cumulative_counts, member_keys, presentations

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = np.arange(100_000)


def splitmix(word: int) -> int:
    """One output of splitmix64 in Python's own integers."""
    word = (word + GOLDEN) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def naive_uniform(seed: int, problem: int, member: int, round_: int) -> float:
    key = 0
    for argument in (seed, problem, member, round_):
        key = splitmix(key ^ splitmix(argument & MASK))
    return (key >> 11) / 2**53


def counts(sampling: str, tau: float = 0.3, **arguments: int) -> np.ndarray:
    keys = member_keys(arguments.get("seed", 0), arguments.get("problem", 0), np.arange(8))
    return presentations(keys, ROUNDS, cumulative_counts(sampling, tau))


def test_the_hash_is_splitmix() -> None:
    # the generator's published outputs from state 1234567
    outputs = [splitmix(1234567 + i * GOLDEN) for i in range(5)]
    assert outputs == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 + 3])
@pytest.mark.parametrize("problem", [0, 480_000, 2**40])
def test_draws_are_the_documented_function(seed: int, problem: int) -> None:
    members, rounds = [0, 1, 99, 2**33], [0, 1, 2, 49_999, 2**35]
    expected = [[naive_uniform(seed, problem, j, t) for t in rounds] for j in members]
    keys = member_keys(seed, problem, members)
    for tau in (0.1, 0.3, 0.6, 0.9):
        shown = presentations(keys, rounds, cumulative_counts("bernoulli", tau))
        assert shown.tolist() == [[int(u >= 1 - tau) for u in row] for row in expected]
    poisson = presentations(keys, rounds, cumulative_counts("poisson", 0.3))
    assert poisson.tolist() == [[int(stats.poisson(1).ppf(u)) for u in row] for row in expected]


@pytest.mark.parametrize("tau", [0.1, 0.3, 0.6, 0.9])
def test_bernoulli_draws_have_their_probability(tau: float) -> None:
    shares = counts("bernoulli", tau).mean(axis=1)
    assert np.abs(shares - tau).max() < 5 * np.sqrt(tau * (1 - tau) / len(ROUNDS))


def test_tau_one_shows_everything() -> None:
    assert counts("bernoulli", 1.0).all()


def test_poisson_counts_follow_their_distribution() -> None:
    drawn = np.minimum(counts("poisson"), 7).ravel()
    expected = stats.poisson(1).pmf(np.arange(8))
    expected[7] = stats.poisson(1).sf(6)
    observed = np.bincount(drawn, minlength=8)
    assert stats.chisquare(observed, expected * len(drawn)).pvalue > 1e-4


def test_cumulative_counts_are_the_poisson_distribution_function() -> None:
    cumulative = cumulative_counts("poisson", 0.3)
    np.testing.assert_allclose(
        cumulative, stats.poisson(1).cdf(np.arange(len(cumulative))), rtol=1e-15
    )
    assert (np.diff(cumulative) > 0).all()
    # counts beyond the table are rarer than the finest difference between two draws
    assert stats.poisson(1).sf(len(cumulative)) < 2**-53


def test_draws_of_different_arguments_are_uncorrelated() -> None:
    base = counts("bernoulli", 0.5).astype(float)
    others = {
        "next member": np.roll(base, 1, axis=0),
        "next round": np.roll(base, 1, axis=1),
        "next seed": counts("bernoulli", 0.5, seed=1),
        "next problem": counts("bernoulli", 0.5, problem=1),
    }
    for name, other in others.items():
        correlations = 4 * ((base - 0.5) * (other - 0.5)).mean(axis=1)
        assert np.abs(correlations).max() < 5 / np.sqrt(len(ROUNDS)), name
