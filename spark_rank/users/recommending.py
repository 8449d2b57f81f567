"""Lists every user's best and worst unseen items: the work of a Spark worker on a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import RECOMMENDATIONS
from spark_rank.users.batches import ragged
from spark_rank.users.diversifying import directions, diversified
from spark_rank.users.joining import ScoringLearner, users_with_models
from spark_rank.users.list_cut import list_length
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.stored_models import (
    StoredModel,
    StoredModels,
    column,
    has_ranks,
    linear_rows,
    on_rating_scale,
    rank_rule,
    row_products,
    weight_matrix,
)
from spark_rank.users.top_items import (
    BOTTOM,
    NONE,
    TOP,
    BestItems,
    LinearScores,
    add_linear,
    add_scored,
    best_at,
    forget,
    linear_scores,
    no_items,
    product_errors,
    put_items,
)

RECOMMENDATION_SCHEMA = arrow_schema(RECOMMENDATIONS.columns)
SOURCES = ("learned", "fallback", "item_offset", "new_item")
_SOURCE_OF_STATUS = {"learned": 0, "approximated": 0, "fallback": 1, "failed": 2}
_NEW_ITEM = 3
NO_RATINGS = "no_training_ratings"

# scores in memory at once: 8 MB in single precision, close to the size of a second-level cache
_BLOCK = 2**21
_MOST_COLUMNS = 2**16
# items whose features are in memory in double precision for one user
_MOST_ROWS = 2**13

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ListOrder:
    """What becomes of a list of best items, before it is shown.

    With a `diversity` above 0, its items are taken from the `pool` best, so that they differ
    (`diversified`). `cut`, `gap`, `share` and `least` say where it ends (`list_length`).
    """

    diversity: float = 0.0
    pool: int = 0
    cut: str = "none"
    gap: float = 0.0
    share: float = 0.0
    least: int = 1


@dataclass(frozen=True)
class RecommendJob:
    """The settings of a worker: feature files, learner, lengths of the lists, rating scale.

    `low` and `high` are the least and the greatest rating of the scale. A list is ordered by the
    score plus `beta` times the log-odds that the user chooses the item at all. With `rated`, rated
    items may be listed too.
    """

    files: FeatureFiles
    learner: str
    top: int
    bottom: int
    scale: RankScale | None
    low: float
    high: float
    beta: float = 0.0
    rated: bool = False
    order: ListOrder = ListOrder()

    @property
    def length(self) -> int:
        """Return how many best items are looked for."""
        return max(self.top, self.order.pool) if self.order.diversity else self.top


class Shared(Protocol):
    """A Spark broadcast of the item facts."""

    @property
    def value(self) -> bytes:
        """Return the bytes that `facts_as_bytes` returned."""


@dataclass(frozen=True)
class Catalogue:
    """The items that may be recommended, in the order of their ids, which breaks ties.

    `matrix` has their features, with `choices` those of the model of choices, and, last, their
    offset in single precision; `longest` is the greatest norm of its rows. `position_of` has the
    position of every item by number, or `NONE`.
    """

    items: IntArray
    position_of: IntArray
    matrix: NDArray[np.float32]
    offsets: NDArray[np.float64]
    longest: float
    width: int
    ids: pa.StringArray
    titles: pa.StringArray
    n_ratings: NDArray[np.int32]

    @classmethod
    def of(
        cls, features: ItemFeatures, facts: pa.RecordBatch, *, choices: bool = False
    ) -> Catalogue:
        """Gather the candidates' rows of the feature files; O(n d) memory.

        Lists by a job with a `beta` need `choices`.
        """
        numbers = np.flatnonzero(facts.column("candidate").to_numpy(zero_copy_only=False))
        in_order = pc.sort_indices(features.item_ids.take(pa.array(numbers)))
        items = numbers[in_order.to_numpy()]
        position_of = np.full(len(features.item_ids), NONE, dtype=np.int64)
        position_of[items] = np.arange(len(items))
        offsets = np.asarray(features.offset[items], dtype=np.float64)
        parts = [features.matrix[items], offsets.astype(np.float32)[:, None]]
        if choices and features.choice is not None:
            parts.insert(1, features.choice.decoder[items])
        matrix = np.hstack(parts)
        squares = np.einsum("if,if->i", matrix, matrix, dtype=np.float64)
        taken = pa.array(items)
        return cls(
            items, position_of, matrix, offsets, float(np.sqrt(squares.max(initial=0.0))),
            features.matrix.shape[1],
            features.item_ids.take(taken), facts.column("title").take(taken),
            facts.column("n_ratings").to_numpy()[items],
        )  # fmt: skip

    @cached_property
    def units(self) -> NDArray[np.float32]:
        """Return the directions of the items' features."""
        return directions(self.matrix[:, : self.width])

    def blocks(self, most: int) -> Iterator[slice]:
        """Yield slices of at most `most` positions, in order."""
        for start in range(0, len(self.items), most):
            yield slice(start, min(start + most, len(self.items)))


class LeftOut(NamedTuple):
    """The positions of items that may not be in a user's list: user u's are ends[u] to ends[u + 1].

    An item that is not in the catalogue has position `NONE`.
    """

    positions: IntArray
    ends: IntArray

    def of(self, user: int) -> IntArray:
        """Return the positions in the catalogue of one user."""
        own = self.positions[self.ends[user] : self.ends[user + 1]]
        return own[own != NONE]


@dataclass(frozen=True)
class Lists:
    """The lists while they are filled, a row per user, and what is in none of them."""

    best: tuple[tuple[float, BestItems], ...]
    left_out: LeftOut


def list_facts(items: pa.Table) -> pa.RecordBatch:
    """Return ``title, n_ratings, candidate`` of every item, from a table ordered by item number."""
    return items.select(["title", "n_ratings", "candidate"]).combine_chunks().to_batches()[0]


def facts_as_bytes(facts: pa.RecordBatch) -> bytes:
    """Return the `list_facts` of every item as bytes, for `recommend_batches`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, facts.schema) as writer:
        writer.write_batch(facts)
    return bytes(sink.getvalue().to_pybytes())


def recommend_bucket(
    blocks: pa.Table,
    models: pa.Table,
    scored_by: ScoringLearner,
    users: int,
    job: RecommendJob,
    facts: Shared,
) -> Iterator[pa.RecordBatch]:
    """Yield the lists of a bucket's users, by user number, `users` at a time."""
    yield from recommend_batches(users_with_models(blocks, models, scored_by, users), job, facts)


def recommend_batches(
    batches: Iterator[pa.RecordBatch],
    job: RecommendJob,
    facts: Shared,
    open_features: Callable[[FeatureFiles], ItemFeatures] = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Turn users with `WANTED_COLUMNS` into rows of the table `recommendations`."""
    features = open_features(job.files)
    known = pa.ipc.open_file(facts.value).get_batch(0)
    catalogue = Catalogue.of(features, known, choices=job.beta > 0.0)
    for batch in batches:
        yield lists_of(batch, job, features, catalogue)


def lists_of(
    batch: pa.RecordBatch,
    job: RecommendJob,
    features: ItemFeatures,
    catalogue: Catalogue,
    left_out: LeftOut | None = None,
) -> pa.RecordBatch:
    """Return the rows of `recommendations` for users with `WANTED_COLUMNS`.

    `left_out` are items that are in no list; None: those that the users have rated.
    """
    lists = _empty_lists(batch, job, left_out or left_out_of(batch, job, catalogue))
    scoring = Scoring.of(batch, job, features)
    _fill(lists, scoring, features, catalogue)
    lists = _in_order(lists, job, catalogue)
    _separate_lists(lists, scoring, features, catalogue)
    return _as_rows(lists, scoring, job, features, catalogue)


def best_positions(
    batch: pa.RecordBatch,
    job: RecommendJob,
    features: ItemFeatures,
    catalogue: Catalogue,
    left_out: LeftOut,
) -> IntArray:
    """Return the positions of every user's best items, `NONE` where there are no more."""
    lists = _empty_lists(batch, replace(job, bottom=0), left_out)
    _fill(lists, Scoring.of(batch, job, features), features, catalogue)
    ((_, best),) = _in_order(lists, job, catalogue).best
    return best.positions


def left_out_of(batch: pa.RecordBatch, job: RecommendJob, catalogue: Catalogue) -> LeftOut:
    """Return the positions of the items that each user has rated; none if these may be listed."""
    items, ends = ragged(batch.column("items"))
    if job.rated:
        return LeftOut(np.empty(0, dtype=np.int64), np.zeros_like(ends))
    return LeftOut(catalogue.position_of[items], ends)


def _empty_lists(batch: pa.RecordBatch, job: RecommendJob, left_out: LeftOut) -> Lists:
    lengths = ((TOP, job.length), (BOTTOM, job.bottom))
    best = tuple((sign, no_items(len(batch), size)) for sign, size in lengths if size > 0)
    return Lists(best, left_out)


def _in_order(lists: Lists, job: RecommendJob, catalogue: Catalogue) -> Lists:
    """Return the lists with the best items in the order, and up to the end, that the job asks."""
    (sign, best), *others = lists.best
    if sign != TOP:
        return lists
    order = job.order
    if order.diversity:
        places = diversified(best.scores, best.positions, catalogue.units, order.diversity, job.top)
        best = best_at(best, places)
    elif order.cut != "none":
        lengths = [
            list_length(row[:count], order.cut, order.gap, order.share, order.least)[0]
            for row, count in zip(best.scores, best.counts, strict=True)
        ]
        within = np.arange(best.scores.shape[1])[None, :] < np.array(lengths)[:, None]
        best = best_at(best, np.where(within, np.arange(best.scores.shape[1])[None, :], NONE))
    return Lists(((sign, best), *others), lists.left_out)


@dataclass(frozen=True)
class Scoring:
    """What orders the items of some users: their models, and what they tend to choose.

    `linear` are the models that are linear in the columns of the catalogue, with the weights of the
    choices, if there are any, behind those of the features. ``codes`` are these weights.
    """

    batch: pa.RecordBatch
    linear: NDArray[np.bool_]
    models: LinearScores
    codes: NDArray[np.float64] | None

    @classmethod
    def of(cls, batch: pa.RecordBatch, job: RecommendJob, features: ItemFeatures) -> Scoring:
        """Gather the weights of the users in `batch`.

        Choices count only where scores are on the scale of the ratings.
        """
        linear = linear_rows(batch)
        weights = weight_matrix(batch, linear, features.matrix.shape[1])
        codes = None
        if job.beta and features.choice is not None:
            items, ends = ragged(batch.column("items"))
            strength = np.where(on_rating_scale(batch), job.beta, 0.0)
            codes = strength[:, None] * features.choice.codes(items, ends)
            weights = np.hstack([weights, codes])
        models = LinearScores(weights, column(batch, "offset_weight"), column(batch, "intercept"))
        return cls(batch, linear, models, codes)

    def of_rows(self, rows: IntArray) -> Scoring:
        """Return the same for some of the users."""
        models = LinearScores(*(values[rows] for values in self.models))
        codes = None if self.codes is None else self.codes[rows]
        return Scoring(self.batch.take(pa.array(rows)), self.linear[rows], models, codes)


def _fill(lists: Lists, scoring: Scoring, features: ItemFeatures, catalogue: Catalogue) -> None:
    """Fill the lists: many users of linear models at a time, others one by one."""
    models = scoring.models
    errors = product_errors(models, catalogue.longest, np.abs(catalogue.offsets).max(initial=0.0))
    screened = scoring.linear & np.isfinite(errors)
    rows = np.flatnonzero(screened)
    users_at_once = max(1, _BLOCK // max(1, min(len(catalogue.items), _MOST_COLUMNS)))
    room = np.empty(
        min(users_at_once, len(rows)) * min(len(catalogue.items), _MOST_COLUMNS), np.float32
    )
    for first in range(0, len(rows), users_at_once):
        _add_linear_users(
            lists, rows[first : first + users_at_once], models, errors, catalogue, room
        )
    if not screened.all():
        stored = StoredModels(scoring.batch, features.item_ids)
        for row in np.flatnonzero(~screened).tolist():
            code = None if scoring.codes is None else scoring.codes[row]
            _add_user(lists, row, stored[row], code, features, catalogue)


def _separate_lists(
    lists: Lists, scoring: Scoring, features: ItemFeatures, catalogue: Catalogue
) -> None:
    """Remove a user's best items from the list of the worst, and fill it with the next ones.

    An item is in both lists only if a user has few unseen items, or equal scores. Only the lists
    of such users are made again.
    """
    if len(lists.best) < 2:
        return
    (_, top), (sign, bottom) = lists.best
    rows = _rows_with_shared_items(top, bottom)
    if len(rows) == 0:
        return
    excluded = [np.concatenate([lists.left_out.of(row), top.positions[row]]) for row in rows]
    ends = np.cumsum([0, *map(len, excluded)])
    next_items = no_items(len(rows), bottom.scores.shape[1])
    remaining = Lists(((sign, next_items),), LeftOut(np.concatenate(excluded), ends))
    _fill(remaining, scoring.of_rows(rows), features, catalogue)
    put_items(bottom, rows, next_items)


def _rows_with_shared_items(top: BestItems, bottom: BestItems) -> IntArray:
    """Return the rows of the users who have an item in both lists."""
    ascending = np.sort(np.hstack([top.positions, bottom.positions]), axis=1)
    repeated = (ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] != NONE)
    return np.flatnonzero(repeated.any(axis=1))


def _add_linear_users(
    lists: Lists,
    rows: IntArray,
    models: LinearScores,
    errors: NDArray[np.float64],
    catalogue: Catalogue,
    room: NDArray[np.float32],
) -> None:
    """Add all items to the lists of `rows`; `room` is memory for their products."""
    weights = np.column_stack([models.weights[rows], models.offset_weights[rows]])
    weights = weights.astype(np.float32)
    for part in catalogue.blocks(_MOST_COLUMNS):
        block, offsets = catalogue.matrix[part], catalogue.offsets[part]
        products = room[: len(rows) * len(block)].reshape(len(rows), len(block))
        np.matmul(weights, block.T, out=products)
        forget(products, rows, *lists.left_out, part.start)
        for sign, best in lists.best:
            add_linear(best, sign, products, rows, errors, models, block, offsets, part.start)


def _add_user(
    lists: Lists,
    row: int,
    model: StoredModel,
    code: NDArray[np.float64] | None,
    features: ItemFeatures,
    catalogue: Catalogue,
) -> None:
    user = np.array([row])
    for part in catalogue.blocks(_MOST_ROWS):
        scores = model.scores(features, catalogue.items[part])
        if code is not None and features.choice is not None:
            decoder = features.choice.decoder[catalogue.items[part]].astype(np.float64)
            scores += row_products(decoder, code)
        scores[~np.isfinite(scores)] = np.nan  # a score that is not finite is never listed
        forget(scores[None, :], user, *lists.left_out, part.start)
        for sign, best in lists.best:
            add_scored(best, row, sign, scores, part.start)


def _as_rows(
    lists: Lists, scoring: Scoring, job: RecommendJob, features: ItemFeatures, catalogue: Catalogue
) -> pa.RecordBatch:
    """Return a row per user, list and position, users in the order of the batch."""
    batch = scoring.batch
    names = ["top" if sign == TOP else "bottom" for sign, _ in lists.best]
    sizes = [best.scores.shape[1] for _, best in lists.best]
    positions = np.hstack([best.positions for _, best in lists.best])
    users, places = np.nonzero(positions != NONE)
    chosen = positions[users, places]
    values = np.hstack([best.scores for _, best in lists.best])[users, places]
    scores = (
        values
        if scoring.codes is None
        else _model_scores(scoring, users, chosen, features, catalogue)
    )
    ranks, ratings = predictions(scores, users, batch, job)
    n_ratings = catalogue.n_ratings[chosen]
    sources = _sources(batch)[users]
    is_new = (n_ratings == 0) & (sources == 0)
    by_user, taken = pa.array(users), pa.array(chosen)
    reasons = batch.column("reason").take(by_user)
    columns = {
        "user_id": batch.column("user_id").take(by_user),
        "learner": _repeated(job.learner, len(users)),
        "list": pa.array(names).take(pa.array(np.repeat(np.arange(len(names)), sizes)[places])),
        "position": np.concatenate([np.arange(1, size + 1) for size in sizes])[places],
        "item_id": catalogue.ids.take(taken),
        "title": catalogue.titles.take(taken),
        "score": scores,
        "list_score": values,
        "predicted_rank": pa.array(ranks, pa.int32(), from_pandas=True),
        "predicted_rating": pa.array(ratings, from_pandas=True),
        "item_ratings": n_ratings,
        "source": pa.array(SOURCES).take(pa.array(np.where(is_new, _NEW_ITEM, sources))),
        "reason": pc.if_else(pa.array(is_new), pa.scalar(NO_RATINGS), reasons),
        "bucket": batch.column("bucket").take(by_user),
    }
    return pa.RecordBatch.from_pydict(columns, schema=RECOMMENDATION_SCHEMA)


def _model_scores(
    scoring: Scoring, users: IntArray, chosen: IntArray, features: ItemFeatures,
    catalogue: Catalogue,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the models' scores of listed items, given their users and positions."""
    scores, width = np.empty(len(users)), features.matrix.shape[1]
    own = LinearScores(np.ascontiguousarray(scoring.models.weights[:, :width]), *scoring.models[1:])
    linear_scores(own, users, chosen, catalogue.matrix, catalogue.offsets, scores)
    stored = None
    ends = np.searchsorted(users, np.arange(len(scoring.linear) + 1))
    for row in np.flatnonzero(~scoring.linear).tolist():
        stored = stored or StoredModels(scoring.batch, features.item_ids)
        entries = slice(ends[row], ends[row + 1])
        scores[entries] = stored[row].scores(features, catalogue.items[chosen[entries]])
    return scores


def _repeated(word: str, times: int) -> pa.StringArray:
    return pa.array([word]).take(pa.array(np.zeros(times, dtype=np.int64)))


def _sources(batch: pa.RecordBatch) -> IntArray:
    statuses = batch.column("status").dictionary_encode()
    codes = np.array([_SOURCE_OF_STATUS[word] for word in statuses.dictionary.to_pylist()], int)
    return codes[statuses.indices.to_numpy()]


def predictions(
    scores: NDArray[np.float64], users: IntArray, batch: pa.RecordBatch, job: RecommendJob
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return predicted ranks and ratings, NaN where the score gives none.

    A rating is the score, limited to the scale; for learners of ranks, the level of the rank.
    """
    rated = on_rating_scale(batch)[users]
    ranks, ratings = np.full((2, len(scores)), np.nan)
    ratings[rated] = np.clip(scores[rated], job.low, job.high)
    if job.scale is not None:
        ranks[rated] = job.scale.ranks(scores[rated])
    ends = np.searchsorted(users, np.arange(len(batch) + 1))
    for row in np.flatnonzero(has_ranks(batch)).tolist():
        entries = slice(ends[row], ends[row + 1])
        predicted = rank_rule(batch, row).ranks(scores[entries])
        ranks[entries] = predicted
        if job.scale is not None:
            ratings[entries] = job.scale.ratings(predicted)
    return ranks, ratings
