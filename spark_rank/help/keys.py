"""What a key of the configuration means: for a page of help, and for ``config --explain``."""

from __future__ import annotations

import dataclasses
import difflib
import shlex
from collections.abc import Iterable, Sequence

from spark_rank.config import Config
from spark_rank.config.describing import Key, describe
from spark_rank.errors import ConfigError
from spark_rank.help.commands import STAGES, commands_that_read
from spark_rank.help.layout import columns, cut, paragraph
from spark_rank.visible import visible

SECTIONS = {
    entry.name: entry.metadata["doc"]
    for entry in dataclasses.fields(Config)
    if dataclasses.is_dataclass(entry.default)
}
_SETTINGS = "experiment.settings"
_LONGEST_DEFAULT = 20
# the page that tells more of what these hold
_MORE = {
    "train.learners": "spark-rank learners",
    "train.learners.learner": "spark-rank learners",
    "train.learners.params": "spark-rank learners NAME",
    "train.learners.grid": "spark-rank learners NAME",
    "input.format": "spark-rank formats",
}
# what makes no sense, or nothing, without another key
_SEQUENCE = "ensemble.sequence=examples.parquet"
_TOGETHER = {
    "ensemble.trials": _SEQUENCE,
    "train.weights": "features.propensities=fitted",
    "ensemble.learners.kernel": _SEQUENCE,
    _SETTINGS: "experiment.name=prank_synthetic",
}


def keys_of(names: Iterable[str]) -> list[Key]:
    """Return the keys of these names and sections, in the configuration's order.

    Of a key that is named by itself, the keys of its entries are left out.
    """
    wanted = set(names)
    return [
        key for key in _all_keys().values()
        if key.name in wanted or key.name.partition(".")[0] in wanted & SECTIONS.keys()
    ]  # fmt: skip


def key_lines(keys: Sequence[Key], *, whole: bool = False) -> list[str]:
    """Return a line for every key: its name, its default, and its meaning, or how that begins."""
    rows = [(key.name, cut(key.default, _LONGEST_DEFAULT), key.doc) for key in keys]
    return columns(rows, whole=whole)


def section_lines(names: Iterable[str]) -> list[str]:
    """Return a line for every section among the names."""
    rows = [(name, SECTIONS[name]) for name in names if name in SECTIONS]
    return columns(rows) if rows else []


def stages_that_read(name: str) -> list[str]:
    """Return the stages that read a key; the pipeline only where no stage of it does.

    A key that no stage reads is read by commands without a stage.
    """
    readers = [stage for stage, page in STAGES.items() if page.reads(name)]
    stages = [stage for stage in readers if stage != "pipeline"]
    return stages or readers or commands_that_read(name)


def explained(name: str) -> str:
    """Return all there is to know of a key, or the keys of a section."""
    if name in SECTIONS:
        lines = [
            f"{name}: {SECTIONS[name]}",
            "",
            *key_lines(keys_of([name]), whole=True),
            "",
            _FURTHER,
        ]
        return "\n".join(lines)
    known = {**_all_keys(), **_experiment_keys()} if name.startswith(_SETTINGS) else _all_keys()
    below = [key for own, key in known.items() if own.startswith(f"{name}.")]
    if name not in known and not below:
        raise ConfigError(f"--explain: no key {visible(name, 60)!r} ({_nearest(name)})")
    lines = _key_page(known[name]) if name in known else [_experiment_title(name)]
    if name == _SETTINGS:
        lines += ["", "by experiment:", *_experiments()]
    elif below:
        short = [dataclasses.replace(key, name=key.name.removeprefix(f"{name}.")) for key in below]
        lines += ["", "its keys:", *key_lines(short, whole=True)]
    return "\n".join(lines)


_FURTHER = "spark-rank config --explain KEY says more of each"


def _key_page(key: Key) -> list[str]:
    rows = [("type", key.kind), ("default", key.default or '""'), ("allowed", _allowed(key))]
    readers = stages_that_read(key.name)
    rows.append(("read by", "every stage" if len(readers) == len(STAGES) - 1 else
                 ", ".join(readers)))  # fmt: skip
    rows += [("see", _MORE[key.name])] if key.name in _MORE else []
    facts = [f"  {label:<8}  {text}" for label, text in rows]
    return [key.name, paragraph(key.doc, "  "), "", *facts, f"  example   {example_of(key)}"]


def _allowed(key: Key) -> str:
    if key.choices:
        return ", ".join([*key.choices, *(["null"] if key.optional else [])])
    return key.bounds or f"any {key.kind}"


def example_of(key: Key) -> str:
    """Return arguments that set the key."""
    place, _, last = key.name.rpartition(".")
    words = [f"{key.name}={key.example}"]
    if key.name.startswith(f"{_SETTINGS}."):
        place, _, experiment = place.rpartition(".")
        words = [f"{place}.{last}={key.example}", f"experiment.name={experiment}"]
    elif key.name.count(".") > 1:
        words = [f"{place}=[{{{last}: {key.example}}}]"]
    words += [_TOGETHER[key.name]] if key.name in _TOGETHER else []
    return f"--set {shlex.join(words)}"


def _all_keys() -> dict[str, Key]:
    """Return every key by its name, those of the entries of lists too."""
    found = {}
    for key in describe(Config, ("", *SECTIONS)):
        found[key.name] = key
        if key.entry is not None:
            inner = describe(key.entry, ("",))
            named = [dataclasses.replace(own, name=f"{key.name}.{own.name}") for own in inner]
            found |= {own.name: own for own in named}
    return found


def _experiment_keys() -> dict[str, Key]:
    from spark_rank.experiments import EXPERIMENTS

    found = {}
    for name, experiment in EXPERIMENTS.items():
        for key in describe(experiment.settings, ("",)):
            dotted = f"{_SETTINGS}.{name}.{key.name}"
            found[dotted] = dataclasses.replace(key, name=dotted)
    return found


def _experiments() -> list[str]:
    from spark_rank.experiments import EXPERIMENTS

    rows = [(f"{_SETTINGS}.{name}", each.title) for name, each in EXPERIMENTS.items()]
    return [*columns(rows), "", f"spark-rank config --explain {_SETTINGS}.NAME lists its settings"]


def _experiment_title(name: str) -> str:
    from spark_rank.experiments import EXPERIMENTS

    return f"{name}: {EXPERIMENTS[name.removeprefix(f'{_SETTINGS}.')].title}"


def _nearest(name: str) -> str:
    """Return the key that was meant: its last word in any section, or one that looks alike."""
    known = [*_all_keys(), *SECTIONS]
    last = {key.rpartition(".")[2]: key for key in reversed(known)}
    word = name.lower().rpartition(".")[2]
    close = difflib.get_close_matches(name.lower(), known, 1, 0.7)
    words = difflib.get_close_matches(word, last, 1, 0.7)
    found = last.get(word) or next(iter(close), None) or next((last[each] for each in words), None)
    return f"did you mean {found!r}?" if found else f"sections: {', '.join(SECTIONS)}"
