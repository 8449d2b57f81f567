"""Help helps: every page says what its command needs, shows lines that work, and where to go on."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_rank import cli
from spark_rank.config import load_config
from spark_rank.help.commands import STAGES, examples_of
from spark_rank.help.pages import command_of

ROOT = Path(__file__).parents[2]


def pages(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from pages(inner)


PAGES = {command_of(parser.prog): parser for parser in pages(cli.command_parser())}


def keys_shown(text: str) -> set[str]:
    listed = text.split("with their defaults:\n")[1].split("\nexamples:", maxsplit=1)[0]
    return {line.split()[0] for line in listed.splitlines() if line.startswith("  ")}


@pytest.mark.parametrize("command", PAGES)
def test_every_page_has_usage_options_examples_and_where_the_rest_is(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([*command.split(), "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: spark-rank {command}".rstrip())
    examples = text.split("\nexamples:\n")[1].split("\n\n")[0].splitlines()
    assert [line.strip() for line in examples] == list(examples_of(command))
    assert 2 <= len(examples) <= 3
    assert text.index("\noptions:") < text.index("\nexamples:") < text.index("\nmore:")
    assert text.count("\n") <= 75
    assert "exit codes: 0 done" in text


@pytest.mark.parametrize("command", PAGES)
def test_every_example_is_taken(command: str) -> None:
    for line in examples_of(command):
        program, *words = shlex.split(line)
        options = cli.command_parser().parse_args(words)
        assert program == "spark-rank"
        named = f"{options.command} {getattr(options, 'action', '')}".strip()
        assert not command or named.startswith(command) or command == "formats", line
        if "sets" in options:
            config = getattr(options, "config", None)
            load_config(config and ROOT / config, options.sets, options.spark)


@pytest.mark.parametrize("stage", [name for name in STAGES if name != "pipeline"])
def test_a_stages_page_lists_the_keys_that_it_reads_and_no_others(stage: str) -> None:
    shown = keys_shown(PAGES[stage].format_help())
    assert {"store", "run_id", "seed", "spark"} <= shown
    assert all(STAGES[stage].reads(key) for key in shown)


def test_train_shows_its_keys_and_leaves_the_learners_to_their_own_command() -> None:
    text = PAGES["train"].format_help()
    assert {"train.min_ratings", "train.learners.grid", "previous"} <= keys_shown(text)
    assert not {"input.format", "recommend.top"} & keys_shown(text)
    assert "rankboost" not in text
    assert "spark-rank learners [NAME]" in text


def test_the_pipelines_page_names_sections_where_keys_would_fill_screens() -> None:
    shown = keys_shown(PAGES["pipeline"].format_help())
    assert set(STAGES["pipeline"].sections) <= shown
    assert "train.min_ratings" not in shown


@pytest.mark.parametrize("columns", ["80", "120"])
def test_lines_of_keys_fit_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    listed = PAGES["ingest"].format_help().split("defaults:\n")[1].split("\nexamples:")[0]
    lengths = [len(line) for line in listed.splitlines()]
    assert max(lengths) < int(columns)
    assert max(lengths) > int(columns) - 15
