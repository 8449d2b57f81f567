"""What a command does with a run is decided before its first stage writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.errors import ConfigError
from spark_rank.stages.run_plan import (
    Action,
    PlannedStage,
    RecordedRun,
    StageRequest,
    check_later_stages,
    plan_stages,
)

KEEP, MAKE, RENEW = Action.KEEP, Action.MAKE, Action.RENEW
Records = dict[str, dict[str, Any]]


def request(name: str, *needs: str, **more: Any) -> StageRequest:
    given: dict[str, Any] = {"seed": 0, "settings": {"key": 1}, "inputs": None, **more}
    return StageRequest(name, needs=needs, **given)


def recorded(records: Mapping[str, Mapping[str, Any]]) -> RecordedRun:
    return RecordedRun("r1", "/store/runs/run_id=r1", records.get)


def finished(*stages: StageRequest) -> Records:
    """Return the records that a run has which made these stages, one after another."""
    records: Records = {}
    for one in stages:
        upstream = {name: records[name]["fingerprint"] for name in one.needs}
        records[one.name] = {
            "fingerprint": one.fingerprint(upstream), "upstream": upstream, "inputs": one.inputs,
            "settings": one.settings, "seed": one.seed, "facts": {},
        }  # fmt: skip
    return records


def actions(stages: list[StageRequest], records: Records) -> list[Action]:
    return [one.action for one in plan_stages(stages, recorded(records))]


FIRST, SECOND, THIRD = request("first"), request("second", "first"), request("third", "second")
CHAIN = [FIRST, SECOND, THIRD]


def test_a_new_run_makes_everything_and_the_same_command_nothing() -> None:
    assert actions(CHAIN, {}) == [MAKE, MAKE, MAKE]
    assert actions(CHAIN, finished(*CHAIN)) == [KEEP, KEEP, KEEP]


@given(st.sets(st.sampled_from(["first", "second", "third"])))
def test_a_stage_without_a_record_is_made_again_as_it_was(lost: set[str]) -> None:
    records = {name: one for name, one in finished(*CHAIN).items() if name not in lost}
    assert actions(CHAIN, records) == [MAKE if one.name in lost else KEEP for one in CHAIN]


@given(
    st.sampled_from([0, 1, 2]),
    st.sampled_from([{"seed": 1}, {"settings": {"key": 2}}, {"inputs": "new"}]),
    st.sets(st.sampled_from(["first", "second", "third"])),
)
def test_a_change_is_refused_where_any_stage_that_it_reaches_is_done(
    position: int, change: dict[str, Any], lost: set[str]
) -> None:
    stages = [*CHAIN]
    stages[position] = replace(stages[position], **change)
    records = {name: one for name, one in finished(*CHAIN).items() if name not in lost}
    reached = [one.name for one in CHAIN[position:]]
    if set(reached) <= lost:
        assert MAKE in actions(stages, records)
    else:
        with pytest.raises(ConfigError, match="run 'r1' has finished .*--set run_id=NAME"):
            actions(stages, records)


def test_a_later_stage_is_refused_before_an_earlier_one_that_is_new() -> None:
    """The grid that is chosen by a stage of its own, in a run that has trained without."""
    trained = finished(FIRST, request("train", "first", settings={"learners": ["plain"]}))
    tune = request("tune", "first")
    train = request("train", "first", "tune", settings={"learners": ["tuned"]})
    with pytest.raises(ConfigError, match=r"finished 'train' with .*learners was \[\"plain\"\]"):
        actions([FIRST, tune, train], trained)


def test_what_a_stage_needs_is_recorded_or_comes_before_it() -> None:
    with pytest.raises(ConfigError, match="'second' needs 'first'.*run `spark-rank first` first"):
        actions([SECOND], {})
    assert actions([SECOND], finished(FIRST)) == [MAKE]
    assert actions([FIRST, SECOND], {}) == [MAKE, MAKE]


def test_views_and_followers_are_renewed_where_only_what_they_show_has_changed() -> None:
    view, follower = (
        request("page", "first", view=True),
        request("means", "first", follows_inputs=True),
    )
    records = finished(FIRST, view, follower)
    for one in (view, follower):
        assert actions([FIRST, replace(one, inputs="new")], records) == [KEEP, RENEW]
    assert actions([FIRST, replace(view, settings={})], records) == [KEEP, RENEW]
    with pytest.raises(ConfigError, match="other settings"):
        actions([FIRST, replace(follower, settings={})], records)


def test_what_was_skipped_for_lack_of_data_is_made_anew() -> None:
    records = finished(FIRST)
    records["first"]["facts"] = {"skipped": True}
    assert actions([replace(FIRST, inputs="now there")], records) == [RENEW]


def test_what_a_renewed_stage_will_be_contradicts_nothing_yet() -> None:
    follower = request("means", "first", follows_inputs=True)
    later = request("later", "means")
    records = finished(FIRST, follower, later)
    renewed = replace(follower, inputs="new")
    assert actions([FIRST, renewed, later], records) == [KEEP, RENEW, KEEP]
    with pytest.raises(ConfigError, match="finished 'later' with seed 0, not 1"):
        actions([FIRST, renewed, replace(later, seed=1)], records)


def test_nothing_new_comes_below_a_finished_stage_that_would_have_needed_it() -> None:
    train = request("train", "first", settings={"learners": ["plain"]})
    tuned = request("train", "first", "tune", settings={"learners": ["tuned"]})
    planned = [PlannedStage(request("tune", "first"), MAKE)]
    with pytest.raises(ConfigError, match="finished 'train' with other settings"):
        check_later_stages(planned, [tuned], recorded(finished(FIRST, train)))
    check_later_stages(planned, [tuned], recorded(finished(FIRST)))
    check_later_stages(planned, [train], recorded(finished(FIRST, train)))
    # one that was made with it, and whose record somebody has deleted
    with_tune = finished(FIRST, request("tune", "first"), tuned)
    del with_tune["tune"]
    check_later_stages(planned, [tuned], recorded(with_tune))
