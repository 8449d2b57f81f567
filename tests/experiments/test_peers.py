"""The recommenders to compare with, against twins written from the papers' sums."""

from __future__ import annotations

import numpy as np
import pytest

from spark_rank.experiments.peers import (
    Baseline,
    ItemNeighbours,
    LinearItems,
    Split,
    fit_baseline,
    svdpp_scores,
)

UNRATED = 11  # held out once, and in nobody's training part


def draw_split(seed: int, n_users: int = 14, n_items: int = 12) -> Split:
    """Draw ratings of users who rated from one to eight of the items but the unrated one."""
    rng = np.random.default_rng(seed)
    parts, tests = [], []
    for user in range(n_users):
        items = rng.permutation(n_items - 1)
        n_train, n_test = int(rng.integers(1, 7)), int(rng.integers(0, 4))
        parts.append(items[:n_train])
        tests.append([*items[n_train : n_train + n_test], *([UNRATED] if user == 3 else [])])
    flat, held_out = np.concatenate(parts), np.concatenate(tests)
    return Split(
        flat.astype(np.int32), rng.integers(1, 6, len(flat)).astype(float), ends_of(parts),
        held_out.astype(np.int32), rng.integers(1, 6, len(held_out)).astype(float),
        ends_of(tests), n_items,
    )  # fmt: skip


def ends_of(parts: list) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def own_ratings(split: Split, user: int) -> dict[int, float]:
    own = slice(split.ends[user], split.ends[user + 1])
    return dict(zip(split.items[own].tolist(), split.ratings[own].tolist(), strict=True))


def held_out(split: Split) -> list[tuple[int, int]]:
    return list(zip(split.held_out_users().tolist(), split.test_items.tolist(), strict=True))


def twin_residuals(split: Split, baseline: Baseline) -> list[dict[int, float]]:
    return [
        {
            item: rating - baseline.mean - baseline.user[user] - baseline.item[item]
            for item, rating in own_ratings(split, user).items()
        }
        for user in range(len(split.ends) - 1)
    ]


def test_the_baseline_is_the_alternation_of_ridge_regressions() -> None:
    split = draw_split(0)
    n_users = len(split.ends) - 1
    everyone = [own_ratings(split, user) for user in range(n_users)]
    mean = np.mean([rating for own in everyone for rating in own.values()])
    user_level, item_level = [0.0] * n_users, [0.0] * split.n_items
    for _ in range(3):
        for item in range(split.n_items):
            rest = [own[item] - mean - user_level[u] for u, own in enumerate(everyone)
                    if item in own]  # fmt: skip
            item_level[item] = sum(rest) / (len(rest) + 4.0)
        for user, own in enumerate(everyone):
            rest = [rating - mean - item_level[item] for item, rating in own.items()]
            user_level[user] = sum(rest) / (len(rest) + 2.0)
    found = fit_baseline(split, user_ridge=2.0, item_ridge=4.0, rounds=3)
    np.testing.assert_allclose(found.user, user_level, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.item, item_level, rtol=1e-12, atol=1e-14)
    expected = [mean + user_level[u] + item_level[i] for u, i in held_out(split)]
    np.testing.assert_allclose(found.scores(split), expected)


def twin_similarity(residuals: list[dict[int, float]], a: int, b: int, shrinkage: float) -> float:
    both = [(own[a], own[b]) for own in residuals if a in own and b in own]
    if len(both) < 2:
        return 0.0
    product = sum(x * y for x, y in both)
    norms = sum(x * x for x, _ in both) * sum(y * y for _, y in both)
    return (len(both) - 1) / (len(both) - 1 + shrinkage) * product / norms**0.5


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_those_of_the_sums_over_common_users(seed: int) -> None:
    split = draw_split(seed)
    model = ItemNeighbours(split)
    residuals = twin_residuals(split, model.baseline)
    found = model.scores(1.5, (1, 2, 4))
    assert list(found) == [1, 2, 4]
    level = model.baseline.scores(split)
    for k, scores in found.items():
        for place, (user, target) in enumerate(held_out(split)):
            near = [(twin_similarity(residuals, target, item, 1.5), value)
                    for item, value in residuals[user].items()]  # fmt: skip
            near = [(s, value) for s, value in near if s > 0.0]
            near = sorted(near, key=lambda pair: -pair[0])[:k]
            weight = sum(s for s, _ in near)
            mean = sum(s * value for s, value in near) / weight if near else 0.0
            assert scores[place] == pytest.approx(level[place] + mean, abs=1e-12)


def twin_svdpp(
    split: Split, factors: int, rate: float, ridge: float, epochs: int, seed: int
) -> list[float]:
    """Move every implicit vector of the user at every rating, as Koren's rules say."""
    rng = np.random.default_rng(seed)
    n_users = len(split.ends) - 1
    p, q, y = (rng.normal(0.0, 0.1, (n, factors)) for n in (n_users, split.n_items, split.n_items))
    q[UNRATED] = 0.0
    b, c, mean = np.zeros(n_users), np.zeros(split.n_items), split.ratings.mean()
    for _ in range(epochs):
        for user in range(n_users):
            own = own_ratings(split, user)
            for item, rating in own.items():
                whole = p[user] + y[list(own)].sum(axis=0) / len(own) ** 0.5
                error = rating - mean - b[user] - c[item] - q[item] @ whole
                b[user] += rate * (error - ridge * b[user])
                c[item] += rate * (error - ridge * c[item])
                before = q[item].copy()
                q[item] += rate * (error * whole - ridge * before)
                p[user] += rate * (error * before - ridge * p[user])
                for other in own:
                    y[other] += rate * (error * before / len(own) ** 0.5 - ridge * y[other])
    wholes = [p[u] + y[list(own_ratings(split, u))].sum(axis=0) / len(own_ratings(split, u)) ** 0.5
              for u in range(n_users)]  # fmt: skip
    return [mean + b[u] + c[i] + q[i] @ wholes[u] for u, i in held_out(split)]


@pytest.mark.parametrize("seed", range(2))
def test_svdpp_takes_korens_steps(seed: int) -> None:
    split = draw_split(seed)
    chosen = {"factors": 3, "rate": 0.05, "ridge": 0.3, "seed": seed}
    for epochs, scores in svdpp_scores(split, epochs=(2, 7), **chosen):
        np.testing.assert_allclose(scores, twin_svdpp(split, epochs=epochs, **chosen), rtol=1e-9)


def test_the_linear_model_is_ridge_regression_of_each_item_on_the_others() -> None:
    split = draw_split(1)
    model = LinearItems(split)
    residuals = np.zeros((len(split.ends) - 1, split.n_items))
    for user, own in enumerate(twin_residuals(split, model.baseline)):
        residuals[user, list(own)] = list(own.values())
    weights = model.weights(2.0)
    sums = []
    for target in range(split.n_items):
        others = np.delete(np.arange(split.n_items), target)
        X = residuals[:, others]
        solution = np.linalg.solve(X.T @ X + 2.0 * np.eye(len(others)), X.T @ residuals[:, target])
        np.testing.assert_allclose(weights[others, target], solution, atol=1e-12)
        assert weights[target, target] == 0.0
    sums = [
        residuals[u] @ weights[:, i] / (20.0 + len(own_ratings(split, u))) ** 0.5
        for u, i in held_out(split)
    ]
    level = model.baseline.scores(split)
    rest = split.test_ratings - level
    gain = np.linalg.lstsq(np.array(sums)[:, None], rest)[0][0]
    np.testing.assert_allclose(model.scores(2.0), level + gain * np.array(sums), atol=1e-10)


def test_many_users_are_taken_block_by_block() -> None:
    split = draw_split(5, n_users=1100)
    model = LinearItems(split)
    whole = (model.residuals @ model.weights(3.0))[split.held_out_users(), split.test_items]
    damped = whole / np.sqrt(np.diff(split.ends) + 20.0)[split.held_out_users()]
    level = model.baseline.scores(split)
    gain = damped @ (split.test_ratings - level) / (damped @ damped)
    np.testing.assert_allclose(model.scores(3.0), level + gain * damped, atol=1e-10)


def test_an_item_nobody_rated_gets_the_users_level() -> None:
    split = draw_split(2)
    place = held_out(split).index((3, UNRATED))
    baseline = fit_baseline(split)
    level = baseline.mean + baseline.user[3]
    assert ItemNeighbours(split).scores(1.0, (3,))[3][place] == pytest.approx(level)
    assert LinearItems(split).scores(1.0)[place] == pytest.approx(level)
    # whatever is drawn, the item has no factors; without a step levels are zero
    last = [
        dict(svdpp_scores(split, factors=2, rate=0.0, ridge=0.1, epochs=(1,), seed=s))[1][place]
        for s in (0, 1)
    ]
    assert last == pytest.approx([baseline.mean] * 2)
