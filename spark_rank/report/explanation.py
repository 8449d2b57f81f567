"""An explanation as text for the console."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.visible import visible

Row = Mapping[str, Any]

_TITLE = 34  # letters of an item that are shown
_ALL_ITEMS = "over all items, as standard deviations of what each adds to a score"


def as_text(explanation: Row) -> str:
    """Return what the stage explain found, for a person to read."""
    body = _item(explanation["item"]) if "item" in explanation else _lists(explanation)
    return "\n".join([*_head(explanation), "", *body])


def _head(found: Row) -> list[str]:
    reason = f" ({found['reason']})" if found["reason"] else ""
    kernel = f", kernel {found['kernel']}" if found["kernel"] else ""
    return [
        f"user {visible(found['user_id'])}, {found['learner']}: {found['status']}{reason} from "
        f"{found['n_train']:,} ratings, {found['n_test']:,} held out{kernel}"
    ]


def _lists(found: Row) -> list[str]:
    lines = [f"{'own ratings, in the order of the scores':<62}new items, best first"]
    own, new = found["own_ratings"], found["top"]
    for left, right in itertools.zip_longest(own, new):
        lines.append(f"{_own(left) if left else '':<62}{_new(right) if right else ''}".rstrip())
    if found["bottom"]:
        lines += ["", "new items, worst first", *[_new(row) for row in found["bottom"]]]
    return [*lines, *_influences(found, _ALL_ITEMS)]


def _own(row: Row) -> str:
    held_out = "*" if row["part"] == "held out" else " "
    return f"{row['position']:>4} {row['score']:>8.3f} {row['rating']:>5g}{held_out} {_name(row)}"


def _new(row: Row) -> str:
    note = f" [{row['source']}]" if row["source"] != "learned" else ""
    return f"{row['position']:>4} {row['score']:>8.3f} {_name(row)}{note}"


def _item(item: Row) -> list[str]:
    said = f"rated {item['rating']:g} ({item['part']})" if item["part"] else "not rated"
    guess = "" if item["predicted_rating"] is None else f", rating {item['predicted_rating']:.3f}"
    rank = "" if item["predicted_rank"] is None else f", rank {item['predicted_rank']}"
    lines = [
        f"item {_name(item)}: score {item['score']:.4f}{guess}{rank}; {said}; "
        f"{item['item_ratings']:,} training ratings in all"
    ]
    lines += [f"  {value:>+10.4f}  {name}" for name, value in item["parts"].items()]
    if not item["parts"]:
        lines.append("  the score is a rank, by votes or the best prototype: it is no sum")
    return [*lines, *_influences(item, "in this item's score")]


def _influences(found: Row, where: str) -> list[str]:
    lines: list[str] = []
    if found["features"]:
        lines += ["", f"features that count most {where}", f"  {'pull':>10}{'weight':>10}"]
        lines += [
            f"  {row['pull']:>+10.4f}{row['weight']:>+10.4f}  {row['name']}"
            for row in found["features"]
        ]
    if found["rated_items"]:
        header = f"  {'pull':>10}{'dual':>10}{'rating':>8}"
        lines += ["", f"rated items that count most {where}", header]
        lines += [_rated(row) for row in found["rated_items"]]
    return lines


def _rated(row: Row) -> str:
    rating = "-" if row["rating"] is None else f"{row['rating']:g}"
    return f"  {row['pull']:>+10.4f}{row['coefficient']:>+10.4f}{rating:>8}  {_name(row)}"


def _name(row: Row) -> str:
    """Return id and title, cut to a width that leaves a table readable."""
    words: Sequence[str] = [row["item_id"], *([row["title"]] if row["title"] else [])]
    return visible(" ".join(words), _TITLE)
