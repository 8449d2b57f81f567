"""`Recommender`: the values of a run's tables, without Spark."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from spark_rank import Recommender
from spark_rank.errors import ConfigError, ContractError, UnknownIdError
from spark_rank.store.run import Run
from spark_rank.users import learning
from spark_rank.users.specs import LearnerSpec

Row = dict[str, Any]
KINDS = (
    "panel", "factor",
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("every", "reference")),
)  # fmt: skip


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(f"{request.param}_run")
    return found


def place(run: Run) -> Path:
    return Path(run.root.removeprefix("file:"))


def table(run: Run, name: str) -> list[Row]:
    rows: list[Row] = pq.read_table(place(run) / name).to_pylist()
    return rows


def labels(run: Run) -> list[str]:
    return sorted({row["learner"] for row in table(run, "predictions")} - {"constant"})


def ratings_of(run: Run, user_id: str, *, training: bool = False) -> dict[str, float]:
    """Return a user's ratings in the order of the block."""
    ids = {row["item"]: row["item_id"] for row in table(run, "items")}
    (block,) = [row for row in table(run, "blocks") if row["user_id"] == user_id]
    last = block["n_train"] if training else len(block["items"])
    rated = zip(block["items"][:last], block["ratings"][:last], strict=True)
    return {ids[item]: rating for item, rating in rated}


def test_lists_are_those_of_the_table(run: Run) -> None:
    reader = Recommender.open(place(run))
    expected: dict[str, list[Row]] = {}
    for row in table(run, "recommendations"):
        if row["list"] == "top":
            del row["schema_version"]
            expected.setdefault(row["user_id"], []).append(row)
    assert len(expected) > 40
    for user_id, rows in expected.items():
        rows.sort(key=lambda row: row["position"])
        assert reader.recommend(user_id, 10) == rows
        assert reader.recommend(user_id, 3) == rows[:3]
    assert reader.list_length == 10


def test_scores_are_those_of_the_table(run: Run) -> None:
    rows = table(run, "predictions")
    compared = 0
    for label in labels(run):
        reader = Recommender.open(place(run), learner=label, measured=True)
        own: dict[str, list[Row]] = {}
        for row in rows:
            if row["learner"] == label:
                own.setdefault(row["user_id"], []).append(row)
        for user_id, predicted in own.items():
            scores = reader.score(user_id, [row["item_id"] for row in predicted])
            # the table has them in single precision
            np.testing.assert_allclose(
                scores, [row["score"] for row in predicted], rtol=1e-5, atol=1e-5
            )
            compared += len(scores)
    assert compared == sum(row["learner"] != "constant" for row in rows) > 1000


def chances(reader: Recommender, user_id: str, item_ids: list[str]) -> Any:
    """Return what the user's choices say of some items, as `recommend.beta` weighs them."""
    features = reader._items.features
    if features.choice is None or not reader.user(user_id)["on_rating_scale"]:
        return np.zeros(len(item_ids))
    items = np.array(reader.model_of(user_id).block["items"], dtype=np.int32)
    code = features.choice.codes(items, np.array([0, len(items)]))[0]
    places = [reader.item_ids.index(item_id) for item_id in item_ids]
    return features.choice.decoder[places].astype(float) @ code


def test_every_learner_lists_by_its_scores(run: Run) -> None:
    for label in labels(run):
        reader = Recommender.open(place(run), learner=label)
        for user_id in ("1", "7", "30"):
            seen = ratings_of(run, user_id)
            unseen = [item for item in reader.item_ids if item not in seen]
            scores = reader.score(user_id, unseen)
            values = scores + 6.0 * chances(reader, user_id, unseen)
            order = sorted(range(len(unseen)), key=lambda at: (-values[at], unseen[at]))
            found = reader.recommend(user_id, 5)
            assert [row["item_id"] for row in found] == [unseen[at] for at in order[:5]]
            assert [row["score"] for row in found] == [scores[at] for at in order[:5]]
            listed = [row["list_score"] for row in found]
            assert listed == pytest.approx([values[at] for at in order[:5]])


def test_a_folded_user_has_the_row_of_the_table(run: Run) -> None:
    for label in labels(run):
        reader = Recommender.open(place(run), learner=label, measured=True)
        source = "ensemble_models" if label in ("oap_bpm", "bag", "votes") else "models"
        rows = [row for row in table(run, source) if row["learner"] == label]
        for row in rows[:8]:
            own = ratings_of(run, row["user_id"], training=True)
            folded = reader.fold_in(own, user_id=row["user_id"])
            # without held-out ratings, the disagreement of the members there is undefined
            free = ("n_test", "bucket", "disagreement")
            for name, value in folded.row.items():
                if name not in free:
                    np.testing.assert_equal(value, row[name], err_msg=f"{label}: {name}")


def test_a_folded_user_gets_the_lists_of_the_table(run: Run) -> None:
    reader = Recommender.open(place(run))
    for user_id in list(dict.fromkeys(r["user_id"] for r in table(run, "recommendations")))[:20]:
        folded = reader.fold_in(ratings_of(run, user_id), user_id=user_id)
        same = [{**row, "bucket": None} for row in reader.recommend(user_id)]
        assert folded.recommend() == same


def test_new_users_may_have_rated_next_to_nothing(run: Run) -> None:
    reader = Recommender.open(place(run))
    first, second, *_ = reader.item_ids
    folded = reader.fold_in({first: 5.0})
    assert (folded.row["status"], folded.row["reason"]) == ("fallback", "too_few_ratings")
    assert {row["source"] for row in folded.recommend(2)} <= {"fallback", "new_item"}
    assert reader.fold_in({first: 5.0, second: 2.0}).row["n_train"] == 2
    with pytest.raises(ConfigError, match="at least one rating"):
        reader.fold_in({})
    with pytest.raises(UnknownIdError, match="no item 'nothing'"):
        reader.fold_in({"nothing": 5.0})
    for wrong in ("five", True, None, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match=first):
            reader.fold_in({first: wrong})  # type: ignore[dict-item]


def test_a_user_whose_learner_fails_gets_the_item_offsets_list(
    panel_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Recommender.open(place(panel_run))
    own = ratings_of(panel_run, "7")
    expected = Recommender.open(place(panel_run), learner="item_offset").fold_in(own).recommend()
    alone, together = learning._learned_columns, learning.learn_together

    def columns(problem: Any, spec: LearnerSpec, *given: Any) -> Any:
        if spec.label == "linear":
            raise RuntimeError("no such luck")
        return alone(problem, spec, *given)

    def nothing_together(spec: LearnerSpec, *given: Any) -> Any:
        return None if spec.label == "linear" else together(spec, *given)

    monkeypatch.setattr(learning, "learn_together", nothing_together)
    monkeypatch.setattr(learning, "_learned_columns", columns)
    folded = reader.fold_in(own)
    assert folded.row["status"] == "failed"
    found = folded.recommend()
    names = ("item_id", "score", "position")
    assert [[row[name] for name in names] for row in found] == [
        [row[name] for name in names] for row in expected
    ]
    assert {row["source"] for row in found} == {"item_offset"}


def test_excluded_items_are_in_no_list(panel_run: Run) -> None:
    reader = Recommender.open(place(panel_run))
    four = reader.recommend("7", 4)
    gone = [four[0]["item_id"], four[2]["item_id"], "an item that came after the run"]
    left = reader.recommend("7", 2, exclude=gone)
    assert [row["item_id"] for row in left] == [four[1]["item_id"], four[3]["item_id"]]
    assert reader.recommend("7", 0) == []
    assert reader.recommend("7", 5, exclude=reader.item_ids) == []


def test_unknown_ids_are_named(panel_run: Run, factor_run: Run) -> None:
    reader = Recommender.open(place(panel_run))
    with pytest.raises(UnknownIdError, match="no user 'nobody'"):
        reader.score("nobody", ["1"])
    item = reader.item_ids[0]
    with pytest.raises(UnknownIdError, match="no item 'nothing'"):
        reader.score("7", [item, "nothing"])
    scores = reader.score("7", ["nothing", item, "neither"], default=-1.0)
    assert scores.tolist() == [-1.0, reader.score("7", [item])[0], -1.0]
    with pytest.raises(UnknownIdError, match="no item 'nothing'"):
        reader.similar_items("nothing")
    learned = {row["user_id"] for row in table(factor_run, "models")}
    (left_out, *_) = [row["user_id"] for row in table(factor_run, "blocks")
                      if row["user_id"] not in learned]  # fmt: skip
    with pytest.raises(UnknownIdError, match=f"'{left_out}' has no model of 'linear'.*targets_max"):
        Recommender.open(place(factor_run)).user(left_out)
    with pytest.raises(ConfigError, match="no models of 'three', only of linear"):
        Recommender.open(place(panel_run), learner="three")


def test_similar_items_point_the_same_way(factor_run: Run) -> None:
    reader = Recommender.open(place(factor_run))
    features = {row["item_id"]: np.array(row["features"], dtype=float)
                for row in table(factor_run, "final_item_features")}  # fmt: skip
    middle = np.mean([x for x in features.values() if x.any()], axis=0)
    item = reader.item_ids[5]
    own = features.pop(item) - middle
    around = {name: x - middle for name, x in features.items() if x.any()}
    cosines = {name: float(x @ own / np.sqrt((x @ x) * (own @ own)))
               for name, x in around.items()}  # fmt: skip
    found = reader.similar_items(item, 6)
    best = sorted(cosines, key=lambda name: (-cosines[name], name))[:6]
    assert [row["item_id"] for row in found] == best
    assert [row["similarity"] for row in found] == pytest.approx([cosines[n] for n in best])


@pytest.mark.slow
def test_where_users_have_features_of_their_own_no_items_are_similar(reference_run: Run) -> None:
    reader = Recommender.open(place(reference_run))
    with pytest.raises(ConfigError, match="no features that all users share"):
        reader.similar_items(reader.item_ids[5])


def test_a_user_is_the_row_of_the_table(panel_run: Run) -> None:
    reader = Recommender.open(place(panel_run))
    rows = {row["user_id"]: row for row in table(panel_run, "final_models")
            if row["learner"] == "linear"}  # fmt: skip
    for user_id in ("1", "7", "30"):
        assert reader.user(user_id) == {
            name: value for name, value in rows[user_id].items() if name != "schema_version"
        }
    assert reader.learner == "linear"
    low, high = reader.rating_limits
    assert low < high
    assert reader.explain("7", reader.item_ids[0])["item"]["item_id"] == reader.item_ids[0]
    assert json.dumps(reader.explain("7"))


def test_any_file_system_of_pyarrow_will_do(factor_run: Run) -> None:
    local = Recommender.open(place(factor_run))
    store = fs.SubTreeFileSystem(str(place(factor_run).parent), fs.LocalFileSystem())
    other = Recommender.open(place(factor_run).name, filesystem=store)
    user_id = table(factor_run, "recommendations")[0]["user_id"]
    assert other.recommend(user_id) == local.recommend(user_id)
    assert Recommender.open(factor_run.root).recommend(user_id) == local.recommend(user_id)
    with pytest.raises(ConfigError, match="nowhere: is not a folder"):
        Recommender.open(place(factor_run) / "nowhere")


def test_what_cannot_be_read_is_told_in_one_line(factor_run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "run_id=copy"
    shutil.copytree(place(factor_run), copy)
    (copy / "manifest/train.json").unlink()
    with pytest.raises(ConfigError, match="has no models yet"):
        Recommender.open(copy)
    (copy / "manifest/train.json").write_text("{}")
    with pytest.raises(ContractError, match=r"train\.json: not a valid stage record"):
        Recommender.open(copy)
    shutil.copy(place(factor_run) / "manifest/train.json", copy / "manifest/train.json")
    (counts,) = (copy / "item_counts").glob("*.parquet")
    older = pq.read_table(counts)
    version = older.schema.get_field_index("schema_version")
    older = older.set_column(version, "schema_version", [np.zeros(len(older), np.int32)])
    pq.write_table(older, counts)
    with pytest.raises(ContractError, match="holds version 0, this package reads version 1"):
        Recommender.open(copy)


def test_it_needs_no_spark(factor_run: Run) -> None:
    user_id = table(factor_run, "recommendations")[0]["user_id"]
    script = (
        "import sys, spark_rank, spark_rank.learners\n"
        "assert 'spark_rank.reader' not in sys.modules\n"
        "from spark_rank import Recommender\n"
        f"found = Recommender.open({str(place(factor_run))!r})\n"
        f"item = found.recommend({user_id!r})[0]['item_id']\n"
        f"found.explain({user_id!r}, item), found.fold_in({{item: 5}}).recommend()\n"
        "sys.exit('pyspark' in sys.modules or 'py4j' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=300)
    assert done.returncode == 0
