"""Messages count in the right number."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from spark_rank.planning.sizes import spread
from spark_rank.report.explanation import as_text
from spark_rank.runs.rendering import printed
from spark_rank.stages.incremental import _change
from spark_rank.wording import count_of

PACKAGE = Path(__file__).parents[1] / "spark_rank"
NOUNS = "users|rows|ratings|items|files|tables|problems|questions|lines|waves|cores|buckets|results"
# a number, then its noun; "of 3 users" and "the 3 users" are counted as well
COUNTED = re.compile(rf"\0 ({NOUNS})\b")


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 users"), (1, "1 user"), (2, "2 users"), (1500, "1,500 users")]
)
def test_one_is_singular(number: int, words: str) -> None:
    assert count_of(number, "user") == words


def test_plurals_of_their_own() -> None:
    assert [count_of(n, "query", "queries") for n in (1, 2)] == ["1 query", "2 queries"]


def test_messages_of_one() -> None:
    assert "1 user for 1 item, the" in spread(1, 1, 1, "by hand").in_words()
    found = {"run_id": "a", "files": 1, "tables": 1, "problems": []}
    assert printed("verify", found, "text") == "a: 1 file, 1 table: all as the manifest says"
    row = {"user_id": "7", "learner": "one", "status": "learned", "reason": None, "n_train": 1,
           "n_test": 2, "kernel": None, "own_ratings": [], "top": [], "bottom": [],
           "features": [], "rated_items": []}  # fmt: skip
    assert "learned from 1 rating, 2 held out" in as_text(row)


def test_changes_since_an_earlier_run() -> None:
    assert [_change(n, "users new") for n in (1, 2)] == ["1 user new", "2 users new"]
    assert _change(1, "items vanished") == "1 item vanished"


def test_no_message_of_a_stage_joins_a_number_and_a_plural() -> None:
    found = []
    for path in sorted((PACKAGE / "stages").glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "StageResult":
                texts = [node for node in ast.walk(call) if isinstance(node, ast.JoinedStr)]
                found += [(path.name, text) for text in map(_flat, texts) if COUNTED.search(text)]
    assert found == []


def _flat(text: ast.JoinedStr) -> str:
    """Return the words of an f-string, with a sign for every value that is put in."""
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "\0" for part in text.values
    )
