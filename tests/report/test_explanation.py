"""Explanations as text."""

from __future__ import annotations

from typing import Any

from spark_rank.report.explanation import as_text

HEAD = {"user_id": "u7", "learner": "one", "status": "fallback", "reason": "too_few_ratings",
        "n_train": 2, "n_test": 1, "kernel": None}  # fmt: skip


def item(name: str, **more: Any) -> dict[str, Any]:
    return {"item_id": name, "title": None, "score": 3.25, "predicted_rank": None,
            "predicted_rating": None, "rating": None, "part": None, **more}  # fmt: skip


def test_lists_stand_side_by_side() -> None:
    own = [item("a", position=1, rating=5.0, part="held out"),
           item("b", position=2, rating=2.5, part="training", title="A film " * 9)]  # fmt: skip
    new = [item(f"n{i}", position=i, source="learned") for i in (1, 2)]
    new.append(item("n3", position=3, source="new_item"))
    text = as_text({**HEAD, "own_ratings": own, "top": new, "bottom": new[:1],
                    "features": [{"name": "factor 3", "weight": -1.0, "pull": 0.5}],
                    "rated_items": []})  # fmt: skip
    lines = text.splitlines()
    assert lines[0] == "user u7, one: fallback (too_few_ratings) from 2 ratings, 1 held out"
    assert lines[3].split() == ["1", "3.250", "5*", "a", "1", "3.250", "n1"]
    assert "2.5 " in lines[4]
    assert "…" in lines[4]
    assert lines[4].index("2    3.250 n2") == lines[3].index("1    3.250 n1")
    assert lines[5].endswith("n3 [new_item]")
    assert "new items, worst first" in lines
    assert any(line.split() == ["+0.5000", "-1.0000", "factor", "3"] for line in lines)


def test_an_item_is_told_in_parts() -> None:
    about = item("x", title="Film", item_ratings=1234, rating=4.0, part="training",
                 predicted_rank=3, predicted_rating=3.25, parts={"constant": 3.0, "rest": 0.25},
                 features=[], rated_items=[{"item_id": "y", "title": None, "rating": 1.0,
                                            "coefficient": -2.0, "pull": 0.125}])  # fmt: skip
    text = as_text({**HEAD, "item": about})
    assert "item x Film: score 3.2500, rating 3.250, rank 3; rated 4 (training); 1,234" in text
    assert "+3.0000  constant" in text
    assert "+0.1250   -2.0000       1  y" in text
    assert "no sum" not in text
    assert "no sum" in as_text({**HEAD, "item": {**about, "parts": {}}})
