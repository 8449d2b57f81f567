"""The facts about items that lists show, and the rules for which items may be listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_rank.errors import ConfigError
from spark_rank.events import emit

_EXAMPLES = 3  # unknown ids that a warning names


@dataclass(frozen=True)
class ListRules:
    """Which items may be in a list: named ids, or None for all, with enough ratings.

    With `counted_only` an item that is not in `item_counts` is in no list.
    """

    min_ratings: int
    include: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    counted_only: bool = False


def item_facts(
    items: pa.Table, counts: pa.Table, titles: pa.Table | None, rules: ListRules
) -> pa.Table:
    """Return ``item, item_id, title, n_ratings, candidate`` of every item, by number.

    `items` has ``item, item_id``, `counts` ``item, n_train``, and `titles` ``item_id, title``.
    """
    items = items.select(["item", "item_id"]).sort_by("item")
    places = pc.index_in(items.column("item"), counts.column("item"))
    n_ratings = counts.column("n_train").take(places).fill_null(0).cast(pa.int32())
    table = items.append_column("title", _titles(items, titles))
    table = table.append_column("n_ratings", n_ratings)
    candidates = _candidates(table, rules)
    if rules.counted_only:
        # filters have dropped the ratings of an item without a count, and who rated it
        candidates = pc.and_(candidates, places.is_valid().combine_chunks())
    return table.append_column("candidate", candidates)


def _titles(items: pa.Table, titles: pa.Table | None) -> pa.ChunkedArray:
    """Return the titles of the items, null where unknown."""
    if titles is None:
        return pa.chunked_array([pa.nulls(len(items), pa.string())])
    places = pc.index_in(items.column("item_id"), titles.column("item_id"))
    return titles.column("title").take(places)


def _candidates(table: pa.Table, rules: ListRules) -> pa.Array:
    """Return whether each item may be in a list."""
    ids = table.column("item_id").combine_chunks()
    allowed = pc.greater_equal(table.column("n_ratings"), rules.min_ratings).combine_chunks()
    if rules.include is not None:
        is_included = pc.is_in(ids, value_set=pa.array(rules.include, pa.string()))
        if not pc.any(is_included).as_py():
            named = _examples(rules.include) or "the list is empty"
            raise ConfigError(f"recommend.include: the run has none of these items: {named}")
        _warn_unknown("include", rules.include, ids)
        allowed = pc.and_(allowed, is_included)
    if rules.exclude is not None:
        _warn_unknown("exclude", rules.exclude, ids)
        unwanted = pc.is_in(ids, value_set=pa.array(rules.exclude, pa.string()))
        allowed = pc.and_(allowed, pc.invert(unwanted))
    return allowed


def named_ids(inline: Sequence[str], text: str | None) -> list[str] | None:
    """Return the inline ids and those in the lines of `text`, each once; None if there are none."""
    if text is None:
        return list(inline) or None
    lines = (line.strip() for line in text.splitlines())
    return list(dict.fromkeys([*inline, *[line for line in lines if line]]))


def _warn_unknown(key: str, named: Sequence[str], ids: pa.Array) -> None:
    """Warn about ids that are not items: misspelt ones, or a file that is not a list of ids."""
    is_item = pc.is_in(pa.array(named, pa.string()), value_set=ids).to_pylist()
    unknown = [name for name, exists in zip(named, is_item, strict=True) if not exists]
    if unknown:
        emit(
            "unknown_items",
            f"recommend.{key}: {len(unknown):,} of {len(named):,} ids are not items of the run: "
            f"{_examples(unknown)}",
            stage="recommend", level="warning", key=key, unknown=len(unknown), named=len(named),
        )  # fmt: skip


def _examples(names: Sequence[str]) -> str:
    """Return the first few ids as text."""
    ellipsis = ", …" if len(names) > _EXAMPLES else ""
    return ", ".join(map(repr, names[:_EXAMPLES])) + ellipsis
