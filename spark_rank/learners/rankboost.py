"""RankBoost: coordinate descent on the exponential loss over pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.learners.base import FloatArray, Learner, check_features, check_targets
from spark_rank.learners.errors import InvalidDataError, NumericFailureError
from spark_rank.learners.pairs.boosted import LevelPairs, PairList
from spark_rank.learners.pairs.boosting import Stumps, best_stump
from spark_rank.learners.pairs.listed import check_pairs, pairs_inside
from spark_rank.learners.parameters import Choice, Integer, Parameter, Real
from spark_rank.learners.ridge.grouped import check_groups
from spark_rank.learners.rows import Row

# boosting ends with a round that lowers the loss by less than this share
_LEAST_GAIN = 1e-6


class RankBoost(Learner):
    """Adds up thresholds on single features, each chosen to order more pairs correctly.

    Pairs are (x, x′) with y_x < y_x′; base rankers are ``h(x) = 1`` where feature ≥ cut, for every
    feature and every value it takes, and the complements, 1 where feature < cut. A round takes the
    h of smallest ``ε⁻ − ε⁺`` under the current weights of the pairs, with coefficient
    ``α = ½ ln((ε⁺ + s)/(ε⁻ + s))`` (Freund et al. 2003; Rudin et al. 2005; Mohri, lecture on
    ranking, "Coordinate Descent RankBoost"). Scores are ``Σ α_t h_t(x)``, not on the rating scale.
    Among base rankers that tie (edges within 1e-10) it takes the one with the lowest feature, then
    the lowest cut, then the direct one before the complement.

    Parameters
    ----------
    n_rounds : greatest number of rounds. Boosting ends earlier if no base ranker is better than
        chance, if one orders every pair, or if a round lowers the loss by less than a millionth. A
        base ranker that orders every pair would be chosen in every further round, which changes
        only the scale of the scores; with one round the scale is ``½ ln(1 + 1/s)``.
    missing : NaN in X is a missing rating. ``median`` replaces it by the median of the feature's
        training values; with ``abstain`` every base ranker on that feature is 0 there.
    smoothing : s, added to ε⁺ and ε⁻ so that a base ranker without errors gets a finite α; None is
        1 / number of pairs. With 0, α is the lecture's ``½ ln(ε⁺/ε⁻)``; a base ranker without
        errors, whose α would be infinite, gets the α of None.

    Attributes
    ----------
    features_, cuts_, complements_, alphas_ : the base ranker and coefficient of each round.
    normalizers_ : ``Z = ε⁰ + ε⁺e^{−α} + ε⁻e^{α}`` of each round, at most 1; without smoothing that
        is ``ε⁰ + 2√(ε⁺ε⁻)``. Their product is the mean exponential loss of the pairs, relative to
        that of the offset if there is one, and bounds the training misranking.
    train_misranking_ : after each round, the share of pairs with ``score(x′) ≤ score(x)``.
    medians_ : the medians that replace missing ratings; None with ``abstain``.

    Notes
    -----
    The weight of a pair is a product of one factor per example, so a round costs O(m (k + d)), plus
    O(m log m) to count the misranked pairs. No pairs are stored: memory is O(m d). With one example
    or equal ratings there are no pairs and no rounds, and every score is 0, or the offset.
    """

    parameters: ClassVar[dict[str, Parameter]] = {
        "n_rounds": Integer("most boosting rounds", at_least=1),
        "missing": Choice("what a missing rating counts as", options=("median", "abstain")),
        "smoothing": Real("added to the weights that give alpha", at_least=0.0, optional=True),
    }
    on_rating_scale: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = True
    state: ClassVar[tuple[str, ...]] = (
        "features_",
        "cuts_",
        "complements_",
        "alphas_",
        "normalizers_",
        "train_misranking_",
        "medians_",
        "n_features_",
    )

    def __init__(
        self, n_rounds: int = 100, *, missing: str = "median", smoothing: float | None = None
    ) -> None:
        self.n_rounds = n_rounds
        self.missing = missing
        self.smoothing = smoothing

    @classmethod
    def cost(cls, params: Row, n_train: float, width: int) -> float:
        """Return about how many core seconds a user takes: every round tries all cuts."""
        return params.get("n_rounds", 100) * (2e-5 + 2.6e-9 * n_train * width)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> RankBoost:
        """Learn from the m×d matrix `X`, NaN where a rating is missing, and the order of `y`.

        With an `offset` boosting starts from it: it is the score before the first round. With
        `qid`, an id of a query per example, only pairs of one query count; they are listed, so that
        memory grows with their number.
        """
        self.check_parameters()
        features = _check_ratings(X)
        targets = check_targets(y, len(features))
        start = _start(len(targets), offset)
        pairs: LevelPairs | PairList = LevelPairs(targets)
        if qid is not None:
            listed = pairs_inside(targets, check_groups(qid, len(targets)))
            pairs = PairList(listed, len(targets))
        return self._learn(X, features, pairs, start)

    def fit_pairs(
        self,
        X: ArrayLike,
        left: ArrayLike,
        right: ArrayLike,
        sign: ArrayLike,
        weight: ArrayLike | None = None,
    ) -> RankBoost:
        """Learn from labelled pairs of rows of `X`, which need not agree with each other.

        Pair p says of the rows ``left[p]`` and ``right[p]`` which is preferred: 1 the right one, −1
        the left one, 0 nothing (Mohri's lecture, "CD RankBoost"). At first its weight is
        ``weight[p]``, as a share of all weights. O(pairs + m d) a round.
        """
        self.check_parameters()
        features = _check_ratings(X)
        listed = check_pairs(left, right, sign, weight, len(features))
        return self._learn(X, features, PairList(listed, len(features)), np.zeros(len(features)))

    def _learn(
        self, X: Any, features: FloatArray, pairs: LevelPairs | PairList, start: FloatArray
    ) -> RankBoost:
        with self._unchanged_by_failure():
            self.n_features_ = features.shape[1]
            self._note_columns(X, self.n_features_)
            self.medians_ = _medians(features) if self.missing == "median" else None
            self._keep(list(self._boost(self._filled(features), pairs, start)))
        return self

    def _keep(self, rounds: list[_Round]) -> None:
        self.features_ = np.array([r.feature for r in rounds], dtype=np.int64)
        self.cuts_ = np.array([r.cut for r in rounds], dtype=np.float64)
        self.complements_ = np.array([r.complement for r in rounds], dtype=np.bool_)
        self.alphas_ = np.array([r.alpha for r in rounds], dtype=np.float64)
        self.normalizers_ = np.array([r.normalizer for r in rounds], dtype=np.float64)
        self.train_misranking_ = np.array([r.misranking for r in rounds], dtype=np.float64)

    def to_row(self) -> Row:
        """Return the base rankers; the constant is 0."""
        return {
            "ranker_features": self._learned("features_"),
            "ranker_cuts": self.cuts_,
            "ranker_below": self.complements_,
            "ranker_alphas": self.alphas_,
        }

    def decision_function(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the scores of the rows of `X`, which may hold NaN, in O(m) a round."""
        features = self._to_score(X)
        scores = _start(len(features), offset)
        for alpha, chosen in self._base_rankers(features):
            scores += alpha * chosen
        return scores

    def staged_decision_function(
        self, X: ArrayLike, offset: ArrayLike | None = None
    ) -> Iterator[FloatArray]:
        """Yield the scores after the first round, the second, …: to choose the number of rounds."""
        features = self._to_score(X)
        scores = _start(len(features), offset)
        for alpha, chosen in self._base_rankers(features):
            scores += alpha * chosen
            yield scores.copy()

    def _width_in(self) -> int:
        return self.n_features_

    def _to_score(self, X: ArrayLike) -> FloatArray:
        self._check_columns(X)
        return self._filled(_check_ratings(X, self._learned("n_features_")))

    def _base_rankers(self, features: FloatArray) -> Iterator[tuple[float, NDArray[np.bool_]]]:
        """Yield each round's α, and for which rows its base ranker is 1."""
        for feature, cut, complement, alpha in zip(
            self.features_, self.cuts_, self.complements_, self.alphas_, strict=True
        ):
            values = features[:, feature]
            # comparing a missing value (NaN) with a cut is False, so the base ranker abstains
            yield alpha, (values < cut if complement else values >= cut)

    def _filled(self, features: FloatArray) -> FloatArray:
        if self.medians_ is None:
            return features
        return np.where(np.isnan(features), self.medians_, features)

    def _boost(
        self, features: FloatArray, pairs: LevelPairs | PairList, potentials: FloatArray
    ) -> Iterator[_Round]:
        """Yield the rounds of boosting from the scores `potentials`, which are updated in place."""
        if pairs.is_empty():
            return
        stumps = _stumps(features)
        sums = np.empty(len(features) + 1)
        for _ in range(self.n_rounds):
            if not math.isfinite(pairs.weigh(potentials)):
                raise NumericFailureError("the pair weights overflowed: scale the offset down")
            feature, position, complement = best_stump(stumps, pairs.net(), sums)
            if feature < 0:
                return
            chosen = _chosen(stumps, feature, position, complement)
            plus, minus, equal = pairs.split(chosen)
            alpha = self._alpha(plus, minus, pairs.n_pairs)
            normalizer = equal + plus * math.exp(-alpha) + minus * math.exp(alpha)
            potentials += alpha * chosen
            misranking = pairs.misranking(potentials)
            cut = stumps.cuts[stumps.starts[feature] + position]
            yield _Round(feature, cut, complement, alpha, normalizer, misranking)
            if plus > 0.0 == minus == equal or 1.0 - normalizer < _LEAST_GAIN:
                return

    def _alpha(self, plus: float, minus: float, n_pairs: float) -> float:
        smoothing = self.smoothing
        if smoothing is None or smoothing == minus == 0.0:
            smoothing = 1.0 / n_pairs
        return 0.5 * math.log((plus + smoothing) / (minus + smoothing))


class _Round(NamedTuple):
    """The base ranker of a boosting round, with the normalizer and misranking after it."""

    feature: int
    cut: float
    complement: bool
    alpha: float
    normalizer: float
    misranking: float


def _start(n_examples: int, offset: ArrayLike | None) -> FloatArray:
    """Return the scores before the first round."""
    if offset is None:
        return np.zeros(n_examples)
    return check_targets(offset, n_examples, "offset").copy()


def _check_ratings(X: ArrayLike, n_features: int | None = None) -> FloatArray:
    """Return `X` as m×d float64, NaN allowed, or raise `InvalidDataError`."""
    features = check_features(X, n_features, finite=False)
    if np.isinf(features).any():
        raise InvalidDataError("X holds infinity: drop those entries, or make them NaN (missing)")
    return features


def _medians(features: FloatArray) -> FloatArray:
    """Return the median of each column; 0 for a column without values."""
    medians = np.zeros(features.shape[1])
    rated = ~np.isnan(features).all(axis=0)
    medians[rated] = np.nanmedian(features[:, rated], axis=0)
    return medians


def _stumps(features: FloatArray) -> Stumps:
    """Sort every column once, O(m d log m)."""
    codes = np.empty(features.shape[::-1], dtype=np.int32)
    cuts = []
    for column, code in zip(features.T, codes, strict=True):
        cuts.append(np.unique(column[~np.isnan(column)]))
        # NaN is sorted behind the last cut
        code[:] = np.searchsorted(cuts[-1], column)
    starts = np.cumsum([0, *map(len, cuts)])
    return Stumps(codes, np.concatenate([np.empty(0), *cuts]), starts)


def _chosen(stumps: Stumps, feature: int, position: int, complement: bool) -> NDArray[np.bool_]:
    """Return for which training examples the base ranker is 1."""
    codes = stumps.codes[feature]
    if complement:
        return codes < position
    n_cuts = stumps.starts[feature + 1] - stumps.starts[feature]
    return (codes >= position) & (codes < n_cuts)
