"""The accuracy of a run on the console."""

from __future__ import annotations

from typing import Any

from spark_rank.records.results import EvaluateFacts
from spark_rank.report.console import accuracy_lines
from spark_rank.report.learner_order import configured_order, in_order


def lines_of(
    means: dict[str, dict[str, float | None]], users: int | None = 1272, **status: dict[str, int]
) -> list[str]:
    counts = {name: {metric: 0 if mean is None else users or 0 for metric, mean in own.items()}
              for name, own in means.items()}  # fmt: skip
    facts = EvaluateFacts(
        means=means,
        users={} if users is None else counts,
        status={name: {"learned": 1508} for name in means} | status,
        relevant_from=4.0,
    )
    names = [name for name in means if name not in ("constant", "item_offset")]
    return accuracy_lines(facts, trained(list(reversed(names))))


def trained(names: list[str]) -> dict[str, Any]:
    learners = [{"name": name, "learner": "mprank"} for name in names]
    return {"train": {"settings": {"learners": learners}}}


MINE = {"msd": 1.25, "m1d": 0.9, "misranking": 0.25}
CONSTANT = {"msd": 2.0, "m1d": 1.0, "misranking": 1.0}


def test_own_learners_stand_first_as_configured_and_every_mean_has_its_users() -> None:
    lines = lines_of({"constant": CONSTANT, "a": MINE, "b": MINE})
    assert [line.split()[0] for line in lines[1:4]] == ["b", "a", "constant"]
    assert lines[1].split() == ["b", "1,508", "0", "1.2500", "(1,272)", "0.9000", "(1,272)",
                                "0.2500", "(1,272)"]  # fmt: skip
    assert len({len(line) for line in lines[:4]}) == 1
    assert "in brackets" in lines[4]
    assert lines[5:] == ["b: 1,508 learned", "a: 1,508 learned"]


def test_what_says_nothing_is_no_figure() -> None:
    fell_back = {"a": {"fallback: no_features": 1508}}
    lines = lines_of({"a": MINE, "constant": CONSTANT}, **fell_back)
    assert lines[1].split() == ["a", "1,508", "0", "-", "-", "-"]
    assert lines[-1] == "a: 1,508 fallback: no_features; nothing learned (no features)"
    equal = {"msd": 0.0, "m1d": 0.0, "misranking": None}
    lines = lines_of({"a": equal, "constant": equal})
    assert lines[2].split()[3:] == ["-", "-", "-"]
    assert "in brackets" not in "\n".join(lines)
    assert lines[-1] == "constant: 1,508 learned; held-out ratings all equal"


def test_few_users_are_said_to_be_few() -> None:
    assert "may be chance" in "\n".join(lines_of({"a": MINE}, users=2))
    assert "may be chance" not in "\n".join(lines_of({"a": MINE}, users=6))


def test_an_older_record_without_numbers_of_users_is_shown() -> None:
    lines = lines_of({"a": MINE}, users=None)
    assert lines[1].split() == ["a", "1,508", "0", "1.2500", "0.9000", "0.2500"]
    assert lines[2:] == ["a: 1,508 learned"]


def test_learners_come_as_configured_then_ensembles_then_baselines() -> None:
    made = trained(["z", "a"])
    names = ["a", "constant", "item_offset", "oap", "z"]
    assert configured_order(names, made) == ["z", "a", "oap", "constant", "item_offset"]
    assert in_order(["item_offset", "z", "a", "z", "constant"]) == [
        ("z", False), ("a", False), ("constant", True), ("item_offset", True)
    ]  # fmt: skip
