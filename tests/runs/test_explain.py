"""explain: one user's scores, taken apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.report.explanation import as_text
from spark_rank.runs.users import Question, answer, open_run
from spark_rank.store.run import Run
from tests.predicted import predicted

MakeConfig = Callable[..., Config]


def query(run: Run, text: str) -> list[tuple[Any, ...]]:
    for table in ("models", "blocks", "items", "recommendations", "panel", "item_features",
                  "final_models", "final_panel", "final_item_features"):  # fmt: skip
        text = text.replace(f"<{table}>", f"'{run.path(table).removeprefix('file:')}/**/*.parquet'")
    return duckdb.sql(text).fetchall()


@pytest.fixture(scope="module")
def user(finished: Run) -> str:
    learned = "select user_id from <models> where learner = 'linear' and status = 'learned'"
    return str(
        query(finished, f"{learned} and n_train between 6 and 20 order by user_id limit 1")[0][0]
    )


def test_own_ratings_stand_beside_the_list_of_the_run(
    finished: Run, user: str, make_config: MakeConfig
) -> None:
    found = answer(make_config(), finished, Question(user, learner="linear", count=4))
    assert json.loads(json.dumps(found)) == found
    listed = query(
        finished,
        "select list, position, item_id, score from <recommendations> "
        f"where user_id = '{user}' order by list desc, position",
    )
    shown = [(name, row["position"], row["item_id"], row["score"])
             for name in ("top", "bottom") for row in found[name]]  # fmt: skip
    assert shown == listed
    items, ratings, _ = own_ratings(finished, user)
    own = {row["item_id"]: row for row in found["own_ratings"]}
    assert {item: row["rating"] for item, row in own.items()} == dict(
        zip(items, ratings, strict=True)
    )
    # the models that make the lists are from all ratings
    assert {row["part"] for row in own.values()} == {"training"}
    order = [(-row["score"], row["item_id"]) for row in found["own_ratings"]]
    assert order == sorted(order)
    ((weights,),) = query(
        finished,
        f"select weights from <final_models> where user_id = '{user}' and learner = 'linear'",
    )
    # the features of this run are reviewers
    panel = dict(query(finished, "select feature, user_id from <final_panel>"))
    assert 0 < len(found["features"]) <= 4
    for row in found["features"]:
        assert row["name"] == f"reviewer {panel[row['feature']]}"
        assert row["weight"] == weights[row["feature"]]
    assert {row["item_id"] for row in found["rated_items"]} <= set(items)
    assert f"user {user}, linear: learned" in as_text(found)
    text = as_text(found, everything=True)
    assert found["features"][0]["name"] in text


def own_ratings(run: Run, user: str) -> tuple[list[str], list[float], int]:
    """Return the items that the user has rated, the ratings, and how many are for training."""
    (found,) = query(
        run,
        f"""select list_transform(b.items, lambda i: d.ids[i + 1]), b.ratings, n_train
            from <blocks> b, (select list(item_id order by item) ids from <items>) d
            where user_id = '{user}'""",
    )
    return found


def test_of_other_learners_the_measured_models_are_explained(
    finished: Run, user: str, make_config: MakeConfig
) -> None:
    found = answer(make_config(), finished, Question(user, learner="rbf"))
    items, _, n_train = own_ratings(finished, user)
    own = {row["item_id"]: row for row in found["own_ratings"]}
    assert [own[item]["part"] for item in items] == ["training"] * n_train + ["held out"] * (
        len(items) - n_train
    )
    scores = predicted(finished)[user, "rbf"].scores
    assert [own[item]["score"] for item in items[n_train:]] == pytest.approx(scores, rel=1e-4)
    assert {row["item_id"] for row in found["rated_items"]} <= set(items[:n_train])


def test_an_items_score_is_taken_apart(finished: Run, user: str, make_config: MakeConfig) -> None:
    for learner in ("linear", "rbf"):
        model = open_run(make_config(), finished, learner).model_of(user)
        lists = model.explain()
        for row in (lists["top"][0], lists["own_ratings"][-1]):
            item = model.explain(row["item_id"], count=1000)["item"]
            assert item["score"] == row["score"] == pytest.approx(sum(item["parts"].values()))
            pulls = sum(pull["pull"] for pull in item["rated_items"])
            learned = [part for name, part in item["parts"].items() if name.startswith("learned")]
            assert pulls == pytest.approx(sum(learned), abs=1e-5)
    found = answer(make_config(), finished, Question(user, row["item_id"], "rbf"))
    assert found["item"]["score"] == row["score"]
    assert "own_ratings" not in found


def test_who_is_not_there_is_told_with_ids_that_are_near(
    finished: Run, user: str, make_config: MakeConfig
) -> None:
    with pytest.raises(ConfigError, match=rf"--user: .*no user '{user}x'.*did you mean '{user}'"):
        answer(make_config(), finished, Question(f"{user}x"))
    with pytest.raises(ConfigError, match=r"--item: .*no item 'nothing'.*did you mean"):
        answer(make_config(), finished, Question(user, "nothing"))
    with pytest.raises(
        ConfigError, match=r"no models of 'three', only of linear, rbf, item_offset"
    ):
        answer(make_config(), finished, Question(user, learner="three"))
    assert ConfigError.exit_code == 2


def test_the_item_offset_makes_lists_and_is_taken_apart(
    finished: Run, user: str, make_config: MakeConfig
) -> None:
    config = make_config("recommend.learner=item_offset")
    lists = answer(config, finished, Question(user, learner="item_offset"))
    offsets = query(
        finished,
        f"""select f.item_id, m.intercept + f."offset" as score
            from <final_models> m, <final_item_features> f, (select items from <blocks>
                                                 where user_id = '{user}') b
            where m.user_id = '{user}' and m.learner = 'item_offset'
              and not list_contains(b.items, f.item) order by score desc, f.item_id limit 10""",
    )
    assert [row["item_id"] for row in lists["top"]] == [item for item, _ in offsets]
    assert [row["score"] for row in lists["top"]] == pytest.approx([score for _, score in offsets])
    asked = answer(config, finished, Question(user, offsets[0][0], "item_offset"))
    parts = asked["item"]["parts"]
    assert parts.keys() == {"constant", "item offset"}
    assert sum(parts.values()) == pytest.approx(offsets[0][1])
    assert "item_offset: learned" in as_text(asked)


def test_a_run_without_models_is_told(finished: Run, make_config: MakeConfig) -> None:
    config = make_config()
    with pytest.raises(ConfigError, match="has no models yet"):
        answer(config, Run(finished.spark, config.store, "empty"), Question("1"))
