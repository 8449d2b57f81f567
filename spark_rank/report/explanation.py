"""An explanation as text for the console: what fits a screen, or all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.report.columns import cut, in_columns, pad, side_by_side, width
from spark_rank.visible import visible
from spark_rank.wording import count_of

Row = Mapping[str, Any]
Rows = Sequence[Row]

_NAME, _ID = 30, 12  # places for an item, and of these at most for its id beside a title
_FIRST, _LAST = 5, 2  # own ratings that a screen shows, with a line between them
_NEW = _FIRST + 1 + _LAST
_FEW, _FEW_OF_ITEM = 3, 5
_LEFT_OUT = "…"
_SOURCES = {
    "new_item": "an item without a training rating: no more is known than its features",
    "fallback": "what is expected of a user from whom nothing was learned",
    "item_offset": "by the items' average ratings, for the model failed",
}


def as_text(explanation: Row, *, everything: bool = False, count: int | None = None) -> str:
    """Return what the stage explain found, for a person to read.

    Without `everything` it is about twenty lines; `count` is then how many features or rated items
    are named, if it was asked for.
    """
    lines = _item(explanation, everything, count) if "item" in explanation else _lists(
        explanation, everything, count
    )  # fmt: skip
    return "\n".join(line.rstrip() for line in [*_head(explanation), "", *lines])


def _head(found: Row) -> list[str]:
    reason = f" ({found['reason']})" if found["reason"] else ""
    kernel = f", kernel {found['kernel']}" if found["kernel"] else ""
    return [
        f"user {visible(found['user_id'])}, {found['learner']}: {found['status']}{reason} from "
        f"{count_of(found['n_train'], 'rating')}, {found['n_test']:,} held out{kernel}"
    ]


def _lists(found: Row, everything: bool, count: int | None) -> list[str]:
    own, new = found["own_ratings"], found["top"]
    shown_own = own if everything else _ends(own)
    shown_new = new if everything else new[:_NEW]
    left = ["own ratings, in the order of the scores", *_own(shown_own)]
    lines = side_by_side(left, ["new items, best first", *_new(shown_new)])
    listed = [*shown_own, *shown_new]
    if everything and found["bottom"]:
        lines += ["", "new items, worst first", *_new(found["bottom"])]
        listed += found["bottom"]
    pulls, left_out = _pulls(found, "the scores", everything, _FEW if count is None else count)
    lines += [*pulls, "", *_marks(listed)]
    if pulls:
        lines.append("pull: what it adds to the scores, as a standard deviation over all items")
        lines += _coefficients(everything)
    if not everything:
        hidden = [(len(own) - min(len(own), _NEW), "own ratings"), (len(new[_NEW:]), "new items"),
                  (len(found["bottom"]), "worst items"), *left_out]  # fmt: skip
        lines += _more(hidden)
    return lines


def _item(found: Row, everything: bool, count: int | None) -> list[str]:
    item = found["item"]
    said = f"rated {item['rating']:g} ({item['part']})" if item["part"] else "not rated"
    guess = "" if item["predicted_rating"] is None else f", rating {item['predicted_rating']:.3f}"
    rank = "" if item["predicted_rank"] is None else f", rank {item['predicted_rank']}"
    lines = [
        f"item {visible(_words(item))}: score {item['score']:.4f}{guess}{rank}; {said}; "
        f"{count_of(item['item_ratings'], 'training rating')} in all"
    ]
    lines += [f"  {value:>+10.4f}  {name}" for name, value in item["parts"].items()]
    if not item["parts"]:
        lines.append("  the score is a rank, by votes or the best prototype: it is no sum")
    few = _FEW_OF_ITEM if count is None else count
    pulls, left_out = _pulls(item, "this item's score", everything, few)
    lines += pulls
    if pulls:
        lines += ["", "pull: what it adds to this item's score", *_coefficients(everything)]
    return [*lines, *([] if everything else _more(left_out))]


def _ends(own: Rows) -> list[Row | None]:
    """Return the first and the last of many rows, with None for those between them."""
    return list(own) if len(own) <= _NEW else [*own[:_FIRST], None, *own[-_LAST:]]


def _own(rows: Sequence[Row | None]) -> list[str]:
    names = iter(_names([row for row in rows if row is not None]))
    header = ("place", "score", "rating", "item")
    cells = [
        (_LEFT_OUT, "", "", "") if row is None else
        (str(row["position"]), f"{row['score']:.3f}",
         f"{row['rating']:g}" + ("*" if row["part"] == "held out" else " "), next(names))
        for row in rows
    ]  # fmt: skip
    return in_columns([header, *cells], (True, True, True, False))


def _new(rows: Rows) -> list[str]:
    cells = [
        (str(row["position"]), f"{row['score']:.3f}", name + _source(row))
        for row, name in zip(rows, _names(rows), strict=True)
    ]
    return in_columns([("place", "score", "item"), *cells], (True, True, False))


def _source(row: Row) -> str:
    return f" [{row['source']}]" if row["source"] != "learned" else ""


def _pulls(
    found: Row, where: str, everything: bool, count: int
) -> tuple[list[str], list[tuple[int, str]]]:
    """Return what moves scores most, and how much is left out: rated items say more to people."""
    features, rated = found["features"], found["rated_items"]
    if everything:
        return _feature_lines(features, where) + _rated_lines(rated, where, dual=True), []
    if rated:
        left_out = [(len(features), "features"), (len(rated[count:]), "rated items")]
        return _rated_lines(rated[:count], where, dual=False), left_out
    return _feature_lines(features[:count], where), [(len(features[count:]), "features")]


def _feature_lines(rows: Rows, where: str) -> list[str]:
    if not rows:
        return []
    cells = [(f"{row['pull']:+.4f}", f"{row['weight']:+.4f}", visible(row["name"])) for row in rows]
    table = in_columns([("pull", "weight", "feature"), *cells], (True, True, False))
    return ["", f"features that move {where} most", *table]


def _rated_lines(rows: Rows, where: str, *, dual: bool) -> list[str]:
    """Return rated items; `dual` adds their coefficients in the model."""
    if not rows:
        return []
    header = ("pull", *(("dual",) if dual else ()), "rating", "item")
    cells = [
        (f"{row['pull']:+.4f}", *((f"{row['coefficient']:+.4f}",) if dual else ()),
         "-" if row["rating"] is None else f"{row['rating']:g}", name)
        for row, name in zip(rows, _names(rows), strict=True)
    ]  # fmt: skip
    numbers = [True] * (len(header) - 1) + [False]
    return ["", f"rated items that move {where} most", *in_columns([header, *cells], numbers)]


def _marks(rows: Sequence[Row | None]) -> list[str]:
    """Return a line for every mark that is shown."""
    shown = [row for row in rows if row is not None]
    lines = []
    if any(row.get("part") == "held out" for row in shown):
        lines.append("* held out: the learner has not seen this rating")
    sources = dict.fromkeys(row["source"] for row in shown if row.get("source"))
    return lines + [f"[{name}] {words}" for name, words in _SOURCES.items() if name in sources]


def _coefficients(everything: bool) -> list[str]:
    shown = "weight, dual: the coefficients of a feature and of a rated item in the model"
    return [shown] if everything else []


def _more(hidden: Sequence[tuple[int, str]]) -> list[str]:
    named = [f"{count:,} {what}" for count, what in hidden if count]
    return [f"--all shows more: {', '.join(named)}"] if named else []


def _names(rows: Rows) -> list[str]:
    """Return ids and titles, the titles under each other, cut to what leaves a table readable."""
    ids = [visible(row["item_id"]) for row in rows]
    if not any(row["title"] for row in rows):
        return [cut(item_id, _NAME) for item_id in ids]
    ids = [cut(item_id, _ID) for item_id in ids]
    places = max(map(width, ids))
    return [
        f"{pad(item_id, places)} {cut(visible(row['title'] or ''), _NAME - places - 1)}"
        for item_id, row in zip(ids, rows, strict=True)
    ]


def _words(row: Row) -> str:
    return " ".join([row["item_id"], *([row["title"]] if row["title"] else [])])
