"""Experiments in a report: our figures beside the published ones, curves, claims, deviations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.frame import Curve, Experiment
from spark_rank.records.results import ExperimentFacts
from spark_rank.report.bands import Band, bands_svg
from spark_rank.report.ellipses import ellipses
from spark_rank.report.experiment_facts import data_table, steps_table
from spark_rank.report.experiment_tables import (
    chosen_table,
    claims_table,
    figures_table,
    is_better,
    single_metrics,
    timing_parts,
)
from spark_rank.report.numbers import shown
from spark_rank.report.page import (
    Cell,
    Heading,
    Notes,
    Part,
    Plot,
    Preformatted,
    Section,
    Table,
    render,
)
from spark_rank.report.spreads import Spread, spread_plot
from spark_rank.wording import count_of

Rows = Sequence[Mapping[str, Any]]
# the pictures of an experiment beside its tables and curves, drawn from its results
PICTURES: dict[str, Callable[[Rows], Sequence[Plot]]] = {"prank_ellipses": ellipses}


@dataclass(frozen=True)
class Outcome:
    """The outcome of an experiment: the record of its stage with its facts, and its tables.

    `results` may be empty if no picture is drawn from them; `spreads` are those over test users;
    `failure` is the reason if the experiment failed.
    """

    record: Mapping[str, Any]
    facts: ExperimentFacts
    results: Rows
    summary: Rows
    claims: Rows
    spreads: Sequence[Spread] = ()
    failure: str | None = None

    @property
    def experiment(self) -> Experiment:
        """Return the definition of the experiment."""
        return EXPERIMENTS[self.record["settings"]["name"]]

    @property
    def skipped(self) -> bool:
        """Tell whether the experiment was skipped because its data is missing."""
        return self.facts.skipped

    @property
    def nothing_because(self) -> str | None:
        """Return why there are no results; None if there are some."""
        if self.failure is not None:
            return f"failed: {self.failure}"
        if self.skipped:
            return f"skipped: missing {'; '.join(self.facts.missing)}"
        return None


def failed_outcome(experiment: str, failure: str) -> Outcome:
    """Return the outcome of an experiment that failed with this message."""
    record = {"settings": {"name": experiment}}
    facts = ExperimentFacts(units=0, data={}, missing=())
    return Outcome(record, facts, [], [], [], failure=failure)


def experiment_page(run_id: str, outcome: Outcome) -> str:
    """Return the page of one experiment."""
    subtitle = outcome.experiment.source
    return render(f"spark_rank experiment {run_id}", subtitle, [
        experiment_section(outcome),
        Section("How it was run", [
            _facts(outcome),
            steps_table({run_id: _time(outcome)}),
            Preformatted(_settings(outcome)),
        ]),
    ])  # fmt: skip


def reproduction_page(outcomes: Mapping[str, Outcome]) -> str:
    """Return one page about several experiments, by their run ids."""
    with_results = [outcome for outcome in outcomes.values() if outcome.nothing_because is None]
    total = count_of(len(outcomes), "experiment")
    subtitle = f"{len(with_results)} of {total}; each of them needs its data set"
    not_failed = {run_id: one for run_id, one in outcomes.items() if one.failure is None}
    settings = {run_id: outcome.record["settings"] for run_id, outcome in not_failed.items()}
    records = {run_id: outcome.record for run_id, outcome in not_failed.items()}
    return render("The papers' experiments", subtitle, [
        overview_section(outcomes),
        *[experiment_section(outcome) for outcome in outcomes.values()],
        _how_they_were_run(not_failed),
        Section("Settings", [Preformatted(_as_yaml(settings))]),
        Section("Versions", [Preformatted(_as_yaml(_versions(records)))]),
    ])  # fmt: skip


def experiment_section(outcome: Outcome) -> Section:
    """Return the section on an experiment: its data, results, choices and deviations."""
    experiment = outcome.experiment
    parts: list[Part] = [experiment.about, *_data(outcome)]
    if outcome.nothing_because is not None:
        skipped = outcome.failure is None
        words = "It was skipped." if skipped else f"It {outcome.nothing_because}"
        return Section(experiment.title, [*parts, words])
    parts += [*_verdict(outcome), *_findings(outcome), *_choices(outcome)]
    if experiment.explanations:
        parts.append(Notes("Explanations", experiment.explanations))
    if experiment.deviations:
        parts.append(Notes("Deviations from the publication", experiment.deviations))
    return Section(experiment.title, parts)


def _data(outcome: Outcome) -> list[Part]:
    """Return the data sets that were read, and those that are missing."""
    facts = outcome.facts
    parts: list[Part] = [f"Missing data: {missing}." for missing in facts.missing]
    if facts.profiles:
        parts.append(data_table(facts.profiles))
    elif facts.data:
        parts.append(f"Data: {', '.join(sorted(set(facts.data.values())))}.")
    return parts


def _findings(outcome: Outcome) -> list[Part]:
    """Return figures beside the published ones, curves, pictures and statements."""
    experiment, parts = outcome.experiment, list[Part]()
    for metric in single_metrics(experiment, outcome.summary):
        parts += [Heading(metric), figures_table(experiment, outcome.summary, metric)]
        if spreads := [one for one in outcome.spreads if one.metric == metric]:
            parts.append(spread_plot(metric, spreads))
    for curve in experiment.curves:
        parts += [*_curves(outcome, curve), *_undefined(outcome, curve)]
    if experiment.name in PICTURES:
        parts += PICTURES[experiment.name](outcome.results)
    if outcome.claims:
        parts += [Heading("Tested statements"), claims_table(outcome.claims)]
    return parts


def _choices(outcome: Outcome) -> list[Part]:
    """Return the measured times, and the settings that the pilot chose."""
    parts = timing_parts(outcome.facts.timings)
    if outcome.facts.chosen:
        parts += [Heading("Settings chosen on other users"), chosen_table(outcome.facts.chosen)]
    return parts


def overview_section(outcomes: Mapping[str, Outcome]) -> Section:
    """Return a row per experiment: whether it ran, and how it compares with its publication."""
    body = [[Cell(run_id), *_overview(outcome)] for run_id, outcome in outcomes.items()]
    header = [
        "experiment",
        "source",
        "units",
        "figures as published or better",
        "statements that hold",
    ]
    return Section("Summary", [Table(header, body)])


def _overview(outcome: Outcome) -> list[Cell]:
    experiment = outcome.experiment
    if outcome.nothing_because is not None:
        reason = Cell(outcome.nothing_because, left=True, worse=outcome.failure is not None)
        return [Cell(experiment.source, left=True), reason, Cell("–"), Cell("–")]
    good, published = _figures_reached(outcome)
    return [
        Cell(experiment.source, left=True),
        Cell(f"{outcome.facts.units:,}"),
        Cell(f"{good} of {published}" if published else "–"),
        Cell(_statements_that_hold(outcome) or "–"),
    ]


def _verdict(outcome: Outcome) -> list[Part]:
    """Return the results of the experiment in one sentence."""
    (good, published), held = (
        _figures_reached(outcome),
        _statements_that_hold(outcome, " statements hold"),
    )
    words = []
    if published:
        words.append(f"{good} of {published} published figures are reached or bettered")
    if held:
        words.append(held)
    return [f"In short: {'; '.join(words)}."] if words else []


def _figures_reached(outcome: Outcome) -> tuple[int, int]:
    rows = [row for row in outcome.summary if row["differs"] is not None]
    good = sum(not row["differs"] or is_better(outcome.experiment, row) for row in rows)
    return good, len(rows)


def _statements_that_hold(outcome: Outcome, noun: str = "") -> str:
    """Return how many statements hold and how many are undecided; empty if there are none."""
    verdicts = [row["holds"] for row in outcome.claims]
    if not verdicts:
        return ""
    undecided = verdicts.count(None)
    words = f"{verdicts.count(True)} of {len(verdicts)}{noun}"
    return f"{words}, {undecided} undecided" if undecided else words


def _curves(outcome: Outcome, curve: Curve) -> list[Plot]:
    rows = [
        row for row in outcome.summary if row["metric"] == curve.metric and row["x"] is not None
    ]
    parts = list(dict.fromkeys(row["part"] for row in rows))
    methods = curve.methods or list(dict.fromkeys(row["method"] for row in rows))
    rows = [row for row in rows if row["x"] >= curve.x_from]
    plots = []
    for part in curve.parts or parts:
        bands = [
            band
            for position, method in enumerate(methods)
            if (band := _band(rows, part, method, position)) is not None
        ]
        if not bands:
            continue
        title = curve.title if len(parts) == 1 else f"{curve.title}: {part}"
        svg = bands_svg(
            title,
            curve.x_axis,
            curve.y_axis,
            bands,
            log_x=curve.log_x,
            log_y=curve.log_y,
            y_limits=curve.y_limits,
        )
        ends = ", ".join(f"{band.label} {shown(band.y[-1])}" for band in bands)
        alt = f"{title}, {curve.y_axis} by {curve.x_axis}, with 95 % bands; at the end: {ends}."
        plots.append(Plot(svg, alt))
    return plots


def _undefined(outcome: Outcome, curve: Curve) -> list[Part]:
    """Return a sentence on the methods of a curve that failed, such as by too large a step."""
    failed = [
        f"{row['method']} in {row['undefined']:,} of {row['undefined'] + row['n']:,}"
        for row in outcome.summary
        if row["metric"] == curve.metric and row["x"] is not None and row["undefined"]
        if not curve.methods or row["method"] in curve.methods
    ]
    return [f"{curve.title}: undefined for {' and for '.join(failed)}."] if failed else []


def _band(rows: Rows, part: str, method: str, position: int) -> Band | None:
    points = sorted(
        (row for row in rows
         if row["part"] == part and row["method"] == method and row["mean"] is not None),
        key=lambda row: float(row["x"]),
    )  # fmt: skip
    if not points:
        return None
    ends = [
        [row["mean"] if row[end] is None else row[end] for row in points]
        for end in ("ci_low", "ci_high")
    ]
    x, y = [row["x"] for row in points], [row["mean"] for row in points]
    return Band(method, position, x, y, *ends)


def _facts(outcome: Outcome) -> str:
    record = outcome.record
    return (
        f"{count_of(outcome.facts.units, 'unit')} of work in {record['seconds']:.1f} s on "
        f"{count_of(int(record['spark']['parallelism']), 'core')}, seed {record['seed']}."
    )


def _settings(outcome: Outcome) -> str:
    return _as_yaml({**outcome.record["settings"], "versions": outcome.record["versions"]})


def _how_they_were_run(outcomes: Mapping[str, Outcome]) -> Section:
    body = [
        [
            Cell(run_id),
            Cell(f"{outcome.facts.units:,}"),
            Cell(f"{outcome.record['seconds']:.1f}"),
            Cell(outcome.record["spark"]["parallelism"]),
            Cell(str(outcome.record["seed"])),
            Cell(str(outcome.record["started"])),
        ]
        for run_id, outcome in outcomes.items()
    ]
    header = ["experiment", "units of work", "seconds", "cores", "seed", "started"]
    times = {run_id: _time(outcome) for run_id, outcome in outcomes.items()}
    return Section("How they were run", [Table(header, body), steps_table(times)])


def _time(outcome: Outcome) -> tuple[float, Mapping[str, float]]:
    return outcome.record["seconds"], outcome.facts.seconds_by_step


def _versions(records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the versions once if all runs have the same ones, else by run."""
    by_run = {run_id: record["versions"] for run_id, record in records.items()}
    first: Mapping[str, Any] = next(iter(by_run.values()), {})
    return dict(first) if all(versions == first for versions in by_run.values()) else by_run


def _as_yaml(tree: Mapping[str, Any]) -> str:
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
