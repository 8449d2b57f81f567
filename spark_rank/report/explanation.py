"""An explanation as text for the console: what fits a screen, or all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.report.columns import cut, in_columns, pad, side_by_side, width
from spark_rank.visible import visible
from spark_rank.wording import count_of

Row = Mapping[str, Any]
Rows = Sequence[Row]

_NAME, _ID = 30, 12  # widest name of an item, and widest id beside a title
_FIRST, _LAST = 5, 2  # own ratings that the short form shows, with a line between them
_MOST_NEW = _FIRST + 1 + _LAST
_FEW, _FEW_OF_ITEM = 3, 5
_LEFT_OUT = "…"
_SOURCES = {
    "new_item": "an item without a training rating: only its features are known",
    "fallback": "the user has no learned model: these are the scores expected of any user",
    "item_offset": "the items' average ratings: the user's model failed",
}


def as_text(explanation: Row, *, everything: bool = False, count: int | None = None) -> str:
    """Return an explanation as text for people.

    Without `everything` it has about twenty lines, and `count` says how many features or rated
    items it names; None: as many as usual.
    """
    lines = _item(explanation, everything, count) if "item" in explanation else _lists(
        explanation, everything, count
    )  # fmt: skip
    return "\n".join(line.rstrip() for line in [*_head(explanation), "", *lines])


def _head(explanation: Row) -> list[str]:
    reason = f" ({explanation['reason']})" if explanation["reason"] else ""
    kernel = f", kernel {explanation['kernel']}" if explanation["kernel"] else ""
    learner, status = explanation["learner"], explanation["status"]
    return [
        f"user {visible(explanation['user_id'])}, {learner}: {status}{reason} from "
        f"{count_of(explanation['n_train'], 'rating')}, {explanation['n_test']:,} held out{kernel}"
    ]


def _lists(explanation: Row, everything: bool, count: int | None) -> list[str]:
    rated, new = explanation["own_ratings"], explanation["top"]
    shown_rated = rated if everything else _ends(rated)
    shown_new = new if everything else new[:_MOST_NEW]
    left = ["own ratings, best score first", *_rated_table(shown_rated)]
    lines = side_by_side(left, ["new items, best first", *_new_table(shown_new)])
    listed = [*shown_rated, *shown_new]
    if everything and explanation["bottom"]:
        lines += ["", "new items, worst first", *_new_table(explanation["bottom"])]
        listed += explanation["bottom"]
    pulls, left_out = _pulls(
        explanation, "the scores", everything, _FEW if count is None else count
    )
    lines += [*pulls, "", *_marks(listed)]
    if pulls:
        lines.append("pull: how far it moves the scores, as a standard deviation over all items")
        lines += _coefficients(everything)
    if not everything:
        lines += _hidden_lines([
            (len(rated) - min(len(rated), _MOST_NEW), "own ratings"),
            (len(new[_MOST_NEW:]), "new items"), (len(explanation["bottom"]), "worst items"),
            *left_out,
        ])  # fmt: skip
    return lines


def _item(explanation: Row, everything: bool, count: int | None) -> list[str]:
    item = explanation["item"]
    own_rating = f"rated {item['rating']:g} ({item['part']})" if item["part"] else "not rated"
    rating = "" if item["predicted_rating"] is None else f", rating {item['predicted_rating']:.3f}"
    rank = "" if item["predicted_rank"] is None else f", rank {item['predicted_rank']}"
    lines = [
        f"item {visible(_id_and_title(item))}: score {item['score']:.4f}{rating}{rank}; "
        f"{own_rating}; {count_of(item['item_ratings'], 'training rating')} in all"
    ]
    lines += [f"  {value:>+10.4f}  {name}" for name, value in item["parts"].items()]
    if not item["parts"]:
        lines.append("  the score is a rank, by votes or the best prototype: it has no parts")
    few = _FEW_OF_ITEM if count is None else count
    pulls, left_out = _pulls(item, "this item's score", everything, few)
    lines += pulls
    if pulls:
        lines += ["", "pull: what it adds to this item's score", *_coefficients(everything)]
    return [*lines, *([] if everything else _hidden_lines(left_out))]


def _ends(rows: Rows) -> list[Row | None]:
    """Return the first and last rows, with None in place of those between them."""
    return list(rows) if len(rows) <= _MOST_NEW else [*rows[:_FIRST], None, *rows[-_LAST:]]


def _rated_table(rows: Sequence[Row | None]) -> list[str]:
    names = iter(_names([row for row in rows if row is not None]))
    header = ("place", "score", "rating", "item")
    cells = [
        (_LEFT_OUT, "", "", "") if row is None else
        (str(row["position"]), f"{row['score']:.3f}",
         f"{row['rating']:g}" + ("*" if row["part"] == "held out" else " "), next(names))
        for row in rows
    ]  # fmt: skip
    return in_columns([header, *cells], (True, True, True, False))


def _new_table(rows: Rows) -> list[str]:
    cells = [
        (str(row["position"]), f"{row['score']:.3f}", name + _source(row))
        for row, name in zip(rows, _names(rows), strict=True)
    ]
    return in_columns([("place", "score", "item"), *cells], (True, True, False))


def _source(row: Row) -> str:
    return f" [{row['source']}]" if row["source"] != "learned" else ""


def _pulls(
    explanation: Row, where: str, everything: bool, count: int
) -> tuple[list[str], list[tuple[int, str]]]:
    """Return what moves the scores most, and how much is left out.

    The short form names rated items if there are any: people understand them best.
    """
    features, rated = explanation["features"], explanation["rated_items"]
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
    """Return a line that explains each mark in the rows."""
    shown = [row for row in rows if row is not None]
    lines = []
    if any(row.get("part") == "held out" for row in shown):
        lines.append("* held out: the learner has not seen this rating")
    sources = dict.fromkeys(row["source"] for row in shown if row.get("source"))
    return lines + [f"[{name}] {words}" for name, words in _SOURCES.items() if name in sources]


def _coefficients(everything: bool) -> list[str]:
    shown = "weight, dual: the coefficients of a feature and of a rated item in the model"
    return [shown] if everything else []


def _hidden_lines(hidden: Sequence[tuple[int, str]]) -> list[str]:
    named = [f"{count:,} {what}" for count, what in hidden if count]
    return [f"--all shows more: {', '.join(named)}"] if named else []


def _names(rows: Rows) -> list[str]:
    """Return ids and titles, the titles aligned and all cut to fit a screen."""
    ids = [visible(row["item_id"]) for row in rows]
    if not any(row["title"] for row in rows):
        return [cut(item_id, _NAME) for item_id in ids]
    ids = [cut(item_id, _ID) for item_id in ids]
    places = max(map(width, ids))
    return [
        f"{pad(item_id, places)} {cut(visible(row['title'] or ''), _NAME - places - 1)}"
        for item_id, row in zip(ids, rows, strict=True)
    ]


def _id_and_title(row: Row) -> str:
    return " ".join([row["item_id"], *([row["title"]] if row["title"] else [])])
