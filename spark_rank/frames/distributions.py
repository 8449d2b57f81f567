"""Distributions of per-user values and paired comparisons: computed in Spark's workers.

Every topic (a metric, or the columns of a bound) is one task, which gets all users' numbers as
packed arrays, sixteen bytes per user and learner. The driver gets only the results. Users are
sorted by a hash of their ids first, so that no sum depends on the partitioning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import combinations, groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from spark_rank.errors import ContractError
from spark_rank.metrics import Interval, compare_paired, describe, holm
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import Column, Contract, arrow_schema, ddl
from spark_rank.tables.contracts import BOUNDS, COMPARISON, SUMMARY
from spark_rank.users.batches import build_batch
from spark_rank.users.generalization import BOUNDS_OF
from spark_rank.users.measuring import CHOSEN, HIGHER_IS_BETTER, METRIC_NAMES
from spark_rank.users.user_groups import ALL

Row = dict[str, Any]
Table = Mapping[str, NDArray[np.float64]]

PACKED = Contract(
    "packed_metrics",
    1,
    "a task's users under one learner, for one topic",
    (
        Column("topic", "string", "metric or bound"),
        Column("learner", "string", "name"),
        Column("users", "binary", "hash of each user's id, int64", varied=True),
        Column("groups", "binary", "number of each user's group, int8", varied=True),
        Column("values", "binary", "float64, one column of the topic after the other", varied=True),
    ),
)
_PACKED_SCHEMA = arrow_schema(PACKED.columns)
_TABLES = (SUMMARY, COMPARISON, BOUNDS)
# rows of all three tables: each row fills the columns of its table
_RESULT = (
    Column("table", "string", "the table that the row belongs to"),
    *{column.name: column for contract in _TABLES for column in contract.columns}.values(),
)
_NO_GROUPS, _NO_USERS = np.empty(0, dtype=np.int8), np.empty(0, dtype=np.int64)
# metrics that are also taken over all ratings, each counting the same: the power of the errors in
# their mean
_POOLED = {"rmse": 2, "mae": 1}
_TOPICS: dict[str, tuple[str, ...]] = {
    **{name: (name, "n_test") if name in _POOLED else (name,) for name in METRIC_NAMES},
    **BOUNDS_OF,
}
_PACKED_FROM = (
    "user_id", "learner", "user_group",
    *sorted({column for columns in _TOPICS.values() for column in columns}),
)  # fmt: skip


@dataclass(frozen=True)
class Statistics:
    """How distributions are described: groups of users, confidence, seed of the bootstrap.

    `informative_below` has, for every bound, the value from which on it is trivial. `test` is the
    label of the held-out ratings.
    """

    groups: tuple[str, ...]
    confidence: float
    seed: int
    informative_below: Mapping[str, float]
    test: str = CHOSEN


def distributions(metrics: DataFrame, statistics: Statistics, tasks: int) -> dict[str, pa.Table]:
    """Return the tables summary, comparison and bounds, by name, in a fixed order of rows.

    `metrics` has the columns of the table of that name.
    """
    pack = partial(packed_metrics, groups=statistics.groups)
    packed = by_workers(metrics.select(*_PACKED_FROM), pack, ddl(PACKED.columns))
    # an explicit number: adaptive execution would merge small partitions, which take long
    placed = packed.repartition(min(len(_TOPICS), tasks), "topic").sortWithinPartitions("topic")
    describe = partial(described_topics, statistics=statistics)
    described = by_workers(placed, describe, ddl(_RESULT)).toArrow()
    return {contract.table: _rows_of(contract, described) for contract in _TABLES}


def packed_metrics(
    batches: Iterator[pa.RecordBatch], groups: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Turn metric rows into a packed row per topic and learner of a task."""
    packer = Packer(groups)
    for batch in batches:
        packer.add(batch)
    yield from packer.rows()


def described_topics(
    batches: Iterator[pa.RecordBatch], statistics: Statistics
) -> Iterator[pa.RecordBatch]:
    """Turn packed rows, sorted by topic, into the rows of the tables."""
    for packed in _by_topic(batches):
        yield build_batch(topic_rows(packed, statistics), arrow_schema(_RESULT))


def _by_topic(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows topic by topic; only one topic is in memory at a time."""
    parts: list[pa.RecordBatch] = []
    current = None
    for batch in batches:
        topics = batch.column("topic").to_pylist()
        for topic, places in groupby(range(len(topics)), key=topics.__getitem__):
            if parts and topic != current:
                yield pa.Table.from_batches(parts)
                parts = []
            positions = list(places)
            parts.append(batch.slice(positions[0], len(positions)))
            current = topic
    if parts:
        yield pa.Table.from_batches(parts)


class Packer:
    """Gathers the numbers of a task's users, and packs them as rows of `PACKED`."""

    def __init__(self, groups: Sequence[str]) -> None:
        self._groups = pa.array(groups, pa.string())
        self._columns = sorted({column for columns in _TOPICS.values() for column in columns})
        self._parts: dict[str, list[dict[str, NDArray[Any]]]] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Add metric rows."""
        group = pc.index_in(rows.column("user_group"), self._groups)
        numbers = {"groups": group.to_numpy(zero_copy_only=False).astype(np.int8),
                   "users": _hashes(rows.column("user_id"))}  # fmt: skip
        numbers |= {name: _floats(rows, name) for name in self._columns}
        learners = rows.column("learner").dictionary_encode()
        codes = learners.indices.to_numpy()
        for code, learner in enumerate(learners.dictionary.to_pylist()):
            of_learner = np.flatnonzero(codes == code)
            part = {name: values[of_learner] for name, values in numbers.items()}
            self._parts.setdefault(learner, []).append(part)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a row of arrays per topic and learner."""
        for learner in sorted(self._parts):
            parts = self._parts[learner]
            joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            keys = {name: joined[name].tobytes() for name in ("users", "groups")}
            for topic, columns in _TOPICS.items():
                values = np.concatenate([joined[column] for column in columns])
                row = {"topic": topic, "learner": learner, "values": values.tobytes(), **keys}
                yield pa.RecordBatch.from_pylist([row], schema=_PACKED_SCHEMA)


def _hashes(user_ids: pa.StringArray) -> NDArray[np.int64]:
    """Return a 64-bit hash of every id."""
    encoded = user_ids.dictionary_encode()
    digests = [blake2b(user.encode(), digest_size=8).digest()
               for user in encoded.dictionary.to_pylist()]  # fmt: skip
    return np.frombuffer(b"".join(digests), "<i8")[encoded.indices.to_numpy()]


def topic_rows(packed: pa.Table, statistics: Statistics) -> list[Row]:
    """Return all rows about one metric or bound."""
    if packed.num_rows == 0:
        return []
    topic = packed.column("topic")[0].as_py()
    values, groups = _unpack(packed, len(_TOPICS[topic]))
    parts = {ALL: np.ones(len(groups), dtype=bool)}
    parts |= {name: groups == number for number, name in enumerate(statistics.groups)}
    rows: list[Row] = []
    for name, part in parts.items():
        chosen = {learner: table[:, part] for learner, table in values.items()}
        if topic in BOUNDS_OF:
            rows += _bound_rows(topic, name, chosen, statistics)
        else:
            single = {learner: table[0] for learner, table in chosen.items()}
            rows += _summary_rows(topic, name, chosen, statistics)
            rows += _comparison_rows(topic, name, single, statistics)
    return rows


def _unpack(packed: pa.Table, width: int) -> tuple[Table, NDArray[np.int8]]:
    """Return each learner's columns × users, sorted by the users' hashes, and the users' groups.

    Every learner has a row for every user, so the order is the same for all learners.
    """
    values: dict[str, NDArray[np.float64]] = {}
    groups, sorted_users, order = _NO_GROUPS, _NO_USERS, _NO_USERS
    learners = np.array(packed.column("learner").to_pylist())
    for learner in np.unique(learners).tolist():
        of_learner = np.flatnonzero(learners == learner).tolist()
        users = np.concatenate(_arrays(packed, "users", of_learner, np.int64))
        if not np.array_equal(users, sorted_users):  # usually all learners have the same order
            sorted_users, order = users, np.argsort(users)
        tables = [
            raw.reshape(width, -1) for raw in _arrays(packed, "values", of_learner, np.float64)
        ]
        values[learner] = np.concatenate(tables, axis=1)[:, order]
        groups = np.concatenate(_arrays(packed, "groups", of_learner, np.int8))[order]
    sizes = {table.shape[1] for table in values.values()}
    if len(sizes) != 1:
        raise ContractError(
            f"table metrics: learners have different numbers of users, {sizes}: run evaluate again"
        )
    return values, groups


def _summary_rows(metric: str, group: str, values: Table, statistics: Statistics) -> list[Row]:
    rows = []
    for learner, table in values.items():
        stats = describe(table[0], level=statistics.confidence, seed=statistics.seed)
        quantiles = (
            {}
            if stats.quantiles is None
            else {f"p{round(100 * share):02d}": value for share, value in stats.quantiles.items()}
        )
        rows.append(
            {"table": SUMMARY.table, "learner": learner, "metric": metric, "user_group": group,
             "users": stats.users, "mean": stats.mean, "sd": stats.sd, **quantiles,
             "test": statistics.test,
             **_ends("ci", stats.t_interval), **_ends("bootstrap", stats.bootstrap_interval),
             **(_pooled(table, _POOLED[metric]) if metric in _POOLED else {})}
        )  # fmt: skip
    return rows


def _pooled(table: NDArray[np.float64], power: int) -> Row:
    """Return a metric over all ratings of the users who have it; `table` has also their numbers."""
    values, sizes = table[:, ~np.isnan(table[0])]
    ratings = float(sizes.sum())
    if ratings == 0.0:
        return {"pooled": None, "ratings": 0}
    mean = float((sizes * values**power).sum()) / ratings
    return {"pooled": mean ** (1.0 / power), "ratings": int(ratings)}


def _comparison_rows(
    metric: str, group: str, values: Mapping[str, NDArray[np.float64]], statistics: Statistics
) -> list[Row]:
    """Compare every pair of learners; p-values are corrected over all pairs."""
    rows: list[Row] = []
    for learner, rival in combinations(values, 2):
        pair = compare_paired(
            values[learner],
            values[rival],
            level=statistics.confidence,
            seed=statistics.seed,
            lower_is_better=metric not in HIGHER_IS_BETTER,
        )
        rows.append(
            {"table": COMPARISON.table, "learner": learner, "rival": rival, "metric": metric,
             "user_group": group, "users": pair.users, "difference": pair.mean_difference,
             "sd": pair.sd, "wins": pair.wins, "ties": pair.ties, "losses": pair.losses,
             "wilcoxon_p": pair.wilcoxon_p, "sign_p": pair.sign_p,
             **_ends("ci", pair.t_interval), **_ends("bootstrap", pair.bootstrap_interval)}
        )  # fmt: skip
    for test in ("wilcoxon_p", "sign_p"):
        tested = [row for row in rows if row[test] is not None]
        for row, corrected in zip(tested, holm([row[test] for row in tested]), strict=True):
            row[f"{test}_holm"] = float(corrected)
    return rows


def _bound_rows(bound: str, group: str, values: Table, statistics: Statistics) -> list[Row]:
    """Compare the bound with the cost on held-out ratings, over users who have all values."""
    rows = []
    for learner, table in values.items():
        train, limit, test = table[:, ~np.isnan(table).any(axis=0)]
        if len(limit):
            rows.append(
                {"table": BOUNDS.table, "learner": learner, "bound": bound, "user_group": group,
                 "users": len(limit), "train_cost": float(train.mean()),
                 "bound_value": float(limit.mean()), "test_cost": float(test.mean()),
                 "holds": float((test <= limit).mean()),
                 "informative": float((limit < statistics.informative_below[bound]).mean())}
            )  # fmt: skip
    return rows


def _ends(name: str, interval: Interval | None) -> Row:
    return {} if interval is None else {f"{name}_low": interval.low, f"{name}_high": interval.high}


def _rows_of(contract: Contract, described: pa.Table) -> pa.Table:
    rows = described.filter(pc.equal(described.column("table"), contract.table))
    names = [column.name for column in contract.columns]
    keys = [n for n in ("learner", "rival", "bound", "metric", "user_group") if n in names]
    return rows.select(names).sort_by([(key, "ascending") for key in keys])


def _floats(batch: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    # null becomes NaN
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)


def _arrays(
    packed: pa.Table, name: str, rows: Sequence[int], dtype: type[np.generic]
) -> list[NDArray[Any]]:
    """Return the arrays of some rows without copying."""
    column = packed.column(name)
    return [np.frombuffer(column[row].as_buffer(), dtype) for row in rows]
