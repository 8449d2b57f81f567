"""One model over all queries, beside one per query: documents with features, graded per query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.config.schema import setting
from spark_rank.experiments.frame import Claim, Experiment, Result, Study, Unit
from spark_rank.learners import MPRank, RankBoost, RankSVM, SVRank
from spark_rank.metrics import mean_squared_difference, ndcg, pairwise_misranking

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_FOLDS = 5  # as LETOR's: a fifth of the queries is for testing
_MISRANKING, _NDCG, _MSD = "misranking", "NDCG@10", "MSD"
_ALL, _POOLED, _EACH = "all queries", "queries not told apart", "one per query"


@dataclass(frozen=True)
class Queries:
    """Settings of `queries`."""

    repeats: int = setting(10, "sets of queries, each with five folds", at_least=1)
    queries: int = setting(100, "queries of a set", at_least=10)
    documents: int = setting(20, "documents of a query", at_least=4)
    features: int = setting(20, "features of a document", at_least=1)
    grades: int = setting(3, "grades of relevance", at_least=2)
    own_taste: float = setting(
        0.5, "how much the weights of a query differ from those of all", at_least=0.0
    )
    level: float = setting(1.0, "how much queries differ in how relevant all is", at_least=0.0)
    noise: float = setting(1.0, "standard deviation of the noise", at_least=0.0)
    C: float = setting(1.0, "trade-off of MPRank and SVRank", above=0.0)
    C_per_pair: float = setting(1.0, "trade-off of RankSVM, over the mean of the pairs", above=0.0)
    rounds: int = setting(50, "rounds of RankBoost", at_least=1)


class Documents(NamedTuple):
    """Documents of some queries: features, grades, and the query of each."""

    X: FloatArray
    grades: FloatArray
    qid: IntArray

    def of(self, queries: IntArray) -> Documents:
        """Return the documents of some queries."""
        rows = np.isin(self.qid, queries)
        return Documents(self.X[rows], self.grades[rows], self.qid[rows])


def units(study: Study) -> Sequence[Unit]:
    """Return a unit per set and fold."""
    return [(repeat, fold) for repeat in range(study.settings.repeats) for fold in range(_FOLDS)]


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Learn from the other folds' queries, and measure on those of this fold.

    Of a test query the second half of the documents is measured, so that the first half is there
    for a model of its own.
    """
    repeat, fold = unit
    documents = draw_documents(study, repeat)
    tested = np.flatnonzero(np.arange(study.settings.queries) % _FOLDS == fold)
    rest = np.setdiff1d(np.arange(study.settings.queries), tested)
    train = documents.of(rest)
    learned: dict[str, Any] = {}
    for name, make in learners(study.settings).items():
        learned[f"{name}, {_ALL}"] = make().fit(train.X, train.grades, qid=train.qid)
        learned[f"{name}, {_POOLED}"] = make().fit(train.X, train.grades)
    found: dict[tuple[str, str], list[float]] = {}
    for query in tested:
        own = documents.of(np.array([query]))
        half = len(own.grades) // 2
        new, grades = own.X[half:], own.grades[half:]
        scores = {name: model.decision_function(new) for name, model in learned.items()}
        for name, make in learners(study.settings).items():
            alone = make().fit(own.X[:half], own.grades[:half])
            scores[f"{name}, {_EACH}"] = alone.decision_function(new)
        for name, h in scores.items():
            for metric, value in measured(
                h, grades, on_scale=name.startswith(("MPRank", "SVRank"))
            ).items():
                if value is not None:
                    found.setdefault((name, metric), []).append(value)
    return [
        Result(name, metric, float(np.mean(values)), repeat=repeat)
        for (name, metric), values in found.items()
    ]


def learners(settings: Queries) -> dict[str, Any]:
    """Return a maker of every learner."""
    return {
        "MPRank": lambda: MPRank(settings.C),
        "SVRank": lambda: SVRank(settings.C),
        "RankSVM": lambda: RankSVM(settings.C_per_pair, loss="mean"),
        "RankBoost": lambda: RankBoost(settings.rounds),
    }


def measured(h: FloatArray, grades: FloatArray, *, on_scale: bool) -> dict[str, float | None]:
    """Return the metrics of one query; MSD only for scores on the scale of the grades."""
    values = {_MISRANKING: pairwise_misranking(h, grades), _NDCG: ndcg(h, grades, 10)}
    return values | ({_MSD: mean_squared_difference(h, grades)} if on_scale else {})


def draw_documents(study: Study, repeat: int) -> Documents:
    """Draw documents whose grades follow from common weights, the query's own, and its level."""
    s, rng = study.settings, study.generator("documents", repeat)
    common = rng.standard_normal(s.features) / np.sqrt(s.features)
    qid = np.repeat(np.arange(s.queries), s.documents)
    own = s.own_taste * rng.standard_normal((s.queries, s.features)) / np.sqrt(s.features)
    level = s.level * rng.standard_normal(s.queries)
    X = rng.standard_normal((len(qid), s.features))
    X += level[qid, None] * rng.standard_normal(s.features)  # relevant queries look different
    values = np.einsum("ij,ij->i", X, common + own[qid]) + level[qid]
    values += s.noise * rng.standard_normal(len(qid))
    cuts = np.quantile(values, np.linspace(0.0, 1.0, s.grades + 1)[1:-1])
    return Documents(X, np.searchsorted(cuts, values).astype(np.float64), qid)


def claims(settings: Queries) -> list[Claim]:
    """Return that pairs inside queries are what orders a new query's documents."""
    return [
        Claim(f"{name} over all queries is below {name} with {rival}", _MISRANKING,
              f"{name}, {_ALL}", f"{name}, {rival}", source="ours")
        for name in learners(settings)
        for rival in (_POOLED, _EACH)
    ]  # fmt: skip


EXPERIMENT = Experiment(
    name="queries",
    title="One model over all queries",
    source="Cortes, Mohri, Rastogi, section 1; Joachims 2002",
    about=(
        "Queries with documents, each with features and a grade. A model over all queries learns "
        "from the pairs of documents of one query, of four fifths of the queries, and orders the "
        "documents of the others. Beside it stand the same learner on all pairs, whether of one "
        "query or not, and a model per query that learns from half of the query's own documents."
    ),
    settings=Queries,
    units=units,
    run_unit=run_unit,
    claims=claims,
    higher_is_better=frozenset({_NDCG}),
    deviations=(
        "The queries are generated. `python benchmarks/letor.py Fold1 …` does the same with the "
        "given folds of a LETOR set, such as MQ2008.",
    ),
)
