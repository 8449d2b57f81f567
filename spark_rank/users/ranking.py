"""Puts users' held-out items in order by a preference: what a Spark worker does with a bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.errors import ContractError
from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.preference.many_users import UserRankings, rank_users
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import RANKINGS
from spark_rank.users.batches import ragged
from spark_rank.users.bucket_pieces import Selection, blocks_and_places, by_bucket
from spark_rank.users.stored_models import SCORING_COLUMNS, stored_model

_SCHEMA = arrow_schema(RANKINGS.columns)
_BLOCK_COLUMNS = ("user_id", "items", "ratings", "n_train")
_SCORES = ("user_id", "learner", "test_scores")
_ALL = np.iinfo(np.int64).max
VOTES, MEMBERS = "votes", "members"

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class RankJob:
    """How items are ordered: by whom, by what preference, method, how many, and what draws follow.

    `files` has the item ids, and the features for members to score.
    """

    learners: tuple[str, ...]
    preference: str
    method: str
    top: int | None
    seed: int
    files: FeatureFiles

    def selection(self, buckets: tuple[int, ...]) -> Selection:
        """Return which models are needed."""
        columns = (*_SCORES, *SCORING_COLUMNS) if self.preference == MEMBERS else _SCORES
        return Selection(self.learners, buckets, columns)


@dataclass(frozen=True)
class HeldOut:
    """Users' held-out items and ratings end to end, and where each user's begin and end."""

    users: pa.StringArray
    items: IntArray
    ratings: FloatArray
    ends: IntArray


def rank_pieces(
    batches: Iterator[pa.RecordBatch],
    job: RankJob,
    users: int,
    open_features: Callable[[FeatureFiles], ItemFeatures] = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Turn pieces of models and files of blocks into rankings, at most so many users at a time.

    Users for whom every asked learner has scores have one, in the order of the blocks.
    """
    features = open_features(job.files)
    for models, files in by_bucket(batches, job.selection(()).columns):
        known = models.filter(pc.is_valid(models.column("test_scores")))
        # in one piece: else every user's rows are looked for among those of all pieces
        asked = [known.filter(pc.equal(known.column("learner"), label)).combine_chunks()
                 for label in job.learners]  # fmt: skip
        for file in files:
            for blocks, places in blocks_and_places(file, _BLOCK_COLUMNS, asked, users):
                there = places[0].is_valid()
                for others in places[1:]:
                    there = pc.and_(there, others.is_valid())
                if there.true_count:
                    own = [table.take(each.filter(there)).combine_chunks()
                           for table, each in zip(asked, places, strict=True)]  # fmt: skip
                    yield ranked(held_out(blocks.filter(there)), own, features, job)


def held_out(blocks: pa.RecordBatch) -> HeldOut:
    """Return what blocks hold behind the training part."""
    items, ends = ragged(blocks.column("items"))
    ratings, _ = ragged(blocks.column("ratings"))
    n_train = blocks.column("n_train").to_numpy()
    left = np.arange(len(items)) - np.repeat(ends[:-1], np.diff(ends)) >= np.repeat(
        n_train, np.diff(ends)
    )
    sizes = np.diff(ends) - n_train
    return HeldOut(
        blocks.column("user_id"), items[left], ratings[left].astype(np.float64),
        np.concatenate([[0], np.cumsum(sizes)]),
    )  # fmt: skip


def ranked(
    data: HeldOut, models: Sequence[pa.Table], features: ItemFeatures, job: RankJob
) -> pa.RecordBatch:
    """Return a ranking per user; `models` has a row per user for every learner that is asked."""
    scores = np.column_stack([_scores(table, data.ends) for table in models])
    keys = user_keys(data.users, job.seed)
    if job.preference == MEMBERS:
        found = _by_members(data, scores, keys, models[0], features, job)
    else:
        found = _rank(scores, data.ratings, data.ends, keys, job)
    ids = features.item_ids.take(pa.array(data.items[found.chosen]))
    columns = {
        "user_id": data.users,
        "items": pa.ListArray.from_arrays(pa.array(found.ends, pa.int32()), ids),
        "n_items": pa.array(np.diff(data.ends), pa.int32()),
        "calls": found.calls,
        "preference_loss": pa.array(found.preference_losses, from_pandas=True),
        "ranking_loss": pa.array(found.ranking_losses, from_pandas=True),
    }
    return pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)


def user_keys(users: pa.StringArray, seed: int) -> NDArray[np.uint64]:
    """Return what each user's draws depend on: 64 bits of a hash of seed and id."""
    hashes = [blake2b(f"rank/{seed}/{user}".encode(), digest_size=8).digest()
              for user in users.to_pylist()]  # fmt: skip
    return np.frombuffer(b"".join(hashes), "<u8")


def _scores(models: pa.Table, ends: IntArray) -> FloatArray:
    """Return the models' held-out scores end to end."""
    scores, own_ends = ragged(models.column("test_scores").combine_chunks())
    if not np.array_equal(own_ends, ends):
        label = models.column("learner")[0].as_py()
        raise ContractError(
            f"table models: {label} has not as many held-out scores as there are held-out ratings"
        )
    return scores.astype(np.float64)


def _rank(
    scores: FloatArray, ratings: FloatArray, ends: IntArray, keys: NDArray[np.uint64], job: RankJob
) -> UserRankings:
    top = _ALL if job.top is None else job.top
    if not np.isfinite(scores).all():
        raise ContractError(
            f"rank: {', '.join(job.learners)}: a score is not a finite number, and has no place in "
            "an order: look at the models' `status`, and at the size of the features"
        )
    found = rank_users(
        np.ascontiguousarray(scores), ratings, ends, keys, job.method == "quicksort", top
    )
    return UserRankings(*found)


def _by_members(
    data: HeldOut,
    scores: FloatArray,
    keys: NDArray[np.uint64],
    models: pa.Table,
    features: ItemFeatures,
    job: RankJob,
) -> UserRankings:
    """Let every user's members vote. Who was not learned has none: the model's scores decide."""
    (batch,) = models.to_batches()
    there = batch.column("members").is_valid().to_pylist()
    parts = []
    for user, has_members in enumerate(there):
        own = slice(data.ends[user], data.ends[user + 1])
        voters = scores[own]
        if has_members:
            model = stored_model(batch, user, features.item_ids)
            voters = model.member_scores(features, data.items[own]).T
        ends = np.array([0, own.stop - own.start])
        parts.append(_rank(voters, data.ratings[own], ends, keys[user : user + 1], job))
    chosen = [part.chosen + start for part, start in zip(parts, data.ends, strict=False)]
    sizes = [len(part.chosen) for part in parts]
    return UserRankings(
        np.concatenate(chosen), np.concatenate([[0], np.cumsum(sizes)]),
        *(np.concatenate(values) for values in list(zip(*parts, strict=True))[2:]),
    )  # fmt: skip
