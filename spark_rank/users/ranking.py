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
from spark_rank.users.held_out import HeldOut, held_out, in_order, predictions
from spark_rank.users.learning import FAILED
from spark_rank.users.stored_models import SCORING_COLUMNS, StoredModels

_SCHEMA = arrow_schema(RANKINGS.columns)
# what is read of the models
MODEL_COLUMNS = ("user_id", "learner", "status", *SCORING_COLUMNS, "bucket")
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


def rank_bucket(
    blocks: pa.Table,
    models: pa.Table,
    job: RankJob,
    open_features: Callable[[FeatureFiles], ItemFeatures] = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Yield a ranking for every user whom every asked learner can score, in the users' order."""
    features = open_features(job.files)
    known = models.filter(pc.not_equal(models.column("status"), FAILED))
    asked = [known.filter(pc.equal(known.column("learner"), label)).combine_chunks()
             for label in job.learners]  # fmt: skip
    for batch in in_order(blocks):
        places = [pc.index_in(batch.column("user_id"), table.column("user_id")) for table in asked]
        there = places[0].is_valid()
        for others in places[1:]:
            there = pc.and_(there, others.is_valid())
        if there.true_count:
            own = [table.take(each.filter(there)).combine_chunks().to_batches()[0]
                   for table, each in zip(asked, places, strict=True)]  # fmt: skip
            yield ranked(held_out(batch.filter(there)), own, features, job)


def ranked(
    data: HeldOut, models: Sequence[pa.RecordBatch], features: ItemFeatures, job: RankJob
) -> pa.RecordBatch:
    """Return a ranking per user; `models` has a row per user for every learner that is asked.

    A user with a score that is no finite number has no ranking.
    """
    found = [predictions(rows, data, features, None).scores for rows in models]
    known = np.logical_and.reduce([np.asarray(each.is_valid()) for each in found])
    if not known.all():  # a score beyond all numbers has no place in an order
        data = data.of(np.flatnonzero(known))
        found = [each.filter(pa.array(known)) for each in found]
        models = [rows.filter(pa.array(known)) for rows in models]
    scores = np.column_stack([ragged(each)[0].astype(np.float64) for each in found])
    keys = user_keys(data.users, job.seed)
    if job.preference == MEMBERS:
        ranking = _by_members(data, scores, keys, models[0], features, job)
    else:
        ranking = _rank(scores, data.ratings, data.ends, keys, job)
    ids = features.item_ids.take(pa.array(data.items[ranking.chosen]))
    columns = {
        "user_id": data.users,
        "items": pa.ListArray.from_arrays(pa.array(ranking.ends, pa.int32()), ids),
        "n_items": pa.array(np.diff(data.ends), pa.int32()),
        "calls": ranking.calls,
        "preference_loss": pa.array(ranking.preference_losses, from_pandas=True),
        "ranking_loss": pa.array(ranking.ranking_losses, from_pandas=True),
    }
    return pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)


def user_keys(users: pa.StringArray, seed: int) -> NDArray[np.uint64]:
    """Return what each user's draws depend on: 64 bits of a hash of seed and id."""
    hashes = [blake2b(f"rank/{seed}/{user}".encode(), digest_size=8).digest()
              for user in users.to_pylist()]  # fmt: skip
    return np.frombuffer(b"".join(hashes), "<u8")


def _rank(
    scores: FloatArray,
    ratings: NDArray[np.float32],
    ends: IntArray,
    keys: NDArray[np.uint64],
    job: RankJob,
) -> UserRankings:
    top = _ALL if job.top is None else job.top
    if not np.isfinite(scores).all():
        raise ContractError(
            f"rank: {', '.join(job.learners)}: a score is not a finite number, and has no place in "
            "an order: look at the models' `status`, and at the size of the features"
        )
    found = rank_users(
        np.ascontiguousarray(scores), ratings.astype(np.float64), ends, keys,
        job.method == "quicksort", top,
    )  # fmt: skip
    return UserRankings(*found)


def _by_members(
    data: HeldOut,
    scores: FloatArray,
    keys: NDArray[np.uint64],
    batch: pa.RecordBatch,
    features: ItemFeatures,
    job: RankJob,
) -> UserRankings:
    """Let every user's members vote. Who was not learned has none: the model's scores decide."""
    there = batch.column("members").is_valid().to_pylist()
    stored = StoredModels(batch, features.item_ids)
    parts = []
    for user, has_members in enumerate(there):
        own = slice(data.ends[user], data.ends[user + 1])
        voters = scores[own]
        if has_members:
            voters = stored[user].member_scores(features, data.items[own]).T
        ends = np.array([0, own.stop - own.start])
        parts.append(_rank(voters, data.ratings[own], ends, keys[user : user + 1], job))
    chosen = [part.chosen + start for part, start in zip(parts, data.ends, strict=False)]
    sizes = [len(part.chosen) for part in parts]
    return UserRankings(
        np.concatenate(chosen), np.concatenate([[0], np.cumsum(sizes)]),
        *(np.concatenate(values) for values in list(zip(*parts, strict=True))[2:]),
    )  # fmt: skip
