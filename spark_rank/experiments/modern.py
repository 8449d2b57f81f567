"""Every learner, on two kinds of features, and other recommenders: on the same users and halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from spark_rank.config.schema import setting
from spark_rank.experiments.data_sets import MOVIELENS_1M, MOVIELENS_100K
from spark_rank.experiments.frame import Claim, Experiment, Need, Pilot, Result, Study, Unit
from spark_rank.experiments.modern_methods import (
    LEARNERS,
    PEERS,
    FloatArray,
    Setting,
    peer_scores,
    predicted,
)
from spark_rank.experiments.reviewer_problems import (
    METRICS,
    IntArray,
    Sample,
    draw_reviewers,
    measured,
    users_between,
)
from spark_rank.experiments.shared_halves import (
    Task,
    factor_features,
    reference_task,
    rows_of,
    split_of,
)
from spark_rank.metrics import average_precision, ndcg, precision, recall

_KINDS = tuple(LEARNERS)
_BEST = "MPRank, Gaussian too (factors)"
_TOP = 10
_PREDICTION_METRICS = ("RMSE", "MAE")
_ON_THE_SCALE = ("MSD", "M1D", *_PREDICTION_METRICS)
_TOP_METRICS = ("NDCG@10", "precision@10", "recall@10", "MAP@10")
_NO_SCALE = ("RankSVM", "RankBoost")  # their scores only order items


@dataclass(frozen=True)
class Modern:
    """Settings of `modern`."""

    users: int = setting(1000, "test users", at_least=1)
    held_out: int = setting(200, "users on whom settings are chosen", at_least=1)
    least_ratings: int = setting(20, "least ratings of a user", at_least=4)
    rank: int = setting(32, "factors", at_least=1, at_most=500)
    factor_rounds: int = setting(15, "rounds of estimating the factors", at_least=1)
    references: int = setting(300, "reference reviewers of a user", at_least=1)
    reference_min: int = setting(50, "least training ratings of a reference reviewer", at_least=1)
    chunk: int = setting(50, "users of a unit", at_least=1)
    relevant_from: float = setting(4.0, "least rating of a relevant item")


def sample(study: Study) -> Sample:
    """Draw the test users, and the users on whom settings are chosen."""
    settings: Modern = study.settings
    ratings = study.data["ratings"]
    eligible = users_between(ratings, settings.least_ratings, ratings.n_items)
    return draw_reviewers(
        study, eligible, held_out=settings.held_out, repeats=1,
        size=min(settings.users, len(eligible) - min(settings.held_out, len(eligible) // 4)),
        keys=("users",),
    )  # fmt: skip


def _units(study: Study, users: IntArray) -> list[Unit]:
    """Return a unit per peer, and per kind of features and chunk of users."""
    chunk = study.settings.chunk
    of_learners = [
        (1, kind, first, min(first + chunk, len(users)))
        for kind in range(len(_KINDS))
        for first in range(0, len(users), chunk)
    ]
    return [*((0, peer, 0, 0) for peer in range(len(PEERS))), *of_learners]


def run_pilot(study: Study, unit: Unit) -> list[Result]:
    """Try all settings on the held-out users; x is the setting's position in its grid."""
    kind, place, first, last = unit
    users = sample(study).held_out
    if kind == 0:
        return [
            Result(PEERS[place], "MSD", float(np.mean(costs)), x=float(x), detail=name)
            for x, (name, scores) in enumerate(_peer(study, place))
            for costs in ([_cost(scores, study, int(user)) for user in users],)
        ]
    results = []
    for user in users[first:last]:
        task = _task(study, _KINDS[place], int(user))
        for name, entry in LEARNERS[_KINDS[place]].items():
            for x, point in enumerate(entry.grid):
                scores = predicted(entry, point, task, _levels(study))
                value = _value(scores, task, entry.cost)
                results.append(Result(_named(name, place), entry.cost, value, x=float(x)))
    return results


def _value(scores: FloatArray | None, task: Task, cost: str) -> float | None:
    """Return the cost; infinity if it failed, so that such a setting is not chosen."""
    return float("inf") if scores is None else measured(scores, task.test_y)[cost]


def choose(study: Study, results: Sequence[Result]) -> dict[str, Any]:
    """Return, by method, the position and the name of the setting with the least mean cost."""
    sums: dict[tuple[str, int], list[float]] = {}
    names: dict[tuple[str, int], str] = {}
    for result in results:
        key = (result.method, int(result.x or 0))
        names[key] = result.detail or str(dict(_points(result.method)[key[1]]))
        if result.value is not None:
            sums.setdefault(key, []).append(result.value)
    chosen: dict[str, Any] = {}
    for method in dict.fromkeys(method for method, _ in sums):
        places = sorted(x for m, x in sums if m == method)
        best = min(places, key=lambda x: float(np.mean(sorted(sums[method, x]))))
        chosen[method] = {"place": best, "setting": names[method, best]}
    return chosen


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Measure a recommender on all test users, or all learners on a chunk of them."""
    kind, place, first, last = unit
    users = sample(study).repeats[0]
    results: list[Result] = []
    if kind == 0:
        name = PEERS[place]
        scores = _peer(study, place)[study.chosen[name]["place"]][1]
        split = split_of(study)
        for user in users:
            held_out = rows_of(split, int(user))[1]
            results += _results(study, int(user), name, scores[held_out])
        return results
    for user in users[first:last]:
        task = _task(study, _KINDS[place], int(user))
        for name, entry in LEARNERS[_KINDS[place]].items():
            method = _named(name, place)
            point = entry.grid[study.chosen[method]["place"]]
            scores = predicted(entry, point, task, _levels(study))
            on_scale = entry.cost == "MSD"
            results += _results(study, int(user), method, scores, on_scale=on_scale)
    return results


def _results(
    study: Study, user: int, method: str, scores: FloatArray | None, *, on_scale: bool = True
) -> list[Result]:
    split, ratings = split_of(study), study.data["ratings"]
    y = split.test_ratings[rows_of(split, user)[1]]
    names = (*METRICS, *_PREDICTION_METRICS, *_TOP_METRICS)
    values: dict[str, float | None] = dict.fromkeys(names)
    if scores is not None:
        values |= measured(scores, y)
        values |= _prediction_errors(scores - y)
        values |= _top_values(scores, y, study.settings.relevant_from)
    if not on_scale:
        values |= dict.fromkeys(_ON_THE_SCALE)  # scores that only order items
    why = "it failed" if scores is None else "undefined"
    target = str(ratings.user_ids[user])
    return [
        Result(method, metric, value, target=target, detail=why if value is None else None)
        for metric, value in values.items()
    ]


def _prediction_errors(errors: FloatArray) -> dict[str, float | None]:
    values = float(np.sqrt((errors**2).mean())), float(np.abs(errors).mean())
    return dict(zip(_PREDICTION_METRICS, values, strict=True))


def _top_values(
    scores: FloatArray, ratings: FloatArray, relevant_from: float
) -> dict[str, float | None]:
    rates = [metric(scores, ratings, _TOP, relevant_from)
             for metric in (precision, recall, average_precision)]  # fmt: skip
    return dict(zip(_TOP_METRICS, [ndcg(scores, ratings, _TOP), *rates], strict=True))


def _named(name: str, kind: int) -> str:
    return f"{name} ({_KINDS[kind]})"


def _points(method: str) -> Sequence[Setting]:
    name, kind = method.removesuffix(")").rsplit(" (", 1)
    return LEARNERS[kind][name].grid


def _levels(study: Study) -> FloatArray:
    return study.data["ratings"].levels.astype(np.float64)


def _cost(scores: FloatArray, study: Study, user: int) -> float:
    split = split_of(study)
    held_out = rows_of(split, user)[1]
    value = measured(scores[held_out], split.test_ratings[held_out])["MSD"]
    assert value is not None
    return value


def _peer(study: Study, place: int) -> list[tuple[str, FloatArray]]:
    return _peer_of(study.data["ratings"], study.seed, place)


@lru_cache(maxsize=1)
def _peer_of(ratings: Any, seed: int, place: int) -> list[tuple[str, FloatArray]]:
    split = split_of(Study("modern", None, seed, {"ratings": ratings}))
    return list(peer_scores(PEERS[place], split, seed))


def _task(study: Study, kind: str, user: int) -> Task:
    settings: Modern = study.settings
    split = split_of(study)
    if kind == "reference":
        least = settings.reference_min
        return reference_task(study, split, user, settings.references, least)
    factors = factor_features(
        study.data["ratings"], study.seed, settings.rank, settings.factor_rounds
    )
    return factors.task(split, user)


def claims(settings: Modern) -> list[Claim]:
    """Return paired tests of MPRank on factors against everything else, on all metrics."""
    rivals = [
        *PEERS,
        *(_named(n, k) for k, kind in enumerate(_KINDS) for n in LEARNERS[kind]),
    ]
    less = [
        Claim(f"less than {rival}", metric, _BEST, rival, source="ours")
        for metric in (*METRICS, *_PREDICTION_METRICS)
        for rival in rivals
        if rival != _BEST and not (rival == "constant" and metric == "misranking")
        if metric == "misranking" or not rival.startswith(_NO_SCALE)
    ]
    # here more is better, so the claim is that the rival has less
    more = [
        Claim(f"more than {rival}", metric, rival, _BEST, source="ours")
        for metric in _TOP_METRICS
        for rival in rivals
        if rival != _BEST
    ]
    return less + more


EXPERIMENT = Experiment(
    name="modern",
    title="Learners and features beside other recommenders",
    source="ours",
    about=(
        "All methods learn from half of every user's ratings: recommenders for all users at once, "
        "and one model per test user by every learner. The features are the ratings of reviewers, "
        "or item factors with the expected ratings of the user. Settings are chosen on other "
        "users. The paired comparisons are those of MPRank on factors, user by user."
    ),
    settings=Modern,
    pilot=Pilot(lambda study: _units(study, sample(study).held_out), run_pilot, choose),
    units=lambda study: _units(study, sample(study).repeats[0]),
    run_unit=run_unit,
    needs=lambda settings: (Need("ratings", (MOVIELENS_1M, MOVIELENS_100K)),),
    claims=claims,
    average="target",
    higher_is_better=frozenset(_TOP_METRICS),
    deviations=(
        "The linear item model has one gain, which is fitted on held-out ratings, in its favour.",
        "RMSE and MAE are computed per user, then averaged over users.",
        "NDCG, precision, recall and MAP rank a user's held-out ratings, not all items, and take "
        "the first ten.",
        "ALS, item-kNN and SVD++ are compiled here, with the objectives of MLlib's ALS and of "
        "scikit-surprise.",
        "Grids are small, and some of the chosen settings are the first or the last of their grid.",
        "With reviewers as features only training ratings are used, and there is no item offset.",
    ),
    explanations=(
        "Learners of ranks predict one of few levels, the same for most items, and equal "
        "predictions count as misranked. Scores of RankSVM and RankBoost only order items.",
    ),
)
