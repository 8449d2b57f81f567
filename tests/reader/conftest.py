"""Small runs with every learner and kind of features, to be read without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_rank.config import Config
from spark_rank.store.run import Run

LEARNERS = """train.learners=[
  {name: linear, params: {C: 0.1}},
  {name: rbf, params: {C: 10, kernel: rbf}},
  {name: own, learner: mprank, grid: {C: [0.1, 1]}, selection: k_fold},
  {learner: svrank}, {learner: ranksvm}, {learner: rankboost},
  {learner: prank, params: {epochs: 2}},
  {name: voted, learner: prank, params: {readout: voted, kernel: rbf}, item_offset: false},
  {learner: widrow_hoff}, {learner: multiclass_perceptron}]"""
ENSEMBLES = """ensemble.learners=[
  {n_members: 5}, {name: bag, combine: bagging, n_members: 5},
  {name: votes, combine: voted, n_members: 5}]"""
SOME = """train.learners=[
  {name: linear, params: {C: 0.1}},
  {name: rbf, params: {C: 10, kernel: rbf}},
  {learner: prank, params: {epochs: 2}}]"""
BAG = "ensemble.learners=[{name: bag, combine: bagging, n_members: 5}]"
FEW = "train.learners=[{name: linear, params: {C: 0.1}}, {learner: prank}]"
# results that no test of these runs needs
_WITHOUT = ("evaluate", "rank", "aggregate", "report")


@pytest.fixture(scope="session")
def panel_run(make_config: Callable[..., Config], run_pipeline: Callable[..., Run]) -> Run:
    """Return a run with learners and an ensemble, lists and predictions."""
    return _made(make_config, run_pipeline, SOME, BAG, "ensemble.in_pipeline=true")


@pytest.fixture(scope="session")
def every_run(make_config: Callable[..., Config], run_pipeline: Callable[..., Run]) -> Run:
    """Return the same with every learner and way of combining members."""
    return _made(make_config, run_pipeline, LEARNERS, ENSEMBLES, "ensemble.in_pipeline=true")


@pytest.fixture(scope="session")
def factor_run(make_config: Callable[..., Config], run_pipeline: Callable[..., Run]) -> Run:
    """Return a run on factors with a prior; some users are left out."""
    kind = ("features.kind=factors", "features.rank=4", "features.rounds=3")
    return _made(make_config, run_pipeline, FEW, *kind, "train.targets_max=60")


@pytest.fixture(scope="session")
def reference_run(make_config: Callable[..., Config], run_pipeline: Callable[..., Run]) -> Run:
    """Return a run in which every user has reviewers of his or her own."""
    return _made(make_config, run_pipeline, FEW, "features.kind=reference")


def _made(make_config: Callable[..., Config], run_pipeline: Callable[..., Run], *sets: str) -> Run:
    more = ("recommend.in_pipeline=true", "predictions.in_pipeline=true")
    return run_pipeline(make_config(*sets, *more), without=_WITHOUT)
