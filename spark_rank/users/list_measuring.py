"""Measures lists over all items: makes every user's list from the training part, and compares.

The lists come from the same scores, in the same way, as those of `recommending`. Sums over users
are sums of integers, so that they do not depend on tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.learners.perceptrons.draws import member_keys
from spark_rank.metrics import HIT_METRICS, hit_metrics, intra_list_diversity
from spark_rank.tables.contract import Column, arrow_schema
from spark_rank.users.batches import ragged
from spark_rank.users.fixed_lists import first_unseen
from spark_rank.users.held_out import held_out, in_order
from spark_rank.users.joining import ScoringLearner, scoring_models, with_models
from spark_rank.users.recommending import (
    Catalogue,
    LeftOut,
    RecommendJob,
    Shared,
    best_positions,
    left_out_of,
)
from spark_rank.users.top_items import NONE
from spark_rank.users.user_groups import UserGroups

# the same lists for everybody, but for what each user has rated
MOST_POPULAR, ITEM_OFFSET = "most_popular", "item_offset"
FIXED_LISTS = (MOST_POPULAR, ITEM_OFFSET)
# what is measured of every user's list
FIGURES = (*HIT_METRICS, "serendipity", "popularity", "novelty", "diversity")
SUM_COLUMNS = (
    Column("learner", "string", "whose lists"),
    Column("user_group", "string", "group of the users"),
    Column("lists", "bigint", "users with a list"),
    Column("users", "array<bigint>", "by figure: users for whom it is defined"),
    Column("totals", "array<bigint>", "by figure: its sum over them, in fixed point"),
    Column("squares", "array<bigint>", "by figure: the sum of squares, in fixed point"),
    Column("items", "array<int>", "items in lists, by number"),
    Column("exposures", "array<bigint>", "in how many lists each of them is"),
)
SUM_SCHEMA = arrow_schema(SUM_COLUMNS)
# the squares of 20 million users' figures of at most 20 fit
FIXED_POINT = 1 << 30

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Figures = dict[str, FloatArray]


@dataclass(frozen=True)
class ListMeasures:
    """The settings of the measures.

    `users` is the number of users with ratings. With `sampled`, a list has only relevant items and
    so many others, drawn by a hash of `seed`, user and item; None: all items.
    """

    relevant_from: float
    groups: UserGroups
    users: int
    sampled: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class MeasureJob:
    """The settings of a task; `lists` makes the lists, of `lists.top` items."""

    lists: RecommendJob
    measures: ListMeasures


@dataclass(frozen=True)
class Shelf:
    """The catalogue with what the figures need of every item, by its position.

    `popular` and `best` are the positions by the number of ratings and by the item offset.
    """

    catalogue: Catalogue
    units: NDArray[np.float32]
    shares: FloatArray
    bits: FloatArray
    popular: IntArray
    best: IntArray

    @classmethod
    def of(cls, catalogue: Catalogue, users: int) -> Shelf:
        """Gather the facts; an item that nobody rated counts as rated by one user in its bits."""
        n_ratings = catalogue.n_ratings.astype(np.float64)
        return cls(
            catalogue,
            catalogue.units,
            n_ratings / max(users, 1),
            -np.log2(np.maximum(n_ratings, 1.0) / max(users, 1)),
            # stable: equal items in the order of their ids
            np.argsort(-n_ratings, kind="stable"),
            np.argsort(-catalogue.offsets, kind="stable"),
        )


def measure_bucket(
    blocks: pa.Table,
    models: pa.Table,
    scored_by: ScoringLearner,
    users: int,
    job: MeasureJob,
    facts: Shared,
    open_features: Callable[[FeatureFiles], ItemFeatures] = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Yield the sums over a bucket's users who have a model, `users` at a time in memory."""
    features = open_features(job.lists.files)
    known = pa.ipc.open_file(facts.value).get_batch(0)
    catalogue = Catalogue.of(features, known, choices=job.lists.beta > 0.0)
    shelf = Shelf.of(catalogue, job.measures.users)
    sums = ListSums(len(shelf.catalogue.items))
    user_models = scoring_models(models, scored_by)
    for batch in in_order(blocks, users):
        places = pc.index_in(batch.column("user_id"), user_models.column("user_id"))
        if places.null_count < len(places):
            taken = batch.filter(places.is_valid())
            rows = with_models(training_parts(taken), user_models, places.drop_null())
            for name, listed, some in _lists(rows, taken, job, features, shelf):
                sums.add(name, some.group, _figures(listed, some, shelf), listed)
    yield from sums.rows(shelf.catalogue.items)


def training_parts(blocks: pa.RecordBatch) -> pa.RecordBatch:
    """Return the blocks with the items of the training part alone."""
    items, ends = ragged(blocks.column("items"))
    n_train = blocks.column("n_train").to_numpy().astype(np.int64)
    is_training = _places_within(ends) < np.repeat(n_train, np.diff(ends))
    train_ends = np.concatenate([[0], np.cumsum(n_train)]).astype(np.int32)
    column = pa.ListArray.from_arrays(pa.array(train_ends), pa.array(items[is_training]))
    place = blocks.schema.get_field_index("items")
    return blocks.set_column(place, blocks.schema.field(place), column)


def _places_within(ends: IntArray) -> IntArray:
    return np.arange(ends[-1]) - np.repeat(ends[:-1], np.diff(ends))


@dataclass(frozen=True)
class _Users:
    """Some users: their groups, what may be in no list, and what is relevant to them.

    `relevant` has a number for every pair of user and relevant item, ascending: the user times the
    number of items, plus the item's position. `counts` has how many are relevant to every user.
    `popular` are the lists of the most popular items.
    """

    group: pa.DictionaryArray
    left_out: LeftOut
    relevant: IntArray
    counts: IntArray
    popular: IntArray

    def hits(self, listed: IntArray, n_items: int) -> NDArray[np.bool_]:
        """Return which places of the lists have a relevant item."""
        pairs = np.arange(len(listed))[:, None] * n_items + listed
        if len(self.relevant) == 0:
            return np.zeros(listed.shape, dtype=bool)
        places = np.minimum(np.searchsorted(self.relevant, pairs), len(self.relevant) - 1)
        return (listed != NONE) & (self.relevant[places] == pairs)


def _lists(
    rows: pa.RecordBatch, blocks: pa.RecordBatch, job: MeasureJob, features: ItemFeatures,
    shelf: Shelf,
) -> Iterator[tuple[str, IntArray, _Users]]:  # fmt: skip
    """Yield the lists of a batch of users by the learner, and those that are fixed."""
    size = job.lists.top
    some = _users(rows, blocks, job, shelf)
    yield (
        job.lists.learner,
        best_positions(rows, job.lists, features, shelf.catalogue, some.left_out),
        some,
    )
    yield MOST_POPULAR, some.popular, some
    if job.lists.learner != ITEM_OFFSET:
        yield ITEM_OFFSET, _unseen(shelf.best, some.left_out, size, shelf), some


def _users(rows: pa.RecordBatch, blocks: pa.RecordBatch, job: MeasureJob, shelf: Shelf) -> _Users:
    measures = job.measures
    left_out = left_out_of(rows, job.lists, shelf.catalogue)
    tests = held_out(blocks)
    n_items, users = (
        len(shelf.catalogue.items),
        np.repeat(np.arange(len(blocks)), np.diff(tests.ends)),
    )
    is_relevant = tests.ratings >= measures.relevant_from
    positions = shelf.catalogue.position_of[tests.items]
    listable = is_relevant & (positions != NONE)
    relevant = np.sort(users[listable] * n_items + positions[listable])
    if measures.sampled is not None:
        left_out = _all_but_a_sample(blocks, left_out, relevant, measures, shelf)
    return _Users(
        measures.groups.of(blocks.column("n_train").to_numpy()),
        left_out,
        relevant,
        np.bincount(users[is_relevant], minlength=len(blocks)),
        _unseen(shelf.popular, left_out, job.lists.top, shelf),
    )


def _unseen(order: IntArray, left_out: LeftOut, size: int, shelf: Shelf) -> IntArray:
    return first_unseen(order, left_out.positions, left_out.ends, size, len(shelf.catalogue.items))


def _all_but_a_sample(
    blocks: pa.RecordBatch, left_out: LeftOut, relevant: IntArray, measures: ListMeasures,
    shelf: Shelf,
) -> LeftOut:  # fmt: skip
    """Return all positions but a user's relevant ones and the sample of others."""
    n_items, kept = len(shelf.catalogue.items), []
    numbers = blocks.column("user").to_numpy()
    for user in range(len(blocks)):
        keys = member_keys(measures.seed, int(numbers[user]), shelf.catalogue.items)
        keys[left_out.of(user)] = np.iinfo(np.uint64).max
        own = relevant[slice(*np.searchsorted(relevant, [user * n_items, (user + 1) * n_items]))]
        keys[own - user * n_items] = 0
        wanted = min(len(own) + measures.sampled, n_items)  # type: ignore[operator]
        others = np.ones(n_items, dtype=bool)
        others[np.argsort(keys, kind="stable")[:wanted]] = False
        others[left_out.of(user)] = True
        kept.append(np.flatnonzero(others))
    return LeftOut(np.concatenate(kept), np.cumsum([0, *map(len, kept)]))


def _figures(listed: IntArray, some: _Users, shelf: Shelf) -> Figures:
    """Return every figure of every list; NaN where it is undefined."""
    n_items = len(shelf.catalogue.items)
    hits, filled = some.hits(listed, n_items), listed != NONE
    in_popular = (listed[:, :, None] == some.popular[:, None, :]).any(axis=2)
    sizes = filled.sum(axis=1)
    surprising = (hits & ~in_popular).sum(axis=1) / listed.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        popularity = np.where(filled, shelf.shares[listed], 0.0).sum(axis=1) / sizes
        novelty = np.where(filled, shelf.bits[listed], 0.0).sum(axis=1) / sizes
    return {
        **hit_metrics(hits, some.counts),
        "serendipity": np.where(some.counts > 0, surprising, np.nan),
        "popularity": popularity,
        "novelty": novelty,
        "diversity": _diversity(listed, filled, shelf),
    }


def _diversity(listed: IntArray, filled: NDArray[np.bool_], shelf: Shelf) -> FloatArray:
    """Return the lists' diversity over items with a direction."""
    if shelf.units.shape[1] == 0:
        return np.full(len(listed), np.nan)
    units = shelf.units[listed]
    return intra_list_diversity(units, filled & units.any(axis=2))


class ListSums:
    """Adds up figures and exposures over users, by whose lists and group."""

    def __init__(self, n_items: int) -> None:
        self._n_items = n_items
        self._sums: dict[tuple[str, str], tuple[int, IntArray, IntArray]] = {}

    def add(
        self, learner: str, group: pa.DictionaryArray, figures: Figures, listed: IntArray
    ) -> None:
        """Add the lists of some users."""
        values = np.column_stack([figures[name] for name in FIGURES])
        is_defined = ~np.isnan(values)
        known = np.where(is_defined, values, 0.0)
        parts = (is_defined, np.rint(known * FIXED_POINT), np.rint(known**2 * FIXED_POINT))
        columns = np.stack([part.astype(np.int64) for part in parts], axis=2)
        codes = group.indices.to_numpy()
        for code in np.unique(codes).tolist():
            own = codes == code
            shown = listed[own]
            exposures = np.bincount(shown[shown != NONE], minlength=self._n_items)
            count = int((shown != NONE).any(axis=1).sum())
            key = learner, group.dictionary[code].as_py()
            lists, sums, exposed = self._sums.get(key, (0, 0, 0))
            self._sums[key] = (lists + count, sums + columns[own].sum(axis=0), exposed + exposures)

    def rows(self, items: IntArray) -> Iterator[pa.RecordBatch]:
        """Yield the sums, if any, as rows of `SUM_COLUMNS`; `items` are numbers by position."""
        rows = []
        for (learner, group), (lists, sums, exposures) in sorted(
            self._sums.items(), key=itemgetter(0)
        ):
            shown = np.flatnonzero(exposures)
            rows.append(
                {"learner": learner, "user_group": group, "lists": lists,
                 "users": sums[:, 0], "totals": sums[:, 1], "squares": sums[:, 2],
                 "items": items[shown], "exposures": exposures[shown]}
            )  # fmt: skip
        if rows:
            yield pa.RecordBatch.from_pylist(rows, SUM_SCHEMA)
