"""`Recommender` on a run of many users: ``python benchmarks/reader.py RUN [USERS] [ITEMS]``.

RUN is the folder of any small finished run of factors. Its rows are copied, under ids of their own,
until there are as many users and items as asked for (480,000 and 17,770), in files as the stages
leave them: a file for a bucket, with row groups as the contract has them. Then: opening, the first
question, one user found, listed and scored, and a new user with 50 ratings folded in and listed:
medians of 200 in wall time, and means in CPU time of all threads, which other work changes less.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_rank import Recommender
from spark_rank.features.files import open_files, write_files
from spark_rank.records.facts import as_record, read_facts
from spark_rank.records.features import FeatureFacts
from spark_rank.store.records import record_text
from spark_rank.tables.contracts import BLOCKS, FINAL_MODELS, TABLES
from spark_rank.tables.user_buckets import bucket_of

BUCKETS, RATED, TIMES = 64, 200, 200


def copied_run(source: Path, folder: Path, n_users: int, n_items: int) -> None:
    """Make a run of many users from a small one."""
    records = {path.stem: json.loads(path.read_text())
               for path in (source / "manifest").glob("*.json")}  # fmt: skip
    rng = np.random.default_rng(0)
    facts = records["refit"]["facts"]
    files = read_facts(FeatureFacts, {"facts": facts["features"]}, "source").files
    own = open_files(files, str(source / "final_feature_files"))
    taken = rng.integers(0, len(own.offset), n_items)
    noise = rng.normal(0, 0.05, (n_items, own.matrix.shape[1])).astype(np.float32)
    (folder / "final_feature_files").mkdir(parents=True)
    ids = [f"i{item}" for item in range(n_items)]
    made = write_files(
        folder / "final_feature_files",
        own.matrix[taken] + noise,
        own.offset[taken],
        np.vstack([own.prior[:-2][taken], own.prior[-2:]]),
        ids,
    )
    facts["features"]["files"] = as_record(made)
    numbers = np.arange(n_items, dtype=np.int32)
    items = {"item_id": ids, "item": numbers, "schema_version": np.ones(n_items, np.int32)}
    counts = items | {"n_train": numbers.astype(np.int64), "n": numbers.astype(np.int64)}
    tables = {"items": pa.table(items), "item_counts": pa.table(counts)}
    for name, table in tables.items():
        write(folder, records, name, table, f"{name}/part.parquet")
    copied_users(source, folder, records, n_users, n_items)
    del records["prepare"]["tables"]["blocks"]
    records["prepare"]["tables"]["blocks"] = n_users
    records["prepare"]["settings"]["buckets"] = BUCKETS
    (folder / "manifest").mkdir()
    for stage, record in records.items():
        del record["checksum"]
        (folder / "manifest" / f"{stage}.json").write_text(record_text(record))


def copied_users(
    source: Path, folder: Path, records: dict[str, Any], n_users: int, n_items: int
) -> None:
    """Write blocks and models of many users, in the order of a bucket's users."""
    models = pq.read_table(source / "final_models", partitioning=None)
    learners = sorted(set(models.column("learner").to_pylist()))
    n = len(models) // len(learners)
    order = pc.sort_indices(models, [("user_id", "ascending"), ("learner", "ascending")])
    models = models.take(order)
    rng = np.random.default_rng(1)
    of_users = np.array([bucket_of(f"u{user}", BUCKETS) for user in range(n_users)])
    for bucket in range(BUCKETS):
        users = np.flatnonzero(of_users == bucket)
        sizes = np.minimum(rng.lognormal(4.8, 1.0, len(users)).astype(int) + 1, n_items)
        rated = [rng.choice(n_items, size, replace=False) for size in sizes]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        flat = np.concatenate(rated).astype(np.int32)
        ratings = rng.integers(1, 6, len(flat)).astype(np.float32)
        blocks = {
            "user": users.astype(np.int32),
            "user_id": [f"u{user}" for user in users],
            "items": pa.ListArray.from_arrays(ends, flat),
            "ratings": pa.ListArray.from_arrays(ends, ratings),
            "timestamps": pa.nulls(len(users), pa.list_(pa.int64())),
            "n_train": (sizes // 2).astype(np.int32),
            "schema_version": np.full(len(users), BLOCKS.version, np.int32),
        }
        path = f"blocks/bucket={bucket}/part.parquet"
        write(folder, records, "blocks", pa.table(blocks), path)
        rows = (users % n)[:, None] * len(learners) + np.arange(len(learners))
        own = models.take(pa.array(rows.ravel()))
        names = pa.array([f"u{user}" for user in np.repeat(users, len(learners))])
        for name, column in (("user_id", names), ("bucket", pa.array([bucket] * len(own)))):
            place = own.schema.get_field_index(name)
            own = own.set_column(place, name, column.cast(own.schema.field(name).type))
        write(
            folder, records, FINAL_MODELS.table, own, f"{FINAL_MODELS.table}/{bucket:05d}.parquet"
        )


def write(folder: Path, records: dict[str, Any], name: str, table: pa.Table, path: str) -> None:
    """Write a table's file, and list it in the record of its stage, in place of the run's own."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    size = TABLES[name].group_bytes or table.nbytes
    rows = max(100, len(table) * size // max(table.nbytes, 1))
    pq.write_table(table, folder / path, compression="zstd", row_group_size=rows)
    (record,) = [each for each in records.values() if name in each["tables"]]
    if not record.setdefault("copied", {}).get(name):
        record["copied"][name] = True
        for listed in [each for each in record["files"] if each.startswith(f"{name}/")]:
            del record["files"][listed]
    record["files"][path] = {"size": 0, "sha256": ""}


def median(work: Callable[[int], object], times: int = TIMES) -> str:
    """Return milliseconds of a call: the median, and CPU time on average."""
    taken, before = [], time.process_time()
    for number in range(times):
        started = time.perf_counter()
        work(number)
        taken.append(time.perf_counter() - started)
    cpu = (time.process_time() - before) / times
    return f"{np.median(taken) * 1e3:8.2f} ms, {cpu * 1e3:8.2f} ms of CPU"


def main(source: str, n_users: int = 480_000, n_items: int = 17_770) -> None:
    """Make the run, ask, print."""
    folder = Path(tempfile.mkdtemp(prefix="spark-rank-")) / "run_id=many"
    try:
        copied_run(Path(source), folder, n_users, n_items)
        found: list[Recommender] = []
        print("open            ", median(lambda number: found.append(Recommender.open(folder)), 1))
        reader = found[0]
        rng = np.random.default_rng(2)
        users = [f"u{user}" for user in rng.integers(0, n_users, TIMES)]
        rated = [{f"i{item}": float(1 + item % 5) for item in rng.choice(n_items, 50, False)}
                 for _ in range(TIMES)]  # fmt: skip
        print("first question  ", median(lambda number: reader.recommend(users[0]), 1))
        reader.fold_in(rated[0]).recommend()
        print("one user        ", median(lambda number: reader.user(users[number])))
        print("list of a user  ", median(lambda number: reader.recommend(users[number])))
        print("one score       ", median(lambda number: reader.score(users[number], ["i1"])))
        print("fold in         ", median(lambda number: reader.fold_in(rated[number])))
        print("fold in and list",
              median(lambda number: reader.fold_in(rated[number]).recommend()))  # fmt: skip
        print("similar items   ", median(lambda number: reader.similar_items(f"i{number}")))
    finally:
        shutil.rmtree(folder.parent)


if __name__ == "__main__":
    main(sys.argv[1], *(int(number) for number in sys.argv[2:]))
