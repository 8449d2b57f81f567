"""What a stage found out is read back as it was written; another version's record is refused."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_rank.errors import ContractError
from spark_rank.records import data, features, models, results
from spark_rank.records.data import IngestFacts, PrepareFacts, RatingBin
from spark_rank.records.facts import Facts, as_record, read_facts, was_skipped
from spark_rank.records.models import LearnedSince, SkippedRefit, TrainFacts
from spark_rank.records.results import ExperimentFacts
from tests.records.counts import prepared_counts

MODULES = (data, features, models, results)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(),
    float: st.floats(allow_nan=False),
    str: st.text(max_size=3),
    bool: st.booleans(),
    Any: st.sampled_from(["text", 1, 2.5, None, [1.0, "a"]]),
}


def kinds(below: type[Facts] = Facts) -> Iterator[type[Facts]]:
    for kind in below.__subclasses__():
        yield kind
        yield from kinds(kind)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return any value of a type that facts may have."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        named = {field.name: values(hints[field.name]) for field in dataclasses.fields(kind)}
        return st.builds(kind, **named)  # type: ignore[arg-type]
    arguments = typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        return st.none() | values(next(one for one in arguments if one is not types.NoneType))
    if typing.get_origin(kind) is tuple and arguments[-1] is not Ellipsis:
        return st.tuples(*map(values, arguments))
    if typing.get_origin(kind) is tuple:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if typing.get_origin(kind) is Mapping:
        return st.dictionaries(st.text(max_size=3), values(arguments[1]), max_size=2)
    return PLAIN[kind]


def stored(facts: Facts) -> dict[str, Any]:
    """Return a record as a manifest holds it."""
    record: dict[str, Any] = json.loads(json.dumps({"stage": "s", "facts": as_record(facts)}))
    return record


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
def test_every_stage_reads_back_what_it_has_written(kind: type[Facts]) -> None:
    @given(values(kind))
    @settings(max_examples=20, deadline=None)
    def check(facts: Facts) -> None:
        assert read_facts(kind, stored(facts), "r") == facts

    check()


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
def test_facts_are_frozen(kind: type[Facts]) -> None:
    assert {kind.__module__} <= {module.__name__ for module in MODULES}
    for field in dataclasses.fields(kind):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(object.__new__(kind), field.name, None)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("train_ratings", None, "has the fact 'train_ratings' as NoneType, not int"),
        ("train_ratings", 1.5, "has the fact 'train_ratings' as float, not int"),
        ("train_ratings", True, "has the fact 'train_ratings' as bool, not int"),
        ("filters", {}, "has the fact 'filters' as dict, not list"),
        ("filters", [{"filter": "a"}], "has no fact 'filters[0].round'"),
        ("profile", {"users": 3}, "has no fact 'profile.ratings'"),
    ],
)
def test_what_does_not_fit_is_one_line_that_names_it(place: str, value: Any, said: str) -> None:
    record = stored(prepared_counts(3, 4, 5, 2))
    record["facts"][place] = value
    with pytest.raises(ContractError) as error:
        read_facts(PrepareFacts, record, "monday")
    assert str(error.value) == (
        f"run 'monday': the record of 'prepare' {said}: another version of this package made it: "
        "start a new run with --set run_id=NAME"
    )


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(TrainFacts)][:-1])
def test_a_fact_that_is_needed_cannot_be_left_out(name: str) -> None:
    whole: dict[str, Any] = {
        "status": {}, "failed_users": {}, "waves": [],
        "job": {"specs": [], "panel": [], "min_ratings": 1, "margin": 1, "limits": {}},
    }  # fmt: skip
    assert read_facts(TrainFacts, {"facts": whole}, "r").previous is None
    left = {key: value for key, value in whole.items() if key != name}
    with pytest.raises(ContractError, match=f"'train' has no fact '{name}'"):
        read_facts(TrainFacts, {"facts": left}, "r")


def test_keys_of_other_versions_are_ignored() -> None:
    facts = prepared_counts(3, 4, 5, 2)
    record = stored(facts)
    record["facts"]["unheard of"] = 1
    record["facts"]["profile"]["new"] = []
    assert read_facts(PrepareFacts, record, "r") == facts
    # so that a part of the facts can be asked for
    learned = {"facts": {"previous": {"run": "monday", "listed": 3}, "waves": []}}
    previous = read_facts(LearnedSince, learned, "r").previous
    assert previous is not None
    assert previous.run == "monday"


def test_the_shape_of_a_record_stays() -> None:
    bins = as_record((RatingBin(rating=4.0, ratings=2), RatingBin(low=0.0, high=1.0, ratings=3)))
    assert bins == [{"rating": 4.0, "ratings": 2}, {"from": 0.0, "to": 1.0, "ratings": 3}]
    given = {
        "rows_in": 3, "quarantined_by_reason": {"duplicate": 1}, "read_as": "read as csv",
        "rating_scale": {"kind": "levels", "low": 1.0, "high": 5.0, "levels": 5},
    }  # fmt: skip
    facts = read_facts(IngestFacts, {"facts": given}, "r")
    assert as_record(facts) == {**given, "dropped_by_reason": {}, "parts": {}}


def test_a_stage_says_that_it_was_skipped() -> None:
    nothing = ExperimentFacts(units=0, data={}, missing=("x",))
    assert not was_skipped(stored(nothing))
    assert was_skipped(stored(dataclasses.replace(nothing, skipped=True)))
    assert was_skipped(stored(SkippedRefit(learner="a", skipped="nothing is held out")))
    assert not was_skipped({"facts": {}})
