"""Explanations as text: one screen, or all of it."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rank.report.columns import width
from spark_rank.report.explanation import as_text

HEAD = {"user_id": "u7", "learner": "one", "status": "fallback", "reason": "too_few_ratings",
        "n_train": 2, "n_test": 1, "kernel": None}  # fmt: skip


def item(name: str, **more: Any) -> dict[str, Any]:
    return {"item_id": name, "title": None, "score": 3.25, "predicted_rank": None,
            "predicted_rating": None, "rating": None, "part": None, **more}  # fmt: skip


def pulls(count: int) -> dict[str, Any]:
    features = [{"name": f"factor {i}", "weight": -1.0, "pull": 0.5} for i in range(count)]
    rated = [{"item_id": f"r{i}", "title": None, "rating": 1.0, "coefficient": -2.0, "pull": 0.125}
             for i in range(count)]  # fmt: skip
    return {"features": features, "rated_items": rated}


def much(title: str | None = None) -> dict[str, Any]:
    own = [item(f"o{i}", position=i, rating=5.0, title=title,
                part="held out" if i % 2 else "training") for i in range(1, 273)]  # fmt: skip
    new = [item(f"n{i}", position=i, source="learned", title=title) for i in range(1, 11)]
    return {**HEAD, "own_ratings": own, "top": new, "bottom": new[:3], **pulls(10)}


def test_lists_stand_side_by_side() -> None:
    own = [item("a", position=1, rating=5.0, part="held out"),
           item("b", position=2, rating=2.5, part="training", title="A film " * 9)]  # fmt: skip
    new = [item(f"n{i}", position=i, source="learned") for i in (1, 2)]
    new.append(item("n3", position=3, source="new_item"))
    text = as_text({**HEAD, "own_ratings": own, "top": new, "bottom": new[:1],
                    "features": [{"name": "factor 3", "weight": -1.0, "pull": 0.5}],
                    "rated_items": []}, everything=True)  # fmt: skip
    lines = text.splitlines()
    assert lines[0] == "user u7, one: fallback (too_few_ratings) from 2 ratings, 1 held out"
    assert lines[4].split() == ["1", "3.250", "5*", "a", "1", "3.250", "n1"]
    assert "2.5 " in lines[5]
    assert "…" in lines[5]
    assert lines[5].index("2  3.250  n2") == lines[4].index("1  3.250  n1")
    assert lines[6].endswith("n3 [new_item]")
    assert "new items, worst first" in lines
    assert any(line.split() == ["+0.5000", "-1.0000", "factor", "3"] for line in lines)


def test_a_screen_is_twenty_lines_and_says_what_it_leaves_out() -> None:
    lines = as_text(much()).splitlines()
    assert len(lines) <= 22
    assert not any(line != line.rstrip() for line in lines)
    assert lines[-1] == (
        "--all shows more: 264 own ratings, 2 new items, 3 worst items, 10 features, 7 rated items"
    )
    text = as_text(much(), everything=True)
    for words in ("o150", "n10", "worst first", "factor 9", "r9", "-2.0000"):
        assert words in text
        assert words not in "\n".join(lines)
    assert "--all" not in text


@pytest.mark.parametrize("everything", [False, True])
def test_marks_are_explained_where_they_are_shown(everything: bool) -> None:
    found = much()
    text = as_text(found, everything=everything)
    assert "\n* held out" in text
    assert "\npull: " in text
    assert ("\nweight, dual: " in text) == everything
    assert "[new_item]" not in text
    found["top"][0]["source"] = "new_item"
    found["own_ratings"] = []
    text = as_text({**found, **pulls(0)}, everything=everything)
    assert "\n[new_item] an item without a training rating" in text
    assert "* held out" not in text
    assert "pull" not in text


@pytest.mark.parametrize("title", ["Film", "七人の侍 " * 9, "A very long title, The " * 9])
def test_columns_are_straight_whatever_the_titles(title: str) -> None:
    """The score of the first and the last new item stands at the same place."""
    found = much(title)
    found["own_ratings"][0]["title"] = "短い"
    lines = as_text(found).splitlines()[4:12]
    ends = [width(line[: line.rindex("3.250")]) for line in lines]
    assert len(set(ends)) == 1
    assert max(map(width, lines)) <= 100


def test_so_many_are_named_as_asked() -> None:
    text = as_text(much(), count=7)
    assert "r6" in text
    assert "r7" not in text


def test_an_item_is_told_in_parts() -> None:
    about = item("x", title="Film", item_ratings=1234, rating=4.0, part="training",
                 predicted_rank=3, predicted_rating=3.25, parts={"constant": 3.0, "rest": 0.25},
                 features=[], rated_items=[{"item_id": "y", "title": None, "rating": 1.0,
                                            "coefficient": -2.0, "pull": 0.125}])  # fmt: skip
    text = as_text({**HEAD, "item": about})
    assert "item x Film: score 3.2500, rating 3.250, rank 3; rated 4 (training); 1,234" in text
    assert "+3.0000  constant" in text
    assert "+0.1250       1  y" in text
    assert "+0.1250  -2.0000       1  y" in as_text({**HEAD, "item": about}, everything=True)
    assert "it has no parts" not in text
    assert "it has no parts" in as_text({**HEAD, "item": {**about, "parts": {}}})


def test_without_rated_items_features_are_named() -> None:
    about = item("x", item_ratings=1, parts={}, **{**pulls(9), "rated_items": []})
    text = as_text({**HEAD, "item": about})
    assert "factor 4" in text
    assert "factor 5" not in text
    assert text.endswith("--all shows more: 4 features")
