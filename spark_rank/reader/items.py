"""The items of a run: features, facts for lists, and similar items."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.config.schema import RecommendConfig
from spark_rank.errors import ConfigError, UnknownIdError
from spark_rank.features.files import ItemFeatures
from spark_rank.features.similar import Directions
from spark_rank.reader.run_folder import RunFolder
from spark_rank.tables.contracts import ITEM_COUNTS, ITEMS, TITLES
from spark_rank.users.candidates import ListRules, item_facts, named_ids
from spark_rank.users.recommending import Catalogue, list_facts

Row = dict[str, Any]


@dataclass(frozen=True)
class Items:
    """Items by number; `facts` has ``item, item_id, title, n_ratings, candidate`` of each.

    With `choices` the catalogue is for lists in which choices count.
    """

    features: ItemFeatures
    facts: pa.Table
    choices: bool

    @cached_property
    def catalogue(self) -> Catalogue:
        """Return the items that may be in a list."""
        return Catalogue.of(self.features, list_facts(self.facts), choices=self.choices)

    @cached_property
    def ids(self) -> list[str]:
        """Return the id of every item."""
        ids: list[str] = self.features.item_ids.to_pylist()
        return ids

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {item_id: number for number, item_id in enumerate(self.ids)}

    def number(self, item_id: str) -> int:
        """Return an item's number, or raise `UnknownIdError`."""
        number = self._number_of.get(item_id)
        if number is None:
            raise UnknownIdError(f"the run has no item {item_id!r}", item_id)
        return number

    def numbers(self, item_ids: Iterable[str]) -> NDArray[np.int32]:
        """Return the items' numbers, or raise `UnknownIdError`."""
        return np.array([self.number(item_id) for item_id in item_ids], dtype=np.int32)

    def known(self, item_ids: Iterable[str]) -> NDArray[np.int32]:
        """Return the numbers of the items that the run has; skip the others."""
        numbers = [self._number_of[name] for name in item_ids if name in self._number_of]
        return np.array(numbers, dtype=np.int32)

    def similar(self, item_id: str, count: int) -> list[Row]:
        """Return the items whose features are most similar to an item's, by the cosine."""
        numbers, cosines = self._directions.most_similar(self.number(item_id), count)
        titles = self.facts.column("title").take(pa.array(numbers)).to_pylist()
        return [
            {"item_id": self.ids[number], "title": title, "similarity": cosine}
            for number, title, cosine in zip(
                numbers.tolist(), titles, cosines.tolist(), strict=True
            )
        ]

    @cached_property
    def _directions(self) -> Directions:
        return Directions(self.features)


def items_of(
    folder: RunFolder, features: ItemFeatures, lists: RecommendConfig, counted: str
) -> Items:
    """Return the items of a run; `counted` is the column of `item_counts` with their ratings."""
    titles = folder.read(TITLES, ["item_id", "title"]) if folder.has(TITLES) else None
    counts = folder.read(ITEM_COUNTS, ["item", counted]).rename_columns(["item", "n_train"])
    rules = ListRules(
        lists.min_ratings,
        _named(folder, lists, "include"),
        _named(folder, lists, "exclude"),
        counted_only=bool((folder.record("prepare") or {})["settings"]["filters"]),
    )
    facts = item_facts(folder.read(ITEMS, ["item", "item_id"]), counts, titles, rules)
    return Items(features, facts, lists.beta > 0.0)


def _named(folder: RunFolder, lists: RecommendConfig, key: str) -> list[str] | None:
    """Return the ids in a key of `recommend` and in its file; None if neither is set."""
    path = getattr(lists, f"{key}_from")
    text = None
    if path is not None:
        try:
            text = Path(path.removeprefix("file:")).read_text().removeprefix("\ufeff")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"recommend.{key}_from: {path}: cannot be read ({error})") from None
        recorded_hash = ((folder.record("recommend") or {}).get("inputs") or {}).get(key)
        if recorded_hash is not None and recorded_hash != hashlib.sha256(text.encode()).hexdigest():
            raise ConfigError(
                f"recommend.{key}_from: {path}: has changed since the lists were made: make them "
                "again with `spark-rank recommend`"
            )
    return named_ids(getattr(lists, key), text)
