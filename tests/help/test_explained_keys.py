"""``spark-rank config --explain KEY`` says what there is to know of a key."""

from __future__ import annotations

import dataclasses
import shlex

import pytest

from spark_rank import cli
from spark_rank.config import Config, load_config
from spark_rank.config.describing import describe
from spark_rank.experiments import EXPERIMENTS
from spark_rank.help.commands import STAGES
from spark_rank.help.keys import explained, keys_of, stages_that_read

SECTIONS = [entry.name for entry in dataclasses.fields(Config)
            if dataclasses.is_dataclass(entry.default)]  # fmt: skip
KEYS = {key.name: key for key in describe(Config, ("", *SECTIONS))}
INNER = [key.name for key in keys_of(SECTIONS) if key.name not in KEYS]


def facts(text: str) -> dict[str, str]:
    rows = [line[2:].split(maxsplit=1) for line in text.splitlines() if line.startswith("  ")]
    return {row[0]: row[1] for row in rows if len(row) == 2}


def test_a_number_has_its_type_default_limits_readers_and_an_example() -> None:
    text = explained("features.rank")
    assert text.startswith("features.rank\n  factors and als: number of factors\n")
    assert facts(text) == {
        "factors": "and als: number of factors", "type": "whole number", "default": "32",
        "allowed": "at least 1, at most 500", "read": "by   features, tune, refit",
        "example": "--set features.rank=64",
    }  # fmt: skip


def test_a_choice_shows_its_words() -> None:
    shown = facts(explained("prepare.split"))
    words = "random, temporal, leave_last, k_fold, global, global_k_fold, given"
    assert " ".join(shown["allowed"].split()) == words
    assert facts(explained("input.time_unit"))["allowed"] == "s, ms, us, ns, null"


@pytest.mark.parametrize("key", [*KEYS, *INNER])
def test_every_example_is_another_value_that_is_taken(key: str) -> None:
    option, assignment, *others = shlex.split(facts(explained(key))["example"])
    assert option == "--set"
    assert load_config(None, [assignment, *others]) != load_config(None, others)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_examples_of_an_experiments_settings_are_taken(name: str) -> None:
    for key in describe(EXPERIMENTS[name].settings, ("",)):
        page = explained(f"experiment.settings.{name}.{key.name}")
        _, *assignments = shlex.split(facts(page)["example"])
        config = load_config(None, assignments)
        assert config.experiment.name == name
        assert config.experiment.settings.keys() == {key.name}


@pytest.mark.parametrize("key", KEYS)
def test_every_key_has_a_reader(key: str) -> None:
    assert stages_that_read(key)
    assert key.partition(".")[0] not in STAGES or key.partition(".")[0] in stages_that_read(key)


def test_a_sections_name_lists_its_keys() -> None:
    for section in SECTIONS:
        text = explained(section)
        own = [key for key in KEYS if key.startswith(f"{section}.")]
        assert own
        assert all(f"\n  {key} " in text for key in own)


def test_entries_of_lists_and_settings_of_experiments_are_keys_too() -> None:
    assert "  selection" in explained("train.learners")
    assert "ranks" in explained("train.learners.item_offset")
    assert all(name in explained("experiment.settings") for name in EXPERIMENTS)
    own = describe(EXPERIMENTS["bounds"].settings, ("",))
    text = explained("experiment.settings.bounds")
    assert all(f"\n  {key.name} " in text for key in own)
    assert "experiment" in facts(explained("experiment.settings.bounds.sizes"))["read"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("featurs.rank", "did you mean 'features.rank'?"),
        ("min_ratings", "did you mean 'train.min_ratings'?"),
        ("train.rounds", "did you mean 'features.rounds'?"),
        ("evaluat", "did you mean 'evaluate'?"),
        ("zzz", "sections: input, synthesize"),
        ("experiment.settings.bounds.zzz", "no key"),
    ],
)
def test_an_unknown_key_is_one_line_that_helps(
    wrong: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["config", "--explain", wrong]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert shown.count("\n") == 1
