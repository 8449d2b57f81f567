"""Ranks users' held-out items by a preference: the work of a Spark worker on one bucket."""

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
# the columns of the models that are read
MODEL_COLUMNS = ("user_id", "learner", "status", *SCORING_COLUMNS, "bucket")
_ALL = np.iinfo(np.int64).max
VOTES, MEMBERS = "votes", "members"

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class RankJob:
    """How items are ranked: learners, preference, method, number of items, and seed of the draws.

    `files` has the item ids, and the features that members score with.
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
    """Yield a ranking for every user with a model of each learner, by user number."""
    features = open_features(job.files)
    usable = models.filter(pc.not_equal(models.column("status"), FAILED))
    by_learner = [usable.filter(pc.equal(usable.column("learner"), label)).combine_chunks()
             for label in job.learners]  # fmt: skip
    for batch in in_order(blocks):
        places = [
            pc.index_in(batch.column("user_id"), table.column("user_id")) for table in by_learner
        ]
        has_all = places[0].is_valid()
        for positions in places[1:]:
            has_all = pc.and_(has_all, positions.is_valid())
        if has_all.true_count:
            user_models = [table.take(each.filter(has_all)).combine_chunks().to_batches()[0]
                   for table, each in zip(by_learner, places, strict=True)]  # fmt: skip
            yield ranked(held_out(batch.filter(has_all)), user_models, features, job)


def ranked(
    data: HeldOut, models: Sequence[pa.RecordBatch], features: ItemFeatures, job: RankJob
) -> pa.RecordBatch:
    """Return a ranking per user; `models` has a batch per learner with a row per user.

    A user with a score that is not finite has no ranking.
    """
    predicted = [predictions(rows, data, features, None).scores for rows in models]
    is_finite = np.logical_and.reduce([np.asarray(each.is_valid()) for each in predicted])
    if not is_finite.all():  # a score that is not finite cannot be ranked
        data = data.of(np.flatnonzero(is_finite))
        predicted = [each.filter(pa.array(is_finite)) for each in predicted]
        models = [rows.filter(pa.array(is_finite)) for rows in models]
    scores = np.column_stack([ragged(each)[0].astype(np.float64) for each in predicted])
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
    """Return the key of each user's draws: 64 bits of a hash of seed and id."""
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
            f"rank: {', '.join(job.learners)}: a score is not finite and cannot be ranked: check "
            "the models' `status` and the size of the features"
        )
    rankings = rank_users(
        np.ascontiguousarray(scores), ratings.astype(np.float64), ends, keys,
        job.method == "quicksort", top,
    )  # fmt: skip
    return UserRankings(*rankings)


def _by_members(
    data: HeldOut,
    scores: FloatArray,
    keys: NDArray[np.uint64],
    batch: pa.RecordBatch,
    features: ItemFeatures,
    job: RankJob,
) -> UserRankings:
    """Let every user's members vote; for a model without members, its scores decide."""
    members_exist = batch.column("members").is_valid().to_pylist()
    stored = StoredModels(batch, features.item_ids)
    parts = []
    for user, has_members in enumerate(members_exist):
        entries = slice(data.ends[user], data.ends[user + 1])
        voters = scores[entries]
        if has_members:
            voters = stored[user].member_scores(features, data.items[entries]).T
        ends = np.array([0, entries.stop - entries.start])
        parts.append(_rank(voters, data.ratings[entries], ends, keys[user : user + 1], job))
    chosen = [part.chosen + start for part, start in zip(parts, data.ends, strict=False)]
    sizes = [len(part.chosen) for part in parts]
    return UserRankings(
        np.concatenate(chosen), np.concatenate([[0], np.cumsum(sizes)]),
        *(np.concatenate(values) for values in list(zip(*parts, strict=True))[2:]),
    )  # fmt: skip
