"""Describes an experiment: its settings, data, units of work and published figures.

A unit is one trial (a repeat, a test user, a judge …): a small tuple of whole numbers, computed
from the study. The results of a unit depend only on the study and the unit, so units run anywhere
and in any order.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spark_rank.config.schema import FormatName
from spark_rank.experiments.rating_set import RatingSet
from spark_rank.records.results import Timing

Unit = tuple[int, ...]


@dataclass(frozen=True)
class RatingFile:
    """A data set on disk: its name, and the paths in the data folder where it may be."""

    name: str
    paths: tuple[str, ...]
    format: FormatName


@dataclass(frozen=True)
class Need:
    """Ratings that an experiment needs: the first of `choices` that exists.

    An experiment runs with the data sets that exist, and is skipped if none does.
    """

    name: str
    choices: tuple[RatingFile, ...]

    @property
    def files(self) -> str:
        """Return the files that can meet the need, as text."""
        return " or ".join(f"{file.paths[0]} ({file.name})" for file in self.choices)


@dataclass(frozen=True)
class Study:
    """An experiment with its settings, the run's seed, and the ratings by the names of the needs.

    `chosen` are the parameters that the pilot has chosen; empty before, or without a pilot.
    """

    experiment: str
    settings: Any
    seed: int
    data: Mapping[str, RatingSet] = field(default_factory=dict)
    chosen: Mapping[str, Any] = field(default_factory=dict)

    def generator(self, *keys: int | str) -> np.random.Generator:
        """Return the generator of a draw, which depends only on seed, experiment and keys."""
        text = json.dumps([self.seed, self.experiment, *keys])
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


@dataclass(frozen=True)
class Result:
    """One number of one unit.

    Attributes
    ----------
    method, metric : the method that was measured, and the metric.
    value : None where it is undefined; `detail` then says why.
    part : the part of the experiment, such as a data set or a group of users.
    x : position on a curve; None for a single number.
    repeat, target : the repeat, and the test user by id, if any.
    """

    method: str
    metric: str
    value: float | None
    part: str = "all"
    x: float | None = None
    repeat: int = 0
    target: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Published:
    """A published figure; `reach` is half the width of its interval, None without an interval.

    `again` marks a figure of another method that is also shown here; it counts only there.
    """

    method: str
    metric: str
    value: float
    reach: float | None = None
    part: str = "all"
    x: float | None = None
    source: str = ""
    again: bool = False


@dataclass(frozen=True)
class Claim:
    """A statement on two methods: `lower` has less of `metric` than `higher`, on the same units.

    `text` is the statement as the report shows it; `source` says who made it.
    """

    text: str
    metric: str
    lower: str
    higher: str
    part: str = "all"
    x: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Curve:
    """A plot for the report: a metric over x, one line per method and one plot per part.

    It shows those of `methods` (empty: all) that have results, from `x_from` on.
    """

    metric: str
    title: str
    x_axis: str
    y_axis: str
    log_x: bool = False
    log_y: bool = False
    parts: tuple[str, ...] = ()  # empty: all
    y_limits: tuple[float, float] | None = None
    methods: tuple[str, ...] = ()
    x_from: float = -math.inf


@dataclass(frozen=True)
class Pilot:
    """Units that run first, to choose parameters on users who are not tested.

    Attributes
    ----------
    units, run_unit : as for the experiment itself.
    choose : returns the chosen parameters, as JSON values, from the results in the order of the
        units. The study of the experiment's units has them as `chosen`; the report shows them.
    """

    units: Callable[[Study], Sequence[Unit]]
    run_unit: Callable[[Study, Unit], Sequence[Result]]
    choose: Callable[[Study, Sequence[Result]], Mapping[str, Any]]


@dataclass(frozen=True)
class Experiment:
    """One of the papers' experiments, or of ours.

    Attributes
    ----------
    name : as in ``conf/paper/<name>.yaml``.
    title, source, about : for the report: heading, publication, description.
    settings : a frozen dataclass declared with `config.schema.setting`.
    units : returns the independent units of a study.
    run_unit : returns the results of one unit; module-level, NumPy only.
    needs : returns the data sets for the settings.
    published : returns the papers' figures for the settings.
    claims : returns the papers' statements on which method is better, for the settings.
    curves : plots of the report.
    deviations : how this differs from the publication, sentence by sentence.
    explanations : sentences on results that differ from the publication, and what was checked.
    pilot : units that run first, to choose parameters.
    timings : returns times that are measured on the driver, after the units.
    average : ``unit`` takes mean and interval over units; ``repeat`` over the means of repeats;
        ``target`` over the means of test users.
    higher_is_better : the metrics of which more is better; of all others less is better.
    exact : the metrics that should equal the published figure: neither more nor less is better.
    """

    name: str
    title: str
    source: str
    about: str
    settings: type
    units: Callable[[Study], Sequence[Unit]]
    run_unit: Callable[[Study, Unit], Sequence[Result]]
    needs: Callable[[Any], Sequence[Need]] = lambda settings: ()
    published: Callable[[Any], Sequence[Published]] = lambda settings: ()
    claims: Callable[[Any], Sequence[Claim]] = lambda settings: ()
    curves: Sequence[Curve] = ()
    deviations: Sequence[str] = ()
    explanations: Sequence[str] = ()
    pilot: Pilot | None = None
    timings: Callable[[Study], Sequence[Timing]] | None = None
    average: str = "unit"
    higher_is_better: frozenset[str] = frozenset()
    exact: frozenset[str] = frozenset()
