"""Takes from a run what a page needs, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.config.schema import DemoConfig, RecommendConfig
from spark_rank.demo.contents import Choices, Contents
from spark_rank.demo.quantised import Quantised
from spark_rank.demo.scale import DemoScale
from spark_rank.demo.uncertainty import PageNumbers, Rated, measured
from spark_rank.errors import ConfigError
from spark_rank.features.files import ItemFeatures
from spark_rank.reader.recommender import Recommender
from spark_rank.reader.run_folder import RunFolder
from spark_rank.reader.user_rows import UserRows
from spark_rank.tables.contracts import BLOCKS
from spark_rank.users.specs import LearnerSpec

Items = NDArray[np.int64]

USERS = 300  # users on whose held-out ratings the scores are measured
_KEY = "demo.learner"
_LEARNED = "linear mprank with hyper-parameters for all users, which is what the page learns"
_RATED = ("items", "ratings", "n_train")
_SHARED = "make a run with features.kind factors, als, panel or given"


@dataclass(frozen=True)
class DemoSource:
    """A run, opened for the settings of a page."""

    folder: RunFolder
    run_id: str
    settings: DemoConfig
    lists: RecommendConfig

    def contents(self) -> Contents:
        """Return the contents of the page; raise `ConfigError` for a run that has no such page."""
        items, chosen, numbers = self._recommender.items, self.chosen, self.numbers()
        titles = items.facts.column("title").to_pylist()
        listed = items.facts.column("candidate").to_numpy(zero_copy_only=False).astype(bool)
        return Contents(
            run_id=self.run_id,
            learner=self._spec.label,
            noun=self.settings.noun,
            item_ids=[items.ids[item] for item in chosen],
            titles=[titles[item] for item in chosen],
            n_ratings=self._counts[chosen],
            listed=listed[chosen],
            left_out=len(self._counts) - len(chosen),
            features=Quantised.of(numbers.features),
            offset=numbers.offset,
            prior=Quantised.of(numbers.prior) if len(numbers.prior) else None,
            prior_ends=numbers.prior_ends,
            scale=_scale(self._recommender),
            choices=self._choices(),
            params=self.params,
            min_ratings=self.min_ratings,
            uncertainty=measured(
                self.numbers(held_out=True), self.params, self.users(), self.min_ratings
            ),
        )

    @cached_property
    def chosen(self) -> Items:
        """Return the numbers of the page's items, the most rated first."""
        return np.lexsort((np.arange(len(self._counts)), -self._counts))[: self.settings.items]

    @property
    def params(self) -> dict[str, Any]:
        """Return the hyper-parameters that the page learns with."""
        return self._spec.make(None).get_params()

    @property
    def min_ratings(self) -> int:
        """Return how many ratings the learner needs."""
        return self._recommender.facts.learn.min_ratings

    def numbers(self, *, held_out: bool = False) -> PageNumbers:
        """Return the exact numbers of the page's items.

        With `held_out` they are those that have not seen the held-out ratings.
        """
        opened = self._opened(self._spec.label, measured=True) if held_out else self._recommender
        return _numbers(opened.items.features, self.chosen, self._spec)

    def users(self, first: int = 0, count: int = USERS) -> Iterator[Rated]:
        """Yield the ratings that `count` users, from the `first` on, gave the page's items."""
        place = np.full(len(self._counts), -1)
        place[self.chosen] = np.arange(len(self.chosen))
        rows = UserRows(self.folder, BLOCKS, _RATED)
        for group in rows.groups:
            table = group.read(_RATED)
            for row in table.slice(first, count).to_pylist():
                yield _rated(row, place)
            count -= len(table.slice(first, count))
            first = max(0, first - len(table))
            if count == 0:
                return

    def _choices(self) -> Choices | None:
        """Return what the run's lists know of choices; None if these do not count in them."""
        choice, beta = self._recommender.items.features.choice, self._recommender.facts.score.beta
        if choice is None or beta == 0.0:
            return None
        encoder = np.asarray(choice.encoder, dtype=np.float64)
        return Choices(
            beta,
            Quantised.of(choice.decoder[self.chosen]),
            Quantised.of(encoder[self.chosen]),
            encoder[-2:],
        )

    @cached_property
    def _recommender(self) -> Recommender:
        recommender = self._opened(self.settings.learner)
        _check_shared(recommender.items.features)
        return recommender

    @cached_property
    def _counts(self) -> Items:
        counts = self._recommender.items.facts.column("n_ratings").to_numpy()
        return np.asarray(counts, dtype=np.int64)

    @cached_property
    def _spec(self) -> LearnerSpec:
        """Return the learner that the page learns: the named one, or the first that it can."""
        label, wanted = self._recommender.learner, self.settings.learner
        specs = sorted(
            self._recommender.facts.learn.specs, key=lambda spec: bool(spec.label != label)
        )
        able = [spec for spec in specs if _is_able(spec)]
        if able and (wanted is None or able[0].label == label):
            return able[0]
        if wanted is None:
            raise ConfigError(
                f"{_KEY}: the run has no {_LEARNED}: make a run with `{{learner: mprank}}` in "
                "train.learners"
            )
        others = ", ".join(spec.label for spec in able) or "none"
        raise ConfigError(f"{_KEY}: {label!r} is no {_LEARNED}; of this run: {others}")

    def _opened(self, learner: str | None, *, measured: bool = False) -> Recommender:
        return Recommender.of(self.folder, self.lists, learner, measured=measured, key=_KEY)


def _rated(row: dict[str, Any], place: Items) -> Rated:
    places = place[np.array(row["items"], dtype=np.int64)]
    on_page = places >= 0
    n_train = int(on_page[: row["n_train"]].sum())
    return Rated(places[on_page], np.array(row["ratings"], dtype=np.float64)[on_page], n_train)


def _is_able(spec: LearnerSpec) -> bool:
    if spec.learner != "mprank" or spec.chosen_per_user:
        return False
    params = spec.make(None).get_params()
    return params["kernel"] == "linear" and params["solver"] != "online"


def _check_shared(features: ItemFeatures) -> None:
    if features.pool is not None:
        raise ConfigError(
            "demo: with features.kind reference every user has other features, which no page can "
            f"hold: {_SHARED}"
        )
    if features.matrix.shape[1] == 0:
        raise ConfigError(f"demo: the run's items have no features: {_SHARED}")


def _numbers(features: ItemFeatures, chosen: Items, spec: LearnerSpec) -> PageNumbers:
    matrix = np.asarray(features.matrix[chosen], dtype=np.float64)
    prior = np.asarray(features.prior, dtype=np.float64)
    if not spec.item_offset or len(prior) == 0:
        nothing = np.zeros((2, matrix.shape[1]))
        offset = np.asarray(features.offset[chosen] * float(spec.item_offset), dtype=np.float64)
        return PageNumbers(matrix, offset, prior[:0], nothing)
    offset = np.asarray(features.offset[chosen], dtype=np.float64)
    return PageNumbers(matrix, offset, prior[chosen], prior[-2:])


def _scale(recommender: Recommender) -> DemoScale:
    low, high = recommender.rating_limits
    scale = recommender.facts.learn.limits.scale
    if scale is None:
        return DemoScale.continuous(low, high)
    cuts = tuple(float(cut) for cut in scale.thresholds())
    if scale.cuts is None:
        return DemoScale.of_levels(scale.levels, cuts)
    return DemoScale(low, high, scale.levels, cuts, free=True)
