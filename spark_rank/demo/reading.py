"""Takes from a run what a page needs, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.config.schema import DemoConfig, RecommendConfig
from spark_rank.demo.contents import Contents
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

USERS = 300  # users on whose held-out ratings the scores are measured
_KEY = "demo.learner"
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
        recommender = self._opened()
        spec = self._spec(recommender)
        features = recommender.items.features
        _check_shared(features)
        facts = recommender.items.facts
        counts = facts.column("n_ratings").to_numpy().astype(np.int64)
        chosen = np.lexsort((np.arange(len(counts)), -counts))[: self.settings.items]
        params = spec.make(recommender.facts.learn.limits.scale).get_params()
        numbers = _numbers(features, chosen, spec)
        measured_numbers = _numbers(self._measured_features(spec), chosen, spec)
        min_ratings = recommender.facts.learn.min_ratings
        users = self._users(chosen, len(counts))
        titles = facts.column("title").to_pylist()
        listed = facts.column("candidate").to_numpy(zero_copy_only=False).astype(bool)
        return Contents(
            run_id=self.run_id,
            learner=spec.label,
            noun=self.settings.noun,
            item_ids=[recommender.items.ids[item] for item in chosen],
            titles=[titles[item] for item in chosen],
            n_ratings=counts[chosen],
            listed=listed[chosen],
            left_out=len(counts) - len(chosen),
            features=Quantised.of(numbers.features),
            offset=numbers.offset,
            prior=Quantised.of(numbers.prior) if len(numbers.prior) else None,
            prior_ends=numbers.prior_ends,
            scale=_scale(recommender),
            params=params,
            min_ratings=min_ratings,
            uncertainty=measured(measured_numbers, params, users, min_ratings),
        )

    def _opened(self, *, measured: bool = False, learner: str | None = None) -> Recommender:
        return Recommender.of(
            self.folder, self.lists, learner or self.settings.learner, measured=measured, key=_KEY
        )

    def _spec(self, recommender: Recommender) -> LearnerSpec:
        """Return the learner that the page learns: the named one, or the first that it can."""
        specs = recommender.facts.learn.specs
        label = recommender.learner
        order = sorted(specs, key=lambda spec: spec.label != label)
        able = [spec for spec in order if _is_able(spec)]
        if self.settings.learner is not None and (not able or able[0].label != label):
            others = ", ".join(spec.label for spec in able) or "none"
            raise ConfigError(
                f"{_KEY}: {label!r} is no linear MPRank with hyper-parameters for all users, which "
                f"is what the page learns; of this run: {others}"
            )
        if not able:
            raise ConfigError(
                f"{_KEY}: the run has no linear MPRank with hyper-parameters for all users, which "
                "is what the page learns: make a run with `{learner: mprank}` in train.learners"
            )
        return able[0]

    def _measured_features(self, spec: LearnerSpec) -> ItemFeatures:
        """Return the features that have not seen the held-out ratings."""
        return self._opened(measured=True, learner=spec.label).items.features

    def _users(self, chosen: NDArray[np.int64], n_items: int) -> Iterator[Rated]:
        """Yield ratings of the first users, of items that are on the page."""
        place = np.full(n_items, -1)
        place[chosen] = np.arange(len(chosen))
        left = USERS
        rows = UserRows(self.folder, BLOCKS, ("items", "ratings", "n_train"))
        for group in rows.groups:
            table = group.read(["items", "ratings", "n_train"]).slice(0, left)
            for row in table.to_pylist():
                yield _rated(row, place)
            left -= len(table)
            if left <= 0:
                return


def _rated(row: dict[str, Any], place: NDArray[np.int64]) -> Rated:
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


def _numbers(features: ItemFeatures, chosen: NDArray[np.int64], spec: LearnerSpec) -> PageNumbers:
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
