"""Lists of unseen items over the bare products and top-k: ``python benchmarks/recommend.py 48000``.

Users with linear models on 32 factors, 17,770 items, log-normal numbers of rated items (mean about
200). The bare work is a product in single precision of a block of users' weights with all
items' features, and the ten greatest of every row, put in order: no item is left out, nothing is
scored exactly, no list has a name. All in one run on one thread, batch by batch in turn, in CPU
time; with a beta, the lists look at as many factors of choices as `features` learns, the bare work
does not. The whole stage is measured by ``benchmarks/scale.py``.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from spark_rank.features.choice import RANK as CHOICES
from spark_rank.features.choice import Choice
from spark_rank.features.files import ItemFeatures, write_files
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import BLOCKS, ENSEMBLE_MODELS
from spark_rank.users.batches import build_batch
from spark_rank.users.joining import WANTED_COLUMNS, ScoringLearner, as_scoring
from spark_rank.users.list_measuring import ListMeasures, MeasureJob, measure_bucket
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.recommending import (
    RecommendJob,
    facts_as_bytes,
    recommend_batches,
)
from spark_rank.users.user_groups import UserGroups

ITEMS, RANK, TOP, BATCH = 17_770, 32, 10, 1000
SCALE = RankScale((1.0, 2.0, 3.0, 4.0, 5.0))
COLUMNS = tuple(
    column
    for name in WANTED_COLUMNS
    for column in {c.name: c for c in (*BLOCKS.columns, *ENSEMBLE_MODELS.columns)}.values()
    if column.name == name
)


def make_users(numbers: list[int]) -> pa.RecordBatch:
    rows = []
    for number in numbers:
        rng = np.random.default_rng(number)
        size = int(np.clip(np.exp(rng.normal(4.7, 1.1)), 2, 8000))
        rows.append(
            {"user_id": str(number), "status": "learned", "on_rating_scale": True,
             "hyperparameters": "{}", "kernel": "linear", "intercept": 3.6, "offset_weight": 1.0,
             "weights": rng.normal(0, 0.5, RANK).astype(np.float32), "bucket": number % 16,
             "items": rng.permutation(ITEMS)[:size].astype(np.int32)}
        )  # fmt: skip
    return build_batch(rows, arrow_schema(COLUMNS))


def item_features() -> ItemFeatures:
    rng = np.random.default_rng(0)
    return ItemFeatures(
        rng.normal(0, 0.3, (ITEMS, RANK)).astype(np.float32), rng.normal(0, 0.4, ITEMS),
        np.empty((0, RANK), np.float32), pa.array([str(item) for item in range(ITEMS)]),
        choice=Choice(
            rng.normal(0, 0.3, (ITEMS, CHOICES)).astype(np.float32),
            rng.normal(0, 0.3, (ITEMS + 2, CHOICES)).astype(np.float32),
        ),
    )  # fmt: skip


def facts() -> pa.RecordBatch:
    return pa.record_batch(
        {
            "title": pa.array([f"The title of film {item}" for item in range(ITEMS)]),
            "n_ratings": pa.array(np.full(ITEMS, 100), pa.int32()),
            "candidate": pa.array(np.ones(ITEMS, dtype=bool)),
        }
    )


def bare(batch: pa.RecordBatch, features: ItemFeatures, room: np.ndarray) -> tuple[float, float]:
    """Return the seconds of the products and of their top-k."""
    weights = np.vstack(batch.column("weights").to_numpy(zero_copy_only=False))
    products = top = 0.0
    for start in range(0, len(weights), len(room)):
        block = weights[start : start + len(room)]
        begun = time.process_time()
        scores = np.matmul(block, features.matrix.T, out=room[: len(block)])
        multiplied = time.process_time()
        best = np.argpartition(scores, ITEMS - TOP, axis=1)[:, ITEMS - TOP :]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
        np.take_along_axis(best, order, axis=1)
        products += multiplied - begun
        top += time.process_time() - multiplied
    return products, top


def worker(users: int, job: RecommendJob) -> None:
    features, shared = item_features(), SimpleNamespace(value=facts_as_bytes(facts()))
    room = np.empty((118, ITEMS), dtype=np.float32)
    queue: list[pa.RecordBatch] = []

    def waiting() -> Iterator[pa.RecordBatch]:
        while queue:
            yield queue.pop()

    totals = np.zeros(3)
    for start in range(-BATCH, users, BATCH):
        batch = make_users(list(range(max(start, 0), max(start, 0) + BATCH)))
        seconds = list(bare(batch, features, room))
        queue.append(batch)
        begun = time.process_time()
        (made,) = recommend_batches(waiting(), job, shared, lambda files: features)
        seconds.append(time.process_time() - begun)
        if start >= 0:  # the first compiles, or loads what was compiled
            totals += seconds
    products, top, ours = totals / users * 1e6
    print(f"{users:,} users, {ITEMS:,} items, {RANK} factors, top {TOP}, one thread, µs per user")
    print(f"  products {products:.1f}, their top {TOP} {top:.1f}; {made.num_columns} columns of "
          f"lists {ours:.1f}: {ours / (products + top):.2f} times the bare work")  # fmt: skip


def measured_lists(users: int, job: RecommendJob) -> None:
    """Print the CPU time of measuring lists of all items, over that of making them as rows."""
    features, shared = item_features(), SimpleNamespace(value=facts_as_bytes(facts()))
    measures = ListMeasures(4.0, UserGroups(3, (20, 50, 100, 300)), users)
    rng, totals = np.random.default_rng(0), np.zeros(2)
    for start in range(-BATCH, users, BATCH):
        batch = make_users(list(range(max(start, 0), max(start, 0) + BATCH)))
        begun = time.process_time()
        list(recommend_batches(iter([batch]), job, shared, lambda files: features))
        made = time.process_time()
        sizes = batch.column("items").value_lengths().to_numpy()
        ratings = pa.ListArray.from_arrays(
            batch.column("items").offsets, pa.array(rng.integers(1, 6, sizes.sum()), pa.float32())
        )
        blocks = pa.table({
            "user": pa.array(np.arange(len(batch)), pa.int32()), "user_id": batch.column("user_id"),
            "items": batch.column("items"), "ratings": ratings,
            "n_train": pa.array(sizes // 2, pa.int32()), "bucket": batch.column("bucket"),
        })  # fmt: skip
        models = as_scoring(pa.Table.from_batches([batch.drop_columns(["items", "bucket"])]))
        models = models.set_column(1, "learner", pa.array(["it"] * len(batch)))
        ready = time.process_time()
        list(measure_bucket(
            blocks, models, ScoringLearner("it", None), 512, MeasureJob(job, measures), shared,
            lambda files: features,
        ))  # fmt: skip
        if start >= 0:
            totals += made - begun, time.process_time() - ready
    rows, measured = totals / users * 1e6
    print(f"measured over all items, with two lists that are alike for all: {measured:.1f} µs per "
          f"user, {measured / rows:.2f} times the {rows:.1f} µs of the rows of lists")  # fmt: skip


def main() -> None:
    users = int(sys.argv[1]) if len(sys.argv) > 1 else 48_000
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as name:
        folder = Path(name)
        features = item_features()
        files = write_files(folder, features.matrix, features.offset, features.prior, ["-"])
        for bottom, beta in ((0, 0.0), (0, 6.0), (3, 0.0), (3, 6.0)):
            job = RecommendJob(files, "it", TOP, bottom, SCALE, 1.0, 5.0, beta)
            print(f"bottom {bottom}, beta {beta:g}:", end=" ")
            worker(users, job)
        measured_lists(users, RecommendJob(files, "it", TOP, 0, SCALE, 1.0, 5.0, 6.0))


if __name__ == "__main__":
    main()
