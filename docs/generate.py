"""Writes docs/reference from the code: ``python docs/generate.py``, or ``make docs-reference``.

A test compares the pages with what this module makes, so that they are always current.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from spark_rank import errors, metrics
from spark_rank.cli import INTERRUPTED, command_parser
from spark_rank.config import Config
from spark_rank.config.describing import Key, describe
from spark_rank.data.formats import FORMATS
from spark_rank.experiments import EXPERIMENTS
from spark_rank.help.commands import STAGES, examples_of
from spark_rank.help.learners import about, kind_of, parameter_rows
from spark_rank.learners import BASELINES, REGISTRY, Learner
from spark_rank.tables.contract import VERSION_COLUMN, Contract
from spark_rank.tables.contracts import (
    ENSEMBLE_MODELS,
    FINAL_TABLES,
    METRIC_COLUMNS,
    MODELS,
    TABLES,
)
from spark_rank.users.measuring import HIGHER_IS_BETTER

FOLDER = Path(__file__).parent / "reference"
# options that all commands with a configuration take: shown once
_SHARED = ("--config", "--set", "--spark", "--log-format", "--takeover")
# where a metric's function does not have the name of its column
_FUNCTIONS = {
    "msd": "mean_squared_difference",
    "m1d": "mean_1norm_difference",
    "rmse": "root_mean_squared_error",
    "mae": "mean_absolute_error",
    "misranking": "pairwise_misranking",
    "exact_rank": "exact_rank_rate",
}


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")


def commands() -> str:
    """Return the page of all commands, from the parser of the command line."""
    parsers = dict(_named_parsers(command_parser()))
    shared = [row for row in _options(parsers["train"]) if row[0].split()[0].strip("`") in _SHARED]
    lines = [
        "A stage is a step of a run. `spark-rank pipeline` runs the stages that the configuration",
        "asks for, in this order; each stage is also a command, and a job: `jobs/train.py` takes",
        "the arguments of `spark-rank train`.",
        "",
        *_table(("command", "what it does"), _summaries(parsers)),
        "",
        "## Options of every command with a configuration",
        "",
        *_table(("option", "meaning"), shared),
        "",
        "`jobs/<stage>.py` and stages take `--takeover`; `reproduce` takes `--set` and `--spark`.",
    ]
    for name, parser in parsers.items():
        lines += ["", f"## {name}", "", *_command(name, parser)]
    return _page("Commands", lines)


def _named_parsers(
    parser: argparse.ArgumentParser, prefix: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                if any(isinstance(each, argparse._SubParsersAction) for each in inner._actions):
                    yield from _named_parsers(inner, f"{prefix}{name} ")
                else:
                    yield f"{prefix}{name}", inner


def _summaries(parsers: dict[str, argparse.ArgumentParser]) -> list[tuple[str, ...]]:
    helps = dict(_helps(command_parser()))
    return [(f"[`{name}`](#{_anchor(name)})", helps[name]) for name in parsers]


def _helps(parser: argparse.ArgumentParser, prefix: str = "") -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield f"{prefix}{choice.dest}", str(choice.help)
            for name, inner in action.choices.items():
                yield from _helps(inner, f"{prefix}{name} ")


def _command(name: str, parser: argparse.ArgumentParser) -> list[str]:
    own = [row for row in _options(parser) if row[0].split()[0].strip("`") not in _SHARED]
    about = str(parser.description or _sentence(dict(_helps(command_parser()))[name]))
    lines = [_escaped(about)]
    if own:
        lines += ["", *_table(("argument", "meaning"), own)]
    sections = STAGES[name].sections if name in STAGES else ()
    if sections:
        links = [f"[`{section}`](configuration.md#{section})" for section in sections]
        lines += ["", f"Sections of the configuration that decide its result: {', '.join(links)}."]
    return [*lines, "", "```sh", *examples_of(name), "```"]


def _options(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    rows = []
    for action in parser._actions:
        if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
            continue
        names = action.option_strings[:1] or [str(action.metavar or action.dest)]
        value = "" if action.nargs == 0 or not action.option_strings else _value_of(action)
        text = str(action.help or "").replace("%(default)s", str(action.default))
        if action.choices and action.default is not None and "default" not in text:
            text = f"{text} (default: {action.default})".strip()
        rows.append((f"`{names[0]}{value}`", text))
    return rows


def _value_of(action: argparse.Action) -> str:
    if action.choices:
        return f" {'|'.join(map(str, action.choices))}"
    repeated = " …" if action.nargs == "+" else ""
    return f" {action.metavar or action.dest.upper()}{repeated}"


def configuration() -> str:
    """Return the page of every key, from the schema of the configuration."""
    lines = [
        "A configuration is YAML. A key that no file and no `--set` names has the default shown",
        "here. `--set section.key=value` changes one key; `spark-rank config` prints all keys with",
        "the values in force. An unknown key, a wrong type and a value out of range are refused.",
        "",
        "## Top level",
        "",
        *_keys(describe(Config, sections=("",))),
    ]
    for entry in dataclasses.fields(Config):
        kind = typing.get_type_hints(Config)[entry.name]
        if dataclasses.is_dataclass(kind):
            doc = entry.metadata["doc"]
            lines += ["", f"## {entry.name}", "", f"{_sentence(doc)}", ""]
            keys = describe(Config, (entry.name,))
            lines += _keys(keys)
            for key in keys:
                lines += _entry_keys(key)
    return _page("Configuration", [*lines, *_experiment_settings()])


def _keys(keys: Iterable[Key]) -> list[str]:
    shown = [
        (f"`{key.name}`", key.doc, _allowed(key), f"`{key.default}`" if key.default else "")
        for key in keys
    ]
    return _table(("key", "meaning", "type", "default"), shown)


def _entry_keys(key: Key) -> list[str]:
    """Return the keys of one entry of a list, if its entries have keys."""
    if key.entry is None:
        return []
    keys = describe(key.entry, sections=("",))
    return ["", f"### An entry of {key.name}", "", *_keys(keys)]


def _experiment_settings() -> list[str]:
    lines = ["", "## Settings of the experiments", "", "`experiment.settings`, by experiment."]
    for name, experiment in EXPERIMENTS.items():
        rows = describe(experiment.settings, sections=("",))
        lines += ["", f"### {name}", "", _sentence(experiment.title), ""]
        lines += _keys(rows)
    return lines


def _allowed(key: Key) -> str:
    if key.choices:
        words = ", ".join(f"`{word}`" for word in key.choices)
        return f"{words} or null" if key.optional else words
    return ", ".join(part for part in (key.kind, key.bounds) if part)


def tables() -> str:
    """Return the page of all tables, from their contracts."""
    lines = [
        "A table is a folder of Parquet files, `<store>/runs/run_id=<id>/<table>/`. Read a table",
        "only if a record in `manifest/` lists it. User and item ids are those of the input. The",
        f"last column of every table is `{VERSION_COLUMN}`, the version of the table's columns; in",
        "`blocks` and `recommendations` the partition column `bucket` follows it. Each column",
        "carries its meaning as a comment. [Read the tables](../guide/read-tables.md) shows how to",
        "use them without this package.",
        "",
        *_table(
            ("table", "contents"),
            ((f"[`{name}`](#{name})", _contents(contract)) for name, contract in TABLES.items()),
        ),
    ]
    for name, contract in TABLES.items():
        about = f"{_sentence(contract.doc)} Version {contract.version}."
        lines += ["", f"## {name}", "", about, "", *_columns(contract)]
    return _page("Tables", lines)


def _contents(contract: Contract) -> str:
    measured = _measured(contract)
    if measured is not None:
        return f"as `{measured}`, from all ratings"
    text = re.sub(r"^(of the stage|with) `\w+`: ", "", contract.doc)
    return re.split(r"(?<!sequence)[:;] ", text)[0]


def _measured(contract: Contract) -> str | None:
    """Return the table of the training part whose columns a table from all ratings has."""
    return next((name for name, own in FINAL_TABLES.items() if own == contract), None)


def _columns(contract: Contract) -> list[str]:
    columns, note = contract.columns, []
    measured = _measured(contract)
    if measured is not None:
        return [f"The columns are those of [`{measured}`](#{measured})."]
    if contract == ENSEMBLE_MODELS:
        columns = columns[len(MODELS.columns) :]
        note = [f"The columns of [`{MODELS.table}`](#{MODELS.table}), then:", ""]
    rows = ((f"`{each.name}`", each.type, each.doc) for each in columns)
    return [*note, *_table(("column", "type", "meaning"), rows)]


def metric_page() -> str:
    """Return the page of all metrics, from the columns of the table `metrics`."""
    rows = [
        (f"`{each.name}`", each.doc, "higher" if each.name in HIGHER_IS_BETTER else "lower",
         _function_of(each.name))
        for each in METRIC_COLUMNS
    ]  # fmt: skip
    return _page(
        "Metrics",
        [
            "Every metric compares one user's scores with that user's held-out ratings. It is",
            "computed exactly, in O(m log m) for m items, and it is null where it is undefined.",
            "[Evaluate](../guide/evaluate.md) says which one to look at, and what intervals mean.",
            "",
            *_table(("column", "meaning", "better", "in `spark_rank.metrics`"), rows),
        ],
    )


def _function_of(column: str) -> str:
    name = _FUNCTIONS.get(column, column)
    if hasattr(metrics, name):
        return f"`{name}`"
    return f'`pair_cost(…, "{column[:-1]}", n={column[-1]})`'


def learners() -> str:
    """Return the page of all learners and their hyper-parameters, from the registry."""
    lines = [
        "A learner gets one user's items as rows of features, and that user's ratings. `train`",
        "learns every learner of `train.learners` by its name; in Python, each one is a class of",
        "`spark_rank.learners`. [Choose learners](../guide/learners.md) compares them, and",
        "[Add a learner](../design/add-a-learner.md) shows how to write one.",
        "",
        *_table(
            ("name", "class", "learns from", "a score is"),
            (_learner_row(name, each) for name, each in {**REGISTRY, **BASELINES}.items()),
        ),
    ]
    for name, learner in {**REGISTRY, **BASELINES}.items():
        lines += ["", f"## {name}", "", *about(learner)]
        if learner.parameters:
            lines += ["", *_parameters(learner)]
    return _page("Learners", lines)


def _learner_row(name: str, learner: type[Learner]) -> tuple[str, ...]:
    source = "ranks" if learner.of_ranks else "ratings"
    return f"[`{name}`](#{name})", f"`{learner.__name__}`", source, kind_of(learner)


def _parameters(learner: type[Learner]) -> list[str]:
    rows = [
        (f"`{name}`", doc, allowed, f"`{default}`" if default else "")
        for name, default, allowed, doc in parameter_rows(learner)
    ]
    return _table(("parameter", "meaning", "allowed", "default"), rows)


def formats() -> str:
    """Return the page of all input formats, from their registry."""
    rows = [
        (f"`{name}`", f"`{known.example}`", known.encoding, _levels(known))
        for name, known in FORMATS.items()
    ]
    return _page(
        "Input formats",
        [
            "The format is recognised from the first lines of the files; `input.format` names it",
            "where you want to be sure. [Use your own ratings](../guide/own-ratings.md) says what",
            "each format needs.",
            "",
            *_table(("`input.format`", "example", "text", "ratings"), rows),
        ],
    )


def _levels(known: Any) -> str:
    if known.levels:
        low, high, step = known.levels[0], known.levels[-1], known.levels[1] - known.levels[0]
        return f"{low:g} to {high:g} in steps of {step:g}"
    return "any" if known.low is None else f"any number from {known.low:g} to {known.high:g}"


def exit_codes() -> str:
    """Return the page of exit codes, from the errors that end a command."""
    kinds = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.SparkRankError)
    ]  # fmt: skip
    found: dict[int, list[str]] = {}
    for kind in sorted(kinds, key=lambda each: each.__name__):
        if kind not in (errors.SparkRankError, errors.ExperimentsFailedError):
            text = str(kind.__doc__).splitlines()[0]
            found.setdefault(kind.exit_code, []).append(f"{text} (`{kind.__name__}`)")
    rows = [("0", "Done; or there was nothing left to do.")]
    rows += [(str(code), " ".join(found[code])) for code in sorted(found)]
    rows.append((str(INTERRUPTED), "Interrupted with Ctrl-C."))
    return _page(
        "Exit codes",
        [
            "An error is one line on stderr that says what to do. Anything that has no code of its",
            "own ends with 1. A second attempt helps only after 1 and 130.",
            "",
            *_table(("code", "meaning"), rows),
        ],
    )


def _page(title: str, lines: Sequence[str]) -> str:
    note = "<!-- Made by docs/generate.py: change the code, then run `make docs-reference`. -->"
    return "\n".join([f"# {title}", "", note, "", *lines]) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [_row(head), f"|{'---|' * len(head)}"]
    return [*lines, *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(cell: str) -> str:
    """Return text that stays in its cell; what is code keeps its signs."""
    parts = re.split(r"(`[^`]*`)", re.sub(r"(?<!\\)\|", r"\\|", cell))
    return "".join(part if part[:1] == "`" else part.replace("<", "&lt;") for part in parts)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "configuration.md": configuration,
    "tables.md": tables,
    "metrics.md": metric_page,
    "learners.md": learners,
    "formats.md": formats,
    "exit-codes.md": exit_codes,
}


if __name__ == "__main__":
    main()
