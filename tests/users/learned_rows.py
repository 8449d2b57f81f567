"""Small model rows of every learner, as the train stage writes them, for tests that read them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import ENSEMBLE_MODELS
from spark_rank.users import learning
from spark_rank.users.ensemble_learning import all_members, ensemble_batches, ensemble_row
from spark_rank.users.ensembles import EnsembleSpec
from spark_rank.users.learning import LearnJob, learn_batches
from spark_rank.users.model_rows import model_columns
from spark_rank.users.problems import Problem, problems
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.selection import Limits
from spark_rank.users.specs import BASELINE_SPECS, LearnerSpec

N_ITEMS, D = 24, 3
RNG = np.random.default_rng(11)
FEATURES = ItemFeatures(
    # coarse values, so that base rankers meet cuts exactly and ranks meet thresholds
    (RNG.integers(-4, 5, size=(N_ITEMS, D)) / 4).astype(np.float32),
    RNG.normal(size=N_ITEMS),
    np.empty((0, D), dtype=np.float32),
    pa.array([f"item {i}" for i in range(N_ITEMS)]),
)
WITH_PRIOR = replace(FEATURES, prior=RNG.normal(size=(N_ITEMS + 2, D)).astype(np.float32) / 4)
NO_FILE = MappedFile("none", "")
FILES = FeatureFiles(NO_FILE, NO_FILE, NO_FILE, NO_FILE)
SCALE = RankScale((1.0, 2.0, 3.0, 4.0, 5.0))
LIMITS = Limits(SCALE, max_kernel_ratings=2000, landmarks=6, folds=5)
# user, items, ratings, n_train: learned, too few ratings, all equal
USERS: list[tuple[int, list[int], list[float], int]] = [
    (0, RNG.permutation(N_ITEMS).tolist(), [float(i * 7 % 5 + 1) for i in range(N_ITEMS)], 16),
    (1, [3, 4], [4.0, 2.0], 1),
    (2, [0, 1, 2, 3, 4], [3.0, 3.0, 3.0, 1.0, 5.0], 3),
]

KERNELS = [{"kernel": "linear"}, {"kernel": "rbf"}, {"kernel": "poly", "gamma": 0.5, "degree": 3},
           {"kernel": "linear+rbf", "rbf_weight": 0.4}]  # fmt: skip
SPECS = [
    *[LearnerSpec("it", name, offset, params) for name in ("mprank", "svrank", "ranksvm")
      for params in KERNELS for offset in (True, False)],
    *[LearnerSpec("it", "rankboost", offset, {"n_rounds": 9}) for offset in (True, False)],
    *[LearnerSpec("it", "prank", offset, {"readout": readout, "epochs": 3})
      for readout in ("last", "averaged") for offset in (True, False)],
    *[LearnerSpec("it", "prank", offset, {"readout": "averaged", "update": "romma"})
      for offset in (True, False)],
    *[LearnerSpec("it", "prank", False, {"readout": readout, **params})
      for readout in ("last", "averaged", "voted") for params in KERNELS[:3]],
    *[LearnerSpec("it", name, offset, {"epochs": 2})
      for name in ("widrow_hoff", "multiclass_perceptron") for offset in (True, False)],
    *BASELINE_SPECS,
    *[EnsembleSpec("it", "oap", offset, {"combine": combine, "tau": 0.6, "n_members": 5})
      for combine in ("bpm", "bagging", "voted") for offset in (True, False)],
]  # fmt: skip
WITH_MEMBERS = arrow_schema(ENSEMBLE_MODELS.columns)


def blocks() -> pa.RecordBatch:
    return pa.record_batch(
        {
            "user": pa.array([u[0] for u in USERS], pa.int32()),
            "user_id": pa.array([f"user {u[0]}" for u in USERS]),
            "items": pa.array([u[1] for u in USERS], pa.list_(pa.int32())),
            "ratings": pa.array([u[2] for u in USERS], pa.list_(pa.float32())),
            "n_train": pa.array([u[3] for u in USERS], pa.int32()),
            "bucket": pa.array([u[0] + 5 for u in USERS], pa.int32()),
        }
    )


def learn(
    spec: LearnerSpec, features: ItemFeatures = FEATURES, panel: dict[int, int] | None = None,
    limits: Limits = LIMITS,
) -> pa.RecordBatch:  # fmt: skip
    job = LearnJob(FILES, (spec,), panel or {}, min_ratings=2, margin=1.0, limits=limits)
    of_ensemble = isinstance(spec, EnsembleSpec)
    learn_all = ensemble_batches if of_ensemble else learn_batches
    (out,) = learn_all(iter([blocks()]), job, lambda files: features)
    # stages read the models of a run as one table, with the columns of members
    missing = [field for field in WITH_MEMBERS if field.name not in out.schema.names]
    for field in missing:
        out = out.append_column(field, pa.nulls(len(out), field.type))
    return out


def ident(spec: LearnerSpec) -> str:
    return f"{spec.learner}-{spec.item_offset}-{'-'.join(map(str, spec.params.values()))}"


@dataclass(frozen=True)
class Own:
    """A fitted learner's scores and ranks of a user's held-out items, before it is a row."""

    scores: Any
    ranks: list[int] | None


def own_predictions(
    spec: LearnerSpec,
    features: ItemFeatures = FEATURES,
    panel: dict[int, int] | None = None,
    limits: Limits = LIMITS,
    users: pa.RecordBatch | None = None,
    min_ratings: int = 2,
) -> list[Own | None]:
    """Fit every user alone and ask the fitted learner; None where that failed."""
    job = LearnJob(FILES, (spec,), panel or {}, min_ratings, margin=1.0, limits=limits)
    return [
        _own(problem, spec, job, features)
        for problem in problems(blocks() if users is None else users, features, job.panel)
    ]


def _own(problem: Problem, spec: LearnerSpec, job: LearnJob, features: ItemFeatures) -> Own | None:
    met: list[tuple[Any, Any]] = []

    def keep(fitted: Any, problem: Problem, known: Any, *rest: Any) -> Any:
        met.append((fitted, known))
        return model_columns(fitted, problem, known, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "model_columns", keep)
        if isinstance(spec, EnsembleSpec):
            ensemble_row(problem, spec, job, features.item_ids, all_members)
        else:
            learning.learn_user(problem, spec, job, features.item_ids)
    if not met:
        return None
    ((fitted, known),) = met
    held_out = known.held_out(problem)
    if len(held_out[0]) == 0:
        return Own(np.empty(0), [] if spec.kind.of_ranks else None)
    scores = fitted.scores(*held_out)
    ranks = fitted.ranks(*held_out)
    if ranks is None and spec.kind.of_ranks and job.limits.scale is not None:
        ranks = job.limits.scale.ranks(scores)
    return Own(scores, None if ranks is None else ranks.tolist())
