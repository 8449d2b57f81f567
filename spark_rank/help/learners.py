"""The learners that there are, and the parameters of each: ``spark-rank learners``."""

from __future__ import annotations

import inspect

from spark_rank.config.describing import shown_value
from spark_rank.config.values import suggestion
from spark_rank.errors import ConfigError
from spark_rank.help.layout import columns
from spark_rank.learners import BASELINES, REGISTRY, Learner, learner_class, learner_names
from spark_rank.learners.errors import UnknownLearnerError
from spark_rank.visible import visible

# whom the column of costs is about
_RATINGS, _FEATURES = 100, 32
_ENSEMBLE = "oap"
_HEAD = ("parameter", "default", "meaning (allowed)")


def learner_table() -> str:
    """Return a line for every learner: what it learns from, what it costs, what it does."""
    names = [*learner_names(), _ENSEMBLE, *BASELINES]
    lines = columns([("name", "scores are", "ms", "what it does"), *map(_row, names)], whole=True)
    notes = [
        f"ms: about, of one core, for a user with {_RATINGS} ratings and {_FEATURES} features",
        f"{_ENSEMBLE} is learned by the stage `ensemble`; {' and '.join(BASELINES)} are learned "
        "beside every learner",
        "",
        "spark-rank learners NAME shows a learner's parameters",
    ]
    return "\n".join([*lines, "", *notes])


def _row(name: str) -> tuple[str, ...]:
    try:
        found = _class_of(name)
    except ConfigError as error:
        return name, "?", "?", str(error)
    seconds = found.cost({}, _RATINGS, _FEATURES)
    cost = "" if name in (_ENSEMBLE, *BASELINES) else f"{1e3 * seconds:.2g}"
    return name, kind_of(found), cost, about(found)[0].replace("`", "")


def learner_page(name: str) -> str:
    """Return what one learner does, its parameters, and an example."""
    found = _class_of(name)
    lines = [f"{name} ({found.__name__} of {found.__module__}): a score is {kind_of(found)}"]
    lines += ["", *about(found)]
    rows = [(own, default, f"{doc} ({allowed})")
            for own, default, allowed, doc in parameter_rows(found)]  # fmt: skip
    if rows:
        lines += ["", *columns([_HEAD, *rows], whole=True)]
    return "\n".join([*lines, "", _example(name, found)])


def kind_of(learner: type[Learner]) -> str:
    """Say what a learner's score is."""
    if learner.of_ranks:
        return "a rank"
    return "a rating" if learner.on_rating_scale else "a place in an order"


def about(learner: type[Learner]) -> list[str]:
    """Return what the class says of itself, without its parameters and attributes."""
    text = inspect.cleandoc(learner.__doc__ or "(says nothing of itself)")
    return text.split("\n\nParameters\n")[0].replace("``", "`").splitlines()


def parameter_rows(learner: type[Learner]) -> list[tuple[str, str, str, str]]:
    """Return name, default, what is allowed, and meaning of every parameter; "" is no default."""
    arguments = inspect.signature(learner).parameters
    rows = []
    for name, parameter in learner.parameters.items():
        allowed = parameter.describe() + (" or null" if parameter.optional else "")
        default = arguments[name].default
        shown = "" if default is inspect.Parameter.empty else shown_value(default)
        rows.append((name, shown, allowed, parameter.doc))
    return rows


def _class_of(name: str) -> type[Learner]:
    if name == _ENSEMBLE:
        return REGISTRY[name]
    try:
        return learner_class(name)
    except UnknownLearnerError as error:
        known = [*learner_names(), _ENSEMBLE, *BASELINES]
        hint = "" if name in known or ":" in name else f" ({suggestion(name, known)})"
        raise ConfigError(f"{visible(str(error), 300)}{hint}") from None


def _example(name: str, learner: type[Learner]) -> str:
    if name in BASELINES:
        return "learned beside every learner; without: --set train.baselines=false"
    if name == _ENSEMBLE:
        return (
            "example: spark-rank ensemble --set ensemble.learners='[{n_members: 50}]'\n"
            "its keys: spark-rank config --explain ensemble.learners"
        )
    defaults = [(own, default) for own, default, _, _ in parameter_rows(learner)]
    chosen = next((f"{own}: {default}" for own, default in defaults if default), "")
    entry = f"learner: {name}, params: {{{chosen}}}" if chosen else f"learner: {name}"
    entry = entry.replace(name, f'"{name}"') if ":" in name else entry
    return f"example: spark-rank train --set train.learners='[{{{entry}}}]'"
