"""Slow twins of the online ordinal learners, written line by line from the papers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def lane_dot(a: Floats, b: Floats) -> float:
    """Add the products in the documented order: eight lanes, their tree, then the rest."""
    products = [float(x) * float(y) for x, y in zip(a, b, strict=True)]
    whole = len(products) // 8 * 8
    lanes = [0.0] * 8
    for i in range(whole):
        lanes[i % 8] += products[i]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [lanes[i] + lanes[i + half] for i in range(half)]
    rest = 0.0
    for product in products[whole:]:
        rest += product
    return lanes[0] + rest


def naive_rank(score: float, thresholds: list[float]) -> int:
    """ŷ = min { r : w·x − b_r < 0 } with b_k = ∞."""
    for r, threshold in enumerate([*thresholds, float("inf")], start=1):
        if score - threshold < 0:
            return r
    raise AssertionError("b_k is infinite")


def naive_taus(score: float, thresholds: list[float], rank: int) -> list[int]:
    taus = []
    for r, threshold in enumerate(thresholds, start=1):
        y_r = -1 if rank <= r else 1
        taus.append(y_r if (score - threshold) * y_r <= 0 else 0)
    return taus


@dataclass
class NaiveRule:
    """One rule of a run: its supports (or w), thresholds, and how long it lived."""

    weights: dict[int, int]
    thresholds: list[float]
    survived: int = 0


@dataclass
class NaiveRun:
    """PRank in kernel form, keeping every rule it ever had and the rule after every round."""

    n_ranks: int
    kernel: Callable[[Floats, Floats], float]
    examples: list[Floats] = field(default_factory=list)
    rules: list[NaiveRule] = field(default_factory=list)
    after_round: list[NaiveRule] = field(default_factory=list)
    predictions: list[int] = field(default_factory=list)
    losses: list[int] = field(default_factory=list)
    taus: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rules.append(NaiveRule({}, [0.0] * (self.n_ranks - 1)))

    def score(self, rule: NaiveRule, x: Floats) -> float:
        return sum(a * self.kernel(self.examples[t], x) for t, a in rule.weights.items())

    def learn(self, X: Floats, ranks: Ints) -> NaiveRun:
        for x, rank in zip(X, ranks, strict=True):
            self.examples.append(x)
            self._round(x, int(rank))
        return self

    def _round(self, x: Floats, rank: int) -> None:
        rule = self.rules[-1]
        score = self.score(rule, x)
        predicted = naive_rank(score, rule.thresholds)
        self.predictions.append(predicted)
        self.losses.append(abs(predicted - rank))
        if predicted == rank:
            rule.survived += 1
            self.taus.append([0] * (self.n_ranks - 1))
        else:
            taus = naive_taus(score, rule.thresholds, rank)
            weights = {**rule.weights, len(self.examples) - 1: sum(taus)}
            moved = [b - tau for b, tau in zip(rule.thresholds, taus, strict=True)]
            self.taus.append(taus)
            self.rules.append(NaiveRule(weights, moved))
        self.after_round.append(self.rules[-1])


@dataclass
class NaivePrimal:
    """PRank with an explicit w, every product and sum in the documented order."""

    n_ranks: int
    coef: Floats
    thresholds: list[float]

    @classmethod
    def start(cls, n_ranks: int, n_features: int) -> NaivePrimal:
        return cls(n_ranks, np.zeros(n_features), [0.0] * (n_ranks - 1))

    def score(self, x: Floats) -> float:
        return lane_dot(self.coef, x)

    def predict(self, x: Floats) -> int:
        return naive_rank(self.score(x), self.thresholds)

    def learn(self, x: Floats, rank: int) -> int:
        """Do one round; return the prediction made before the update."""
        score = self.score(x)
        predicted = naive_rank(score, self.thresholds)
        if predicted != rank:
            taus = naive_taus(score, self.thresholds, rank)
            self.coef = self.coef + sum(taus) * x
            self.thresholds = [b - tau for b, tau in zip(self.thresholds, taus, strict=True)]
        return predicted


def running_average(losses: list[int]) -> Floats:
    return np.array([sum(losses[: t + 1]) / (t + 1) for t in range(len(losses))])


def half_up(numerator: int, denominator: int) -> int:
    """Round numerator/denominator to the nearest whole number, halves up."""
    whole, rest = divmod(numerator, denominator)
    return whole + (1 if 2 * rest >= denominator else 0)


def half_integer_problem(
    seed: int, n_examples: int = 120, n_features: int = 5, n_ranks: int = 5
) -> tuple[Floats, Ints]:
    """Return noisy ordinal data whose features are multiples of one half, with many ties."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-5, 6, size=(n_examples, n_features)) / 2
    return X, _noisy_ranks(rng, X, n_ranks)


def real_problem(
    seed: int, n_examples: int = 120, n_features: int = 19, n_ranks: int = 5
) -> tuple[Floats, Ints]:
    """Return noisy ordinal data whose features are arbitrary floats of mixed sizes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_examples, n_features)) * 10.0 ** rng.integers(-3, 3, n_features)
    return X, _noisy_ranks(rng, X, n_ranks)


def _noisy_ranks(rng: np.random.Generator, X: Floats, n_ranks: int) -> Ints:
    scaled = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    scores = scaled @ rng.normal(size=X.shape[1]) + 0.5 * rng.normal(size=len(X))
    cuts = np.quantile(scores, np.arange(1, n_ranks) / n_ranks)
    return np.searchsorted(cuts, scores).astype(np.int64) + 1
