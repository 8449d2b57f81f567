"""What the page computes is what Python computes, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spark_rank.demo.contents import Contents
from spark_rank.demo.quantised import Quantised
from spark_rank.demo.scale import DemoScale
from spark_rank.features.choice import Choice
from spark_rank.features.files import open_files, write_files
from spark_rank.learners import ItemOffsetScorer, MPRank, PRank
from spark_rank.learners.ridge.systems import ridge_of
from spark_rank.reader.folding import NOBODY, block_of, learned
from spark_rank.users.explaining import Influences
from spark_rank.users.fitting import Limits
from spark_rank.users.joining import ScoringLearner, as_scoring
from spark_rank.users.learning import LearnJob
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec
from spark_rank.users.stored_models import StoredModels
from tests.demo.made import (
    CSV_IDS,
    CSV_LEVELS,
    HALF,
    PARAMS,
    RATINGS_CSV,
    made_choices,
    made_contents,
    naive_variance,
    scale_of,
    start_of,
)

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Items = NDArray[np.int64]
EXACT = {"rtol": 0, "atol": 1e-9}


def drawn(contents: Contents, count: int, seed: int = 0) -> tuple[Items, NDArray[np.float64]]:
    """Draw some items and ratings of the scale, not all of them equal."""
    rng = np.random.default_rng(seed)
    items = rng.choice(len(contents.item_ids), count, replace=False)
    scale = contents.scale
    ratings = rng.choice(scale.levels, count)
    if scale.free:
        ratings = rng.uniform(scale.low, scale.high, count).round(2)
    ratings[:2] = scale.levels[0], scale.levels[-1]
    return items, ratings.astype(np.float32).astype(np.float64)


def fitted_in_page(page: Any, items: Items, ratings: NDArray[np.float64]) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(
        """([items, ratings]) => {
          const model = fitMPRank(run, items, ratings);
          const scores = scoresOf(run, model);
          return {
            coef: [...model.coef], intercept: model.intercept, expected: [...model.expected],
            scores: [...scores], learned: model.learned,
            intervals: run.ids.map((_, item) => scoreInterval(run, model, item, scores[item])),
            pulls: run.ids.map((_, item) => pullsOf(run, model, item)),
          };
        }""",
        [items.tolist(), ratings.tolist()],
    )
    return found


SCALES = {
    "whole": None, "half": scale_of(HALF), "jester": DemoScale.continuous(-10.0, 10.0),
}  # fmt: skip


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("with_prior", [True, False], ids=["prior", "no-prior"])
def test_mprank_is_the_learner(opened: Open, scale: str, with_prior: bool) -> None:
    contents = made_contents(80, 12, scale=SCALES[scale], with_prior=with_prior)
    page = opened(contents)
    features = contents.features.numbers()
    for count in (3, 8, 12, 13, 40):  # fewer ratings than features, as many, more
        items, ratings = drawn(contents, count, seed=count)
        found = fitted_in_page(page, items, ratings)
        start = start_of(contents, items)
        learner = MPRank(**PARAMS).fit(features[items], ratings, offset=start[items])
        assert found["learned"]
        assert learner.coef_ is not None
        np.testing.assert_allclose(found["coef"], learner.coef_, **EXACT)
        np.testing.assert_allclose(found["intercept"], learner.intercept_, **EXACT)
        scores = learner.decision_function(features, offset=start)
        np.testing.assert_allclose(found["scores"], scores, **EXACT)
        ridge = ridge_of(PARAMS["C"], PARAMS["ridge"], PARAMS["growth"], count)
        half = 1.6448536269514722 * np.sqrt(0.8 * naive_variance(features, items.tolist(), ridge))
        ends = np.column_stack([scores - half, scores + half])
        np.testing.assert_allclose(found["intervals"], ends, rtol=0, atol=1e-8)
        for item in (0, 17):
            pulls = {each["item"]: each["pull"] for each in found["pulls"][item]}
            assert sum(pulls.values()) == pytest.approx(float(features[item] @ learner.coef_))
            assert pulls.keys() == set(items.tolist())


def test_other_ridges_are_the_learners(opened: Open) -> None:
    learners = (MPRank(C=0.3), MPRank(C=10.0, ridge="fixed", growth=0.5))
    for number, params in enumerate(learner.get_params() for learner in learners):
        contents = made_contents(40, 4, params=params, seed=number)
        items, ratings = drawn(contents, 9)
        found = fitted_in_page(opened(contents), items, ratings)
        start, features = start_of(contents, items), contents.features.numbers()
        learner = MPRank(**params).fit(features[items], ratings, offset=start[items])
        scores = learner.decision_function(features, offset=start)
        np.testing.assert_allclose(found["scores"], scores, **EXACT)


@pytest.mark.parametrize(("count", "equal"), [(1, True), (2, False), (6, True)])
def test_too_few_or_equal_ratings_teach_the_constant(opened: Open, count: int, equal: bool) -> None:
    contents = made_contents()
    items, ratings = drawn(contents, max(count, 2))
    items, ratings = items[:count], np.full(count, 4.0) if equal else ratings[:count]
    found = fitted_in_page(opened(contents), items, ratings)
    start = start_of(contents, items)
    X = contents.features.numbers()
    fallback = ItemOffsetScorer().fit(X[items], ratings, offset=start[items])
    assert not found["learned"]
    np.testing.assert_allclose(
        found["scores"], fallback.decision_function(X, offset=start), **EXACT
    )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("passes", [1, 5])
def test_prank_has_the_same_bits(opened: Open, scale: str, passes: int) -> None:
    contents = made_contents(60, 11, scale=SCALES[scale])
    items, ratings = drawn(contents, 25, seed=passes)
    found = opened(contents).evaluate(
        """([items, ratings, passes]) => {
          const model = fitPRank(run, items, ratings, passes);
          const {coef, thresholds, rounds} = model;
          return {
            coef: [...coef], thresholds, rounds, scores: [...prankScores(run, model)],
            ranks: model.ranks,
            start: run.ids.map((_, item) => priorScore(run, model.expected, item)),
            pulls: prankPulls(run, model, 3),
          };
        }""",
        [items.tolist(), ratings.tolist(), passes],
    )
    start = start_of(contents, items)
    np.testing.assert_allclose(found["start"], start, **EXACT)
    # the same numbers go into both, so that even the bits of the rule are the same
    X = np.column_stack([contents.features.numbers(), np.array(found["start"])])
    k = len(contents.scale.levels)
    ranks = 1 + np.searchsorted(contents.scale.cuts, ratings, side="right")
    assert found["ranks"] == ranks.tolist()
    learner = PRank(k, epochs=passes).fit(X[items], ranks)
    np.testing.assert_array_equal(found["coef"], learner.coef_)
    np.testing.assert_array_equal(found["thresholds"], learner.thresholds_)
    np.testing.assert_array_equal(found["scores"], learner.decision_function(X))
    losses = [abs(each["predicted"] - each["rank"]) for each in found["rounds"]]
    online = np.cumsum(losses) / np.arange(1, len(losses) + 1)
    np.testing.assert_allclose(online, learner.online_loss_, rtol=1e-12)
    for each in found["rounds"]:
        assert each["after"] == sorted(each["after"])
        moved = [tau for tau in each["moves"] if tau != 0]
        assert abs(each["predicted"] - each["rank"]) <= len(moved)
        assert sum(moved) == each["amount"]
    pulls = sum(each["pull"] for each in found["pulls"])
    assert pulls == pytest.approx(found["scores"][3])


def exact_contents() -> Contents:
    """Return contents whose numbers single precision holds, as feature files have them."""
    rng = np.random.default_rng(5)
    features, prior = (
        Quantised(rng.integers(-20_000, 20_000, (70, 9)).astype(np.int16), np.full(9, 2.0**-scale))
        for scale in (14, 17)
    )
    ends = rng.normal(0, 0.2, (2, 9)).astype(np.float32).astype(np.float64)
    return made_contents(70, 9, features=features, prior=prior, prior_ends=ends)


def test_the_page_folds_in_as_the_reader_does(opened: Open, tmp_path: Path) -> None:
    contents = exact_contents()
    assert contents.prior is not None
    prior = np.vstack([contents.prior.numbers(), contents.prior_ends])
    files = write_files(
        tmp_path, contents.features.numbers().astype(np.float32), contents.offset,
        prior.astype(np.float32), list(contents.item_ids),
    )  # fmt: skip
    features = open_files(files, str(tmp_path))
    scale = RankScale(contents.scale.levels)
    specs = (
        LearnerSpec("mprank", "mprank", True, PARAMS),
        LearnerSpec("prank", "prank", True, {"epochs": 2}),
    )
    job = LearnJob(files, specs, {}, 3, 1.0, Limits(scale, 4000, 500, 5))
    page = opened(contents)
    for count in (5, 9, 30):
        items, ratings = drawn(contents, count, seed=count)
        block = block_of(NOBODY, "", items, ratings)
        found = fitted_in_page(page, items, ratings)
        # a row has its weights in single precision
        row = learned(block, ScoringLearner("mprank", None), job, features)
        weights = np.add(found["coef"], found["expected"])
        np.testing.assert_allclose(row.column("weights")[0].as_py(), weights, atol=1e-6)
        assert row.column("intercept")[0].as_py() == pytest.approx(found["intercept"], abs=1e-9)
        model = StoredModels(as_scoring(row).to_batches()[0], features.item_ids)[0]
        scores = model.scores(features, np.arange(70))
        np.testing.assert_allclose(found["scores"], scores, atol=1e-5)
        if count <= 9:  # with more ratings than features there are many coefficients
            expected = features.expected_weights(items.astype(np.int32))
            pulls = Influences(model, features, items, expected, True).rated_items(3)
            by_item = {each["item"]: each["pull"] for each in found["pulls"][3]}
            own = [by_item[item] for item in pulls.numbers.tolist()]
            np.testing.assert_allclose(own, pulls.amounts, atol=1e-4)
        row = learned(block, ScoringLearner("prank", None), job, features)
        thresholds = page.evaluate(
            "([items, ratings]) => fitPRank(run, items, ratings, 2).thresholds",
            [items.tolist(), ratings.tolist()],
        )
        assert row.column("thresholds")[0].as_py() == thresholds


def test_choices_order_the_list_as_the_run_does(opened: Open) -> None:
    choices = made_choices(60, 7)
    contents = made_contents(60, 5, choices=choices)
    ends = np.concatenate([choices.encoder.numbers(), choices.encoder_ends]).astype(np.float32)
    choice = Choice(choices.decoder.numbers().astype(np.float32), ends)
    page = opened(contents)
    items, ratings = drawn(contents, 9)
    found = page.evaluate(
        """([items, ratings]) => {
          let state = emptyState();
          items.forEach((item, i) => { state = withRating(state, item, ratings[i]); });
          take(state);
          return {scores: [...view.scores], values: [...listValues()], list: unseenItems()};
        }""",
        [items.tolist(), ratings.tolist()],
    )
    (code,) = choice.codes(items.astype(np.int32), np.array([0, len(items)]))
    values = np.array(found["scores"]) + 3.0 * (choice.decoder.astype(np.float64) @ code)
    np.testing.assert_allclose(found["values"], values, **EXACT)
    unseen = [item for item in np.argsort(-values) if contents.listed[item] and item not in items]
    assert found["list"] == unseen
    page.uncheck("#choices")
    by_score = page.evaluate("unseenItems()")
    scores = found["scores"]
    assert by_score == sorted(unseen, key=lambda item: -scores[item]) != unseen
    page.check("input[value=prank]")
    assert page.locator("#choices").is_hidden()


def mean_variance(contents: Contents, rated: list[int], ridge: float) -> float:
    return float(naive_variance(contents.features.numbers(), rated, ridge)[contents.listed].mean())


def test_the_most_telling_items_are_those_of_brute_force(opened: Open) -> None:
    contents = made_contents(50, 5)
    page = opened(contents)
    for rated in ([], [4], [4, 7, 30, 2, 3, 9, 11]):
        found = page.evaluate(
            "(rated) => informative(run, moments, rated, new Set(rated), 4)", rated
        )
        known = list(rated)
        for item in found:
            # the ridge is that of one rating more than there are; without any, of the first two
            size = max(len(rated), min(len(known), 1)) + 1
            ridge = ridge_of(PARAMS["C"], PARAMS["ridge"], PARAMS["growth"], size)
            left = [each for each in range(50) if each not in known]
            variances = [mean_variance(contents, [*known, each], ridge) for each in left]
            assert item == left[int(np.argmin(variances))]
            known.append(item)


def test_what_nobody_rated_is_not_proposed(opened: Open) -> None:
    counts = np.array([5, 4, 3, 0, 0])
    contents = made_contents(5, 3, n_ratings=counts)
    page = opened(contents)
    assert page.evaluate("informative(run, moments, [], new Set([1]), 9).sort()") == [0, 2]
    assert page.evaluate("wellKnown(run, new Set([0]), 9)") == [1, 2]


def test_a_model_from_the_page_goes_on_in_python(opened: Open) -> None:
    contents = made_contents()
    items, ratings = drawn(contents, 12)
    X = contents.features.numbers()
    page = opened(contents)
    text, other = page.evaluate(
        """([items, ratings]) => [fitMPRank(run, items, ratings), fitPRank(run, items, ratings, 2)]
           .map((model) => modelAsJSON(run, model))""",
        [items.tolist(), ratings.tolist()],
    )
    start = start_of(contents, items)
    exported = json.loads(text)
    learner = MPRank.from_params(exported)
    own = MPRank(**PARAMS).fit(X[items], ratings, offset=start[items])
    assert exported.keys() == {*own.to_params(), "demonstration"}
    np.testing.assert_allclose(
        learner.decision_function(X, offset=start), own.decision_function(X, offset=start), **EXACT
    )
    assert learner.objective_ == pytest.approx(own.objective_)
    np.testing.assert_array_equal(
        learner.predict(X, offset=start), np.clip(learner.decision_function(X, start), 1, 5)
    )
    ranker = PRank.from_params(json.loads(other))
    assert json.loads(other).keys() == {
        *PRank(5).fit(X, np.ones(len(X))).to_params(),
        "demonstration",
    }
    rows = np.column_stack([X, start])
    ranks = ratings.astype(int)
    again = PRank(5, epochs=2).fit(rows[items], ranks)
    np.testing.assert_array_equal(ranker.predict(rows), again.predict(rows))
    assert ranker.total_loss_ == again.total_loss_
    ranker.partial_fit(rows[:3], [1, 2, 3])
    for kind, model in (("mprank", text), ("prank", other)):
        scored = page.evaluate(
            f"(text) => [...{'scoresOf' if kind == 'mprank' else 'prankScores'}"
            "(run, modelFromJSON(run, text))]",
            model,
        )
        expected = (
            learner.decision_function(X, start)
            if kind == "mprank"
            else again.decision_function(rows)
        )
        np.testing.assert_allclose(scored, expected, **EXACT)
    plain = json.dumps(
        {name: value.tolist() if isinstance(value, np.ndarray) else value
         for name, value in own.to_params().items()}
    )  # fmt: skip
    scored = page.evaluate("(text) => [...scoresOf(run, modelFromJSON(run, text))]", plain)
    np.testing.assert_allclose(scored, X @ own.coef_ + own.intercept_ + contents.offset, **EXACT)


def test_ratings_go_out_and_in_again(opened: Open) -> None:
    contents = made_contents(5, 3, item_ids=CSV_IDS, scale=scale_of(CSV_LEVELS))
    page = opened(contents)
    levels = contents.scale.levels
    text = page.evaluate(
        "(ratings) => ratingsAsCSV(run, [0, 1, 2, 3, 4], ratings, 'me')", list(levels)
    )
    assert text == RATINGS_CSV
    again = page.evaluate("(text) => ratingsFromCSV(run, text)", text)
    assert again == {"items": [0, 1, 2, 3, 4], "ratings": list(levels), "skipped": 0}
    mixed = (
        "\ufeffRating,item,user\r\n0.2,plain,a\r\n0.4,nobody,a\r\n0.5,ünï,a\r\n,ünï,a\n1,ünï,b\n\n"
    )
    again = page.evaluate("(text) => ratingsFromCSV(run, text)", mixed)
    assert again == {"items": [0], "ratings": [levels[0]], "skipped": 4}


def test_a_search_finds_words_whatever_their_case_and_accents(opened: Open) -> None:
    titles = ["Amélie", "The Ame", "A game", "Blame", "Ämélie, part II", None]
    contents = made_contents(6, 3, titles=titles, item_ids=list("abcdef"))
    page = opened(contents)

    def found(text: str, without: str = "[]") -> list[int]:
        items: list[int] = page.evaluate(
            f"(text) => search(titles, text, new Set({without})).items", text
        )
        return items

    assert found("AME") == [0, 4, 1, 2, 3]
    assert found("amelie") == [0, 4]
    assert found("part ame") == [4]
    assert found("item f") == [5]
    assert found("ame", "[0, 1]") == [4, 2, 3]
    assert found("  ") == found("zzz") == []
