"""One model over all queries: what it is measured on, and that it learns from pairs in queries."""

from __future__ import annotations

import numpy as np
import pytest
from studies import run_all, study_of

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.queries import draw_documents
from spark_rank.learners import MPRank
from spark_rank.metrics import pairwise_misranking

SMALL = {"repeats": 1, "queries": 40, "documents": 10, "features": 4, "rounds": 5}


def test_a_fold_is_that_of_models_made_by_hand() -> None:
    study = study_of("queries", SMALL, seed=2)
    results = EXPERIMENTS["queries"].run_unit(study, (0, 3))
    X, y, qid = draw_documents(study, 0)
    tested = np.arange(3, 40, 5)
    train = ~np.isin(qid, tested)
    model = MPRank(1.0).fit(X[train], y[train], qid=qid[train])
    values = []
    for query in tested:
        rows = np.flatnonzero(qid == query)[5:]
        values.append(pairwise_misranking(model.decision_function(X[rows]), y[rows]))
    (found,) = [
        r.value for r in results if (r.method, r.metric) == ("MPRank, all queries", "misranking")
    ]
    assert found == pytest.approx(np.mean([value for value in values if value is not None]))


def test_levels_of_queries_mislead_who_does_not_know_queries() -> None:
    """Relevant queries look different: only pairs inside queries say what orders documents."""
    results = [r for one in run_all(study_of("queries", {**SMALL, "level": 3.0})) for r in one]

    def mean(method: str) -> float:
        return float(np.mean([
            r.value for r in results if (r.method, r.metric) == (method, "misranking")
        ]))  # fmt: skip

    for name in ("MPRank", "RankSVM"):
        assert mean(f"{name}, all queries") < mean(f"{name}, queries not told apart")
        assert mean(f"{name}, all queries") < mean(f"{name}, one per query")
