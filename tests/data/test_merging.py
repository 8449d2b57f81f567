"""Merged pieces, against a plain loop: nothing is lost, and a pair has one rating."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.data.duplicates import Ratings, resolve
from spark_rank.data.merging import (
    NUMBER_COLUMNS,
    ItemNumbers,
    distinct_users,
    merge_shares,
    pack_numbers,
    unpacked_ratings,
)
from spark_rank.data.pieces import PIECE_SCHEMA, cut_rows
from spark_rank.data.shares import Shares, shares_for
from spark_rank.session.sharing import Carried
from spark_rank.tables.contract import arrow_schema

# user, item, rating, time
Row = tuple[str, str, float, int | None]

ONE = shares_for(1, 1)
POLICIES = ("latest", "first", "mean", "reject")
USERS = ["7", "007", "", "Zoë", "a" * 40, "70000000000", "u"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([user for user in USERS if user]),
        st.sampled_from(["i", "j", "ü", "1"]),
        st.sampled_from([1.0, 2.0, 4.5, 0.1, 1e6 / 3]),
        st.one_of(st.none(), st.integers(-5, 5), st.just(2 * 86_400)),
    ),
    max_size=60,
)
NUMBER_OF = {text: 3 * place for place, text in enumerate(["i", "j", "ü", "1", *USERS])}


def batches(rows: list[Row], reasons: list[str | None], size: int) -> Iterator[pa.RecordBatch]:
    names = ["user_id", "item_id", "rating", "timestamp", "reason"]
    kinds = [pa.string(), pa.string(), pa.float64(), pa.int64(), pa.string()]
    for start in range(0, len(rows), size):
        entries = [(*row, reasons[start + i]) for i, row in enumerate(rows[start : start + size])]
        columns = [pa.array(c, k) for c, k in zip(zip(*entries, strict=True), kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, names=names)


def cut(
    rows: list[Row], shares: Shares = ONE, size: int = 7, chunk: int = 20, bad: int = 0
) -> list[dict[str, Any]]:
    reasons = [None if i >= bad else "malformed_row" for i in range(len(rows))]
    made = cut_rows(batches(rows, reasons, size), shares, chunk)
    return [row for batch in made for row in batch.to_pylist()]


DICTIONARY = Carried(ItemNumbers(pa.array(list(NUMBER_OF)), np.array(list(NUMBER_OF.values()))))


def stream(pieces: list[dict[str, Any]], shares: Shares, *, held: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a merging task gets, share by share, with the kinds of rows mixed.

    Pieces come with the ids of their items if the workers have the dictionary.
    """
    names = ["chunk", "share", "users", "user_codes", "item_codes", "ratings", "times"]
    kinds = [PIECE_SCHEMA.field(name) for name in names]
    more = PIECE_SCHEMA.field("items") if held else ("item_numbers", pa.list_(pa.int32()))
    schema = pa.schema([*kinds, more, ("user_numbers", pa.binary())])
    ids = pa.record_batch(
        [pa.array(USERS), pa.array([NUMBER_OF[u] for u in USERS], pa.int32())],
        names=["user_id", "user"],
    )
    rows: list[dict[str, Any]] = []
    for piece in pieces:
        place = {name: piece[name] for name in ("chunk", "share")}
        numbers = {**place, "item_numbers": [NUMBER_OF[i] for i in piece["items"]]}
        rows += [piece] if held else [piece, numbers]
    for batch in pack_numbers(iter([ids]), shares):
        assert batch.schema == arrow_schema(NUMBER_COLUMNS)
        rows += batch.to_pylist()
    rows.sort(key=lambda row: (row["share"], str(row.get("times"))))
    for start in range(0, len(rows), 3):
        part = [{name: row.get(name) for name in schema.names} for row in rows[start : start + 3]]
        yield pa.RecordBatch.from_pylist(part, schema=schema)


def merged(
    pieces: list[dict[str, Any]], policy: str, shares: Shares = ONE, *, repeated: bool = False
) -> list[tuple[Any, ...]]:
    ways = []
    for dictionary in (DICTIONARY, None):
        rows = stream(pieces, shares, held=dictionary is not None)
        made = merge_shares(rows, policy, repeated, dictionary)
        ways.append([tuple(row.values()) for batch in made for row in batch.to_pylist()])
    assert ways[0] == ways[1]
    return ways[0]


def twin(rows: list[Row], policy: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return what counts and what does not, pair by pair, from the words of the policies."""
    pairs: dict[tuple[int, int], list[tuple[float, int | None]]] = defaultdict(list)
    for user, item, rating, time in rows:
        pairs[NUMBER_OF[user], NUMBER_OF[item]].append((rating, time))
    kept, others = [], []
    for pair, given_ones in sorted(pairs.items()):
        sign = 1 if policy == "first" else -1
        ordered = sorted(given_ones, key=lambda r: (r[1] is None, sign * (r[1] or 0), sign * r[0]))
        if policy == "reject" and len(ordered) > 1:
            others += [(*pair, *one) for one in ordered]
            continue
        rating, time = ordered[0]
        if policy == "mean":
            total = 0.0
            for one, _ in ordered:
                total += one
            rating = total / len(ordered)
        kept.append((*pair, rating, time))
        others += [(*pair, *one) for one in ordered[1:]]
    return kept, others


@given(rows=ROWS, policy=st.sampled_from(POLICIES), size=st.integers(1, 9), chunk=st.integers(1, 9))
def test_every_policy_is_its_twin(rows: list[Row], policy: str, size: int, chunk: int) -> None:
    pieces = [row for row in cut(rows, size=size, chunk=chunk) if row["share"] is not None]
    kept, others = twin(rows, policy)
    assert merged(pieces, policy) == kept
    assert merged(pieces, policy, repeated=True) == others


@given(rows=ROWS, policy=st.sampled_from(POLICIES), data=st.data())
def test_neither_order_nor_shares_change_the_ratings(
    rows: list[Row], policy: str, data: st.DataObject
) -> None:
    reference = merged([r for r in cut(rows) if r["share"] is not None], policy)
    other = data.draw(st.permutations(rows))
    shares = data.draw(st.sampled_from([shares_for(5, 3), shares_for(2, 7)]))
    pieces = [r for r in cut(other, shares, chunk=3) if r["share"] is not None]
    assert sorted(merged(pieces, policy, shares), key=lambda r: r[:2]) == reference


@given(rows=ROWS, bad=st.integers(0, 5))
def test_rows_with_a_reason_are_counted_and_left_out(rows: list[Row], bad: int) -> None:
    bad = min(bad, len(rows))
    made = cut(rows, bad=bad)
    tally = Counter({r["reason"]: r["rows"] for r in made if r["share"] is None})
    assert tally == Counter({"malformed_row": bad, None: len(rows) - bad})
    assert sum(r["rows"] for r in made if r["share"] is not None) == len(rows) - bad


def test_the_ids_and_ratings_of_pieces_are_those_that_went_in() -> None:
    rows: list[Row] = [(user, "i", 2.5, None) for user in USERS if user] * 3
    pieces = [row for row in cut(rows, shares_for(3, 3)) if row["share"] is not None]
    packed = [pa.RecordBatch.from_pylist([piece], schema=PIECE_SCHEMA) for piece in pieces]
    ids = [name for b in distinct_users(iter(packed)) for name in b.column(0).to_pylist()]
    assert sorted(ids) == sorted({row[0] for row in rows})
    ratings = [r for b in unpacked_ratings(iter(packed)) for r in b.column("rating").to_pylist()]
    assert ratings == [2.5] * len(rows)


def test_numbers_too_long_to_be_sorted_with_their_places() -> None:
    rng = np.random.default_rng(1)
    users, items = rng.integers(0, 2**31, 70_000), rng.integers(2**30, 2**31, 70_000)
    ratings = rng.permutation(70_000).astype(float)
    kept, others = resolve(Ratings(users, items, ratings, np.zeros(70_000, np.int64)), "latest")
    order = np.lexsort((items, users))
    assert (kept.users == users[order]).all()
    assert (kept.items == items[order]).all()
    assert (kept.ratings == ratings[order]).all()
    assert not len(others.users)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5), st.integers(0, 3),
                  st.integers(0, 2)),
        max_size=40,
    ),
    policy=st.sampled_from(POLICIES),
)  # fmt: skip
def test_of_several_parts_only_the_last_one_counts(
    rows: list[tuple[int, int, int, int, int]], policy: str
) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    given_ones = Ratings(
        columns[0], columns[1], columns[2].astype(float), columns[3], columns[4].astype(np.int8)
    )
    kept, others = resolve(given_ones, policy)
    last = {(user, item): max(p for u, i, *_, p in rows if (u, i) == (user, item))
            for user, item, *_ in rows}  # fmt: skip
    remaining = [row for row in rows if row[4] == last[row[:2]]]
    part = np.array(remaining, np.int64).reshape(-1, 5).T
    expected, _ = resolve(Ratings(part[0], part[1], part[2].astype(float), part[3]), policy)
    for name in ("users", "items", "ratings", "times"):
        assert getattr(kept, name).tolist() == getattr(expected, name).tolist()
    assert kept.parts is not None
    assert kept.parts.tolist() == [last[pair] for pair in zip(kept.users, kept.items, strict=True)]
    # nothing is lost; means are numbers of their own
    if policy != "mean":
        made = [zip(*(c.tolist() for c in side), strict=True) for side in (kept, others)]  # type: ignore[union-attr]
        assert sorted(row for side in made for row in side) == sorted(rows)
    pairs = list(zip(others.users.tolist(), others.items.tolist(), strict=True))
    assert pairs == sorted(pairs)


def test_parts_go_through_pieces() -> None:
    rows: list[Row] = [(user, item, 2.0, None) for user in ("7", "u") for item in ("i", "j")]
    names = ["user_id", "item_id", "rating", "timestamp", "reason"]
    kinds = [pa.string(), pa.string(), pa.float64(), pa.int64(), pa.string()]
    columns = [pa.array([row[k] for row in rows], kinds[k]) for k in range(4)]
    batch = pa.RecordBatch.from_arrays(
        [*columns, pa.nulls(4, pa.string()), pa.array([0, 2, 1, 0], pa.int32())],
        names=[*names, "part"],
    )
    pieces = [row for made in cut_rows(iter([batch]), ONE) for row in made.to_pylist()]
    (piece,) = [row for row in pieces if row["share"] is not None]
    assert list(piece["parts"]) == [0, 2, 1, 0]
