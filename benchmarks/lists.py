"""Lists of all items against other recommenders: recall, NDCG, coverage and Gini of lists of ten.

``python benchmarks/lists.py u.data`` (MovieLens-100K; of 1M ``ratings.dat``, also gzipped) holds
out half of every user's ratings, at random. An item is relevant if it is held out and rated 4 or
more; all items outside the training part compete. Every setting of every method is chosen by
NDCG@10 within the training part: a fifth of it is held back, and all methods learn from the rest.
The default's lists have the beta of the configuration; the one that would be chosen within the
training part stands beside it. The table has means over users on the held-out half, and the paired
difference of the default's NDCG, with 95 % intervals. The lines of beta, which
``benchmarks/pictures.py`` draws, have the same for other values; nothing is chosen there. Of more
than half a million ratings the grids of the others are smaller (`Grids.small`). Names of methods
after the file leave the others out.

Features, models and lists are made by the functions that Spark's workers call, in this process.
"""

from __future__ import annotations

import gzip
import os

os.environ.setdefault("OMP_NUM_THREADS", "2")

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spark_rank.compiled import njit
from spark_rank.config.schema import DEFAULT_LABEL, FACTOR_PARAMS, RecommendConfig, TrainConfig
from spark_rank.features.choice import learn_choice
from spark_rank.features.factor_model import SampledRatings
from spark_rank.features.factors import learn_factors
from spark_rank.features.files import FeatureFiles, ItemFeatures
from spark_rank.metrics import batch_metrics, compare_paired, coverage, gini, hit_metrics
from spark_rank.records.features import MappedFile
from spark_rank.users.batches import ragged
from spark_rank.users.fitting import Limits
from spark_rank.users.held_out import held_out, predictions
from spark_rank.users.joining import ScoringLearner, as_scoring, scoring_models, with_models
from spark_rank.users.learning import LearnJob, learn_batches
from spark_rank.users.list_measuring import training_parts
from spark_rank.users.recommending import Catalogue, RecommendJob, best_positions, left_out_of
from spark_rank.users.specs import LearnerSpec

TOP, RELEVANT, TRAIN_SHARE, INNER_SHARE = 10, 4.0, 0.5, 0.8
BETAS = (0.0, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 24.0, 48.0)
ROUNDS = 10
NO_FILE = MappedFile("none", "")
FILES = FeatureFiles(NO_FILE, NO_FILE, NO_FILE, NO_FILE)
Matrix = np.ndarray
Measured = dict[str, Any]
Candidate = tuple[str, Callable[[], Matrix]]


@dataclass(frozen=True)
class Grids:
    """The settings to choose from.

    Of ALS: ranks; weights of all pairs beside those that were chosen; ridges over the root of the
    mean number of ratings of a row, as in `spark_rank.features.choice`; ridges per rating.
    """

    ridges: tuple[float, ...] = (50.0, 100.0, 200.0, 400.0, 800.0, 1600.0)
    neighbours: tuple[int, ...] = (50, 100, 200, 400)
    shrinkages: tuple[float, ...] = (0.0, 10.0, 50.0)
    ranks: tuple[int, ...] = (16, 32, 64)
    all_pairs: tuple[float, ...] = (0.05, 0.1, 0.2)
    choice_ridges: tuple[float, ...] = (0.4, 0.7, 1.0)
    explicit_ranks: tuple[int, ...] = (20, 50)
    explicit_ridges: tuple[float, ...] = (0.05, 0.1, 0.2)

    @classmethod
    def small(cls) -> Grids:
        """Return fewer settings."""
        return cls(
            (400.0, 800.0, 1600.0), (100, 200, 400), (10.0, 50.0), (32,), (0.05, 0.1),
            (0.4, 0.7, 1.0), (20,), (0.05, 0.1, 0.2),
        )  # fmt: skip


def read_ratings(path: Path) -> Matrix:
    """Return user, item and rating of every line, users and items by dense numbers."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        rows = np.array([line.replace("::", "\t").split()[:3] for line in lines], dtype=float)
    for column in (0, 1):
        rows[:, column] = np.unique(rows[:, column], return_inverse=True)[1]
    return rows


def is_training(users: Matrix, share: float, seed: int) -> Matrix:
    """Draw a share of every user's ratings, one at least."""
    order = np.lexsort((np.random.default_rng(seed).random(len(users)), users))
    sizes = np.bincount(users)
    place = np.empty(len(users), dtype=np.int64)
    place[order] = np.arange(len(users)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return place < np.maximum(np.round(share * sizes), 1)[users]


@dataclass(frozen=True)
class Part:
    """Ratings split in two: what is learned from, and what is held out."""

    rows: Matrix
    training: Matrix
    shape: tuple[int, int]
    grids: Grids

    def marked(self, which: Matrix) -> Matrix:
        """Return users × items, true for some of the ratings."""
        marks = np.zeros(self.shape, dtype=bool)
        marks[self.rows[which, 0].astype(int), self.rows[which, 1].astype(int)] = True
        return marks

    @cached_property
    def seen(self) -> Matrix:
        """Return users × items, true for training ratings."""
        return self.marked(self.training)

    @cached_property
    def relevant(self) -> Matrix:
        """Return users × items, true for held-out ratings that are high."""
        return self.marked(~self.training & (self.rows[:, 2] >= RELEVANT))

    @cached_property
    def chosen(self) -> Matrix:
        """Return users × items, 1 for training ratings."""
        return self.seen.astype(np.float32)

    @cached_property
    def blocks(self) -> pa.RecordBatch:
        """Return the user blocks, with the training part first."""
        order = np.lexsort((np.arange(len(self.rows)), ~self.training, self.rows[:, 0]))
        rows, users = self.rows[order], np.arange(self.shape[0])
        ends = np.searchsorted(rows[:, 0], np.arange(self.shape[0] + 1)).astype(np.int32)
        items, ratings = pa.array(rows[:, 1].astype(np.int32)), rows[:, 2].astype(np.float32)
        return pa.RecordBatch.from_pydict({
            "user": pa.array(users, pa.int32()), "user_id": pa.array([str(u) for u in users]),
            "items": pa.ListArray.from_arrays(pa.array(ends), items),
            "ratings": pa.ListArray.from_arrays(pa.array(ends), pa.array(ratings)),
            "n_train": pa.array(self.seen.sum(axis=1), pa.int32()),
            "bucket": pa.array(np.zeros(len(users)), pa.int32()),
        })  # fmt: skip

    @cached_property
    def sampled(self) -> SampledRatings:
        """Return the training ratings, user by user."""
        parts = training_parts(self.blocks)
        items, ends = ragged(parts.column("items"))
        order = np.lexsort((np.arange(len(self.rows)), ~self.training, self.rows[:, 0]))
        ratings = self.rows[order, 2][self.training[order]]
        return SampledRatings(items, ratings, ends, self.shape[1])

    def measured(self, listed: Matrix) -> Measured:
        """Return recall and NDCG of every user, coverage and Gini of the lists."""
        hits = np.take_along_axis(self.relevant, listed, axis=1)
        found = hit_metrics(hits, self.relevant.sum(axis=1))
        shown = np.bincount(listed.ravel(), minlength=self.shape[1])
        return {"ndcg": found["ndcg"], "recall": found["recall"], "coverage": coverage(shown),
                "gini": gini(shown)}  # fmt: skip

    def best(self, scores: Matrix) -> Matrix:
        """Return the items with the greatest scores outside the training part."""
        unseen = np.where(self.seen, -np.inf, scores)
        best = np.sort(np.argpartition(-unseen, TOP, axis=1)[:, :TOP], axis=1)
        order = np.argsort(-np.take_along_axis(unseen, best, axis=1), axis=1, kind="stable")
        return np.take_along_axis(best, order, axis=1)


class Default:
    """Features, models and lists of the default configuration."""

    def __init__(self, part: Part) -> None:
        self.part, data = part, part.sampled
        begun = time.perf_counter()
        factors = learn_factors(data, rank=32, rounds=15, seed=0)
        learned = time.perf_counter()
        choice = learn_choice(data.items, data.ends, data.n_items, scale=factors.noise**0.5)
        print(f"  factors {learned - begun:.0f} s, choices {time.perf_counter() - learned:.0f} s",
              flush=True)  # fmt: skip
        self.features = ItemFeatures(
            factors.matrix, factors.offset, factors.prior,
            pa.array([f"{item:06d}" for item in range(data.n_items)]), choice=choice,
        )  # fmt: skip
        train = TrainConfig()
        limits = Limits(None, train.max_kernel_ratings, train.landmarks, train.folds)
        spec = LearnerSpec(DEFAULT_LABEL, "mprank", True, FACTOR_PARAMS)
        job = LearnJob(FILES, (spec,), {}, train.min_ratings, train.margin, limits)
        made = learn_batches(iter([part.blocks]), job, lambda files: self.features)
        self.models = pa.Table.from_batches(list(made))
        facts = pa.record_batch({
            "title": pa.nulls(data.n_items, pa.string()),
            "n_ratings": pa.array(np.bincount(data.items, minlength=data.n_items), pa.int32()),
            "candidate": pa.array(np.ones(data.n_items, dtype=bool)),
        })  # fmt: skip
        self.catalogue = Catalogue.of(self.features, facts, choices=True)
        self.plain = Catalogue.of(self.features, facts)

    def measured(self, beta: float) -> Measured:
        """Return the measures of the lists with a beta."""
        job = RecommendJob(FILES, DEFAULT_LABEL, TOP, 0, None, 1.0, 5.0, beta)
        models = scoring_models(as_known(self.models), ScoringLearner(DEFAULT_LABEL, None))
        places = pa.array(np.arange(self.part.shape[0]), pa.int32())
        rows = with_models(training_parts(self.part.blocks), models, places)
        catalogue = self.catalogue if beta else self.plain
        left_out = left_out_of(rows, job, catalogue)
        # ids are in the order of the numbers, so positions are numbers
        return self.part.measured(best_positions(rows, job, self.features, catalogue, left_out))

    def misranking(self) -> float:
        """Return the mean misranking on the held-out ratings."""
        users = held_out(self.part.blocks)
        rows = as_known(self.models).combine_chunks().to_batches()[0]
        scores = ragged(predictions(rows, users, self.features, None).scores)[0]
        values = batch_metrics(
            scores, users.ratings, users.ends, on_rating_scale=np.ones(len(rows), bool), top=TOP,
            relevant_from=RELEVANT, epsilon=0.25, levels=None,
        )  # fmt: skip
        return float(np.nanmean(values["misranking"]))


def as_known(models: pa.Table) -> pa.Table:
    """Return the models with all columns that scoring reads."""
    return as_scoring(models)


def popularity(part: Part) -> Iterator[Candidate]:
    """The items with the most training ratings."""
    yield "", lambda: np.tile(part.chosen.sum(axis=0), (part.shape[0], 1))


def ease(part: Part) -> Iterator[Candidate]:
    """Steck, WWW 2019: a linear model of every item on all others, none on itself."""
    gram = (part.chosen.T @ part.chosen).astype(np.float64)

    def scores(ridge: float) -> Matrix:
        inverse = np.linalg.inv(gram + ridge * np.eye(len(gram)))
        weights = -inverse / np.diag(inverse)
        np.fill_diagonal(weights, 0.0)
        return np.asarray(part.chosen @ weights.astype(np.float32))

    for ridge in part.grids.ridges:
        yield f"ridge {ridge:g}", partial(scores, ridge)


def item_knn(part: Part) -> Iterator[Candidate]:
    """Sums of the shrunken cosines of an item's k nearest items with those that were chosen."""
    together = part.chosen.T @ part.chosen
    sizes = np.diag(together).copy()
    np.fill_diagonal(together, 0.0)

    def scores(k: int, shrinkage: float) -> Matrix:
        cosines = together / (np.sqrt(np.outer(sizes, sizes)) + np.float32(shrinkage + 1e-6))
        least = -np.partition(-cosines, k, axis=0)[k]
        cosines[cosines < least] = 0.0
        return np.asarray(part.chosen @ cosines)

    for k in part.grids.neighbours:
        for shrinkage in part.grids.shrinkages:
            yield f"{k} neighbours, shrinkage {shrinkage:g}", partial(scores, k, shrinkage)


@njit(cache=True, nogil=True)
def solved(
    ends: Any, others: Any, targets: Any, vectors: Any, system: Any, per_rating: float, found: Any
) -> None:
    """Solve ``(system + Σ vv′ + per_rating · n) x = Σ target · v`` for every row."""
    rank = vectors.shape[1]
    for row in range(len(ends) - 1):
        left, right = system.copy(), np.zeros(rank)
        for place in range(ends[row], ends[row + 1]):
            v = vectors[others[place]]
            right += targets[place] * v
            for p in range(rank):
                for q in range(rank):
                    left[p, q] += v[p] * v[q]
        for p in range(rank):
            left[p, p] += per_rating * (ends[row + 1] - ends[row]) + 1e-9
        found[row] = np.linalg.solve(left, right)


def als_scores(part: Part, rank: int, targets: Matrix, all_pairs: float, ridge: float) -> Matrix:
    """Alternating least squares: of choices with a weight of all pairs, else of the ratings.

    The ridge is over the root of the mean number of ratings of a row, or per rating.
    """
    data = part.sampled
    users = np.repeat(np.arange(data.n_users), np.diff(data.ends))
    order = np.argsort(data.items, kind="stable")
    sizes = np.bincount(data.items, minlength=data.n_items)
    sides = ((data.ends, data.items.astype(np.int64), targets),
             (np.concatenate([[0], np.cumsum(sizes)]), users[order], targets[order]))  # fmt: skip
    found = [np.empty((data.n_users, rank)),
             np.random.default_rng(0).normal(0.0, 0.1, (data.n_items, rank))]  # fmt: skip
    for half in range(2 * ROUNDS + 1):
        ends, others, values = sides[half % 2]
        vectors = found[1 - half % 2]
        system = all_pairs * (vectors.T @ vectors)
        per_rating = ridge
        if all_pairs:
            system += ridge * np.sqrt(len(values) / (len(ends) - 1)) * np.eye(rank)
            per_rating = 0.0
        solved(ends, others, values, vectors, system, per_rating, found[half % 2])
    return np.asarray(found[0] @ found[1].T)


def als_implicit(part: Part) -> Iterator[Candidate]:
    """Hu, Koren and Volinsky: 1 for what was chosen, 0 with a smaller weight for all pairs."""
    ones = np.ones(len(part.sampled.items))
    for rank in part.grids.ranks:
        for weight in part.grids.all_pairs:
            for ridge in part.grids.choice_ridges:
                yield (f"rank {rank}, weight {weight:g}, ridge {ridge:g}",
                       partial(als_scores, part, rank, ones, weight, ridge))  # fmt: skip


def als_explicit(part: Part) -> Iterator[Candidate]:
    """The ratings alone, less their mean."""
    centred = part.sampled.ratings - part.sampled.ratings.mean()
    for rank in part.grids.explicit_ranks:
        for ridge in part.grids.explicit_ridges:
            yield (f"rank {rank}, ridge {ridge:g}",
                   partial(als_scores, part, rank, centred, 0.0, ridge))  # fmt: skip


FAMILIES = {"most popular": popularity, "EASE": ease, "ALS implicit": als_implicit,
            "item-kNN": item_knn, "ALS explicit": als_explicit}  # fmt: skip


def mean(found: Measured, name: str = "ndcg") -> float:
    return float(np.nanmean(found[name]))


def chosen_within(name: str, inner: Part) -> str:
    """Return the settings with the best NDCG on what is held back of the training part."""
    found = {settings: mean(inner.measured(inner.best(scores())))
             for settings, scores in FAMILIES[name](inner)}  # fmt: skip
    best = max(found, key=lambda settings: found[settings])
    print(f"within the training part, {name}: {best or '-'}: {found[best]:.4f}", flush=True)
    return best


def compare(outer: Part, inner: Part, names: list[str]) -> None:
    default = RecommendConfig().beta
    within = Default(inner)
    of_beta = {beta: mean(within.measured(beta)) for beta in BETAS}
    beta = max(of_beta, key=lambda each: of_beta[each])
    values = ", ".join(f"{each:g}: {value:.4f}" for each, value in of_beta.items())
    print(f"within the training part, NDCG@10 by beta: {values}", flush=True)
    ours = Default(outer)
    curve = {each: ours.measured(each) for each in BETAS}
    rows = {
        f"default, beta {default:g}": ours.measured(default),
        f"beta {beta:g}, as chosen within": curve[beta],
        "expected rating alone, beta 0": curve[0.0],
    }
    print(f"misranking on the held-out half, whatever beta: {ours.misranking():.4f}")
    print("beta,ndcg,recall,coverage,gini")
    for each, found in curve.items():
        print(f"{each:g},{mean(found):.4f},{mean(found, 'recall'):.4f},{found['coverage']:.4f},"
              f"{found['gini']:.4f}")  # fmt: skip
    for name in names:
        family, settings = FAMILIES[name], chosen_within(name, inner)
        scores = next(make() for each, make in family(outer) if each == settings)
        rows[f"{name} {settings}".strip()] = outer.measured(outer.best(scores))
        print_table(rows)


def print_table(rows: dict[str, Measured]) -> None:
    """Print all rows so far: the last table is whole."""
    ours = next(iter(rows.values()))
    print("| lists | NDCG@10 | recall@10 | coverage | Gini | default's NDCG@10 − this one's |")
    print("|---|---|---|---|---|---|")
    for name, found in rows.items():
        paired = compare_paired(ours["ndcg"], found["ndcg"])
        gain = "–"
        if paired.t_interval is not None and found is not ours:
            low, high = paired.t_interval
            gain = f"{paired.mean_difference:+.4f} ({low:+.4f} to {high:+.4f})"
        print(f"| {name} | {mean(found):.4f} | {mean(found, 'recall'):.4f} | "
              f"{found['coverage']:.3f} | {found['gini']:.3f} | {gain} |")  # fmt: skip


def main() -> None:
    path = Path(sys.argv[1])
    rows = read_ratings(path)
    users = rows[:, 0].astype(int)
    training = is_training(users, TRAIN_SHARE, 0)
    shape = int(users.max()) + 1, int(rows[:, 1].max()) + 1
    grids = Grids.small() if len(rows) > 500_000 else Grids()
    outer, learned = Part(rows, training, shape, grids), rows[training]
    inner = Part(learned, is_training(users[training], INNER_SHARE, 1), shape, grids)
    print(f"{path.name}: {len(rows):,} ratings of {shape[0]:,} users and {shape[1]:,} items, lists "
          f"of {TOP} among all items outside the training part", flush=True)  # fmt: skip
    compare(outer, inner, sys.argv[2:] or list(FAMILIES))


if __name__ == "__main__":
    main()
