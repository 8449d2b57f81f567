"""Lists over all items, measured bucket by bucket, against plain loops over users and items."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.metrics import describe
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import ENSEMBLE_MODELS
from spark_rank.users.batches import build_batch
from spark_rank.users.joining import ScoringLearner
from spark_rank.users.list_measuring import (
    FIGURES,
    ListMeasures,
    MeasureJob,
    Shelf,
    measure_bucket,
)
from spark_rank.users.list_summaries import list_table
from spark_rank.users.recommending import (
    Catalogue,
    RecommendJob,
    facts_as_bytes,
)
from spark_rank.users.stored_models import StoredModels
from spark_rank.users.user_groups import UserGroups

N_USERS, N_ITEMS, D, TOP = 60, 45, 3, 6
RNG = np.random.default_rng(11)
IDS = [f"item {i * 7 % N_ITEMS}" for i in range(N_ITEMS)]
FEATURES = ItemFeatures(
    RNG.normal(size=(N_ITEMS, D)).astype(np.float32), RNG.normal(size=N_ITEMS),
    np.empty((0, D), np.float32), pa.array(IDS),
)  # fmt: skip
NO_FILE = MappedFile("none", "")
JOB = RecommendJob(FeatureFiles(NO_FILE, NO_FILE, NO_FILE, NO_FILE), "it", TOP, 0, None, 1.0, 5.0)
GROUPS = UserGroups(3, (8,))
CANDIDATE = np.arange(N_ITEMS) % 9 != 4


class Facts:
    def __init__(self, n_ratings: Any) -> None:
        self.value = facts_as_bytes(pa.record_batch({
            "title": pa.nulls(N_ITEMS, pa.string()),
            "n_ratings": pa.array(n_ratings, pa.int32()),
            "candidate": pa.array(CANDIDATE),
        }))  # fmt: skip


def make_users() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    blocks, models = [], []
    for user in range(N_USERS):
        size = int(RNG.integers(2, 25))
        blocks.append({
            "user": user, "user_id": f"u{user}", "bucket": 0, "n_train": size // 2,
            "items": RNG.permutation(N_ITEMS)[:size].astype(np.int32),
            "ratings": RNG.integers(1, 6, size).astype(np.float32),
        })  # fmt: skip
        models.append({
            "user_id": f"u{user}", "learner": "it", "status": "learned", "on_rating_scale": True,
            "intercept": 3.0, "offset_weight": 1.0, "hyperparameters": "{}",
            "weights": RNG.normal(size=D), "bucket": 0,
        })  # fmt: skip
    return blocks, models


BLOCKS, MODELS = make_users()
N_RATINGS = np.bincount(
    np.concatenate([b["items"][: b["n_train"]] for b in BLOCKS]), minlength=N_ITEMS
)


def tables(users: range) -> tuple[pa.Table, pa.Table]:
    model_schema = arrow_schema(
        tuple(c for c in ENSEMBLE_MODELS.columns if c.name != "schema_version")
    )
    blocks = pa.Table.from_pylist([BLOCKS[u] for u in users])
    models = pa.Table.from_batches([build_batch([MODELS[u] for u in users], model_schema)])
    return blocks.set_column(
        blocks.schema.get_field_index("items"),
        "items",
        blocks.column("items").cast(pa.list_(pa.int32())),
    ), models


def sums(users: range, measures: ListMeasures, at_once: int = 7) -> pa.Table:
    job = MeasureJob(JOB, measures)
    made = measure_bucket(
        *tables(users),
        ScoringLearner("it", None),
        at_once,
        job,
        Facts(N_RATINGS),
        lambda files: FEATURES,
    )
    return pa.Table.from_batches(list(made))


def measured(measures: ListMeasures) -> dict[tuple[str, str, str], dict[str, Any]]:
    parts = [sums(range(0, 25), measures), sums(range(25, N_USERS), measures, 100)]
    table = list_table(pa.concat_tables(parts), GROUPS, np.flatnonzero(CANDIDATE), 0.95)
    rows = table.to_pylist()
    return {(row["learner"], row["user_group"], row["metric"]): row for row in rows}


def naive_lists(among: Any = None) -> dict[str, list[list[int]]]:
    """Return everybody's lists by the order of scores, of popularity and of the offset."""
    batch = build_batch(MODELS, arrow_schema(ENSEMBLE_MODELS.columns))
    stored = StoredModels(batch, FEATURES.item_ids)
    lists: dict[str, list[list[int]]] = {"it": [], "most_popular": [], "item_offset": []}
    for user, block in enumerate(BLOCKS):
        seen = set(block["items"][: block["n_train"]].tolist())
        free = [i for i in range(N_ITEMS) if CANDIDATE[i] and i not in seen]
        if among is not None:
            free = [i for i in free if i in among[user]]
        scores = stored[user].scores(FEATURES, np.arange(N_ITEMS))
        for name, values in (("it", scores), ("most_popular", N_RATINGS),
                             ("item_offset", FEATURES.offset)):  # fmt: skip
            ordered = sorted(free, key=lambda i: (-values[i], IDS[i]))
            lists[name].append(ordered[:TOP])
    return lists


def naive_figures(lists: dict[str, list[list[int]]], name: str, user: int) -> dict[str, float]:
    block, own = BLOCKS[user], lists[name][user]
    held_out = zip(
        block["items"][block["n_train"] :], block["ratings"][block["n_train"] :], strict=True
    )
    relevant = {int(i) for i, r in held_out if r >= 4}
    shares = [N_RATINGS[i] / N_USERS for i in own]
    rows = FEATURES.matrix[np.flatnonzero(CANDIDATE)].astype(float)
    units = {
        i: v / np.linalg.norm(v) for i in own for v in [FEATURES.matrix[i] - rows.mean(axis=0)]
    }
    cosines = [units[a] @ units[b] for a in own for b in own if a < b]
    found = {
        "popularity": float(np.mean(shares)),
        "novelty": float(np.mean([-math.log2(max(s, 1 / N_USERS)) for s in shares])),
        "diversity": 1 - float(np.mean(cosines)),
    }
    if not relevant:
        return found
    hits = [i in relevant for i in own] + [False] * (TOP - len(own))
    popular = lists["most_popular"][user]
    gains = [1 / math.log2(p + 2) for p in range(TOP)]
    found |= {
        "hit_rate": float(any(hits)),
        "precision": sum(hits) / TOP,
        "recall": sum(hits) / len(relevant),
        "ndcg": sum(g for g, h in zip(gains, hits, strict=True) if h) / sum(gains[: len(relevant)]),
        "reciprocal_rank": max((h / (p + 1) for p, h in enumerate(hits)), default=0.0),
        "average_precision": sum(
            sum(hits[: p + 1]) / (p + 1) for p, h in enumerate(hits) if h
        ) / min(TOP, len(relevant)),
        "serendipity": len((relevant & set(own)) - set(popular)) / TOP,
    }  # fmt: skip
    return found


def check(
    found: dict[tuple[str, str, str], dict[str, Any]], lists: dict[str, list[list[int]]]
) -> None:
    group_of = GROUPS.of(np.array([b["n_train"] for b in BLOCKS])).to_pylist()
    for name in lists:
        for group in ("all", *GROUPS.names()):
            users = [u for u in range(N_USERS) if group in ("all", group_of[u])]
            figures = [naive_figures(lists, name, u) for u in users]
            for metric in FIGURES:
                values = [f[metric] for f in figures if metric in f]
                expected, row = describe(values), found[name, group, metric]
                assert row["users"] == len(values) > 5
                assert row["mean"] == pytest.approx(expected.mean, abs=1e-6), (name, metric)
                assert row["sd"] == pytest.approx(expected.sd, abs=1e-5)
                assert expected.t_interval is not None
                assert row["ci_high"] == pytest.approx(expected.t_interval.high, abs=1e-5)
            shown = [i for u in users for i in lists[name][u]]
            share = len(set(shown)) / CANDIDATE.sum()
            assert found[name, group, "coverage"]["mean"] == pytest.approx(share)


def test_lists_of_all_items_are_measured_as_loops_measure_them() -> None:
    measures = ListMeasures(4.0, GROUPS, N_USERS)
    check(measured(measures), naive_lists())


def test_a_sample_has_the_relevant_items_and_others_by_hash() -> None:
    measures = ListMeasures(4.0, GROUPS, N_USERS, sampled=10)
    found = measured(measures)
    assert found != measured(ListMeasures(4.0, GROUPS, N_USERS, sampled=10, seed=1))
    everything = ListMeasures(4.0, GROUPS, N_USERS, sampled=1000)
    check(measured(everything), naive_lists())
    # fewer rivals: no list of the same order finds fewer relevant items
    whole = measured(ListMeasures(4.0, GROUPS, N_USERS))
    assert found["it", "all", "ndcg"]["mean"] > whole["it", "all", "ndcg"]["mean"]


def test_sums_do_not_depend_on_batches() -> None:
    measures = ListMeasures(4.0, GROUPS, N_USERS)
    assert sums(range(N_USERS), measures, 1).equals(sums(range(N_USERS), measures, 100))


def test_an_item_without_features_has_no_direction() -> None:
    matrix = FEATURES.matrix.copy()
    matrix[3] = 0.0
    features = ItemFeatures(matrix, FEATURES.offset, FEATURES.prior, FEATURES.item_ids)
    facts = pa.ipc.open_file(Facts(N_RATINGS).value).get_batch(0)
    shelf = Shelf.of(Catalogue.of(features, facts), N_USERS)
    assert not shelf.units[shelf.catalogue.position_of[3]].any()
    lengths = np.linalg.norm(np.delete(shelf.units, shelf.catalogue.position_of[3], axis=0), axis=1)
    assert lengths == pytest.approx(1.0)
