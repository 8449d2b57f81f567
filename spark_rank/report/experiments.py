"""Experiments in a report: our figures beside the published ones, curves, claims, deviations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.frame import Curve, Experiment
from spark_rank.report.bands import Band, bands_svg
from spark_rank.report.ellipses import ellipses
from spark_rank.report.experiment_tables import (
    chosen_table,
    claims_table,
    figures_table,
    is_better,
    number,
    single_metrics,
    timing_parts,
)
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

Rows = Sequence[Mapping[str, Any]]
# what an experiment shows beside tables and curves, from its table of results
PICTURES: dict[str, Callable[[Rows], Sequence[Plot]]] = {"prank_ellipses": ellipses}


@dataclass(frozen=True)
class Outcome:
    """What an experiment left: the record of its stage and its tables.

    `results` may be empty where no picture is drawn from them.
    """

    record: Mapping[str, Any]
    results: Rows
    summary: Rows
    claims: Rows

    @property
    def experiment(self) -> Experiment:
        """Return its definition."""
        return EXPERIMENTS[self.record["settings"]["name"]]

    @property
    def skipped(self) -> bool:
        """Tell whether its data was missing."""
        return bool(self.record["facts"].get("skipped"))


def experiment_page(run_id: str, outcome: Outcome) -> str:
    """Return the page of one experiment."""
    subtitle = outcome.experiment.source
    return render(f"spark_rank experiment {run_id}", subtitle, [
        experiment_section(outcome),
        Section("How it was run", [_facts(outcome), Preformatted(_settings(outcome))]),
    ])  # fmt: skip


def reproduction_page(outcomes: Mapping[str, Outcome]) -> str:
    """Return one page about several experiments, by their run ids."""
    done = [outcome for outcome in outcomes.values() if not outcome.skipped]
    subtitle = f"{len(done)} of {len(outcomes)} experiments; the data decides which can be run"
    settings = {run_id: outcome.record["settings"] for run_id, outcome in outcomes.items()}
    return render("The papers' experiments", subtitle, [
        overview_section(outcomes),
        *[experiment_section(outcome) for outcome in outcomes.values()],
        _how_they_were_run(outcomes),
        Section("Settings", [Preformatted(_as_yaml(settings))]),
    ])  # fmt: skip


def experiment_section(outcome: Outcome) -> Section:
    """Return all that there is to say of an experiment's findings."""
    experiment, facts = outcome.experiment, outcome.record["facts"]
    parts: list[Part] = [experiment.about]
    if facts["data"]:
        parts.append(f"Data: {', '.join(sorted(set(facts['data'].values())))}.")
    parts += [f"Missing data: {missing}." for missing in facts["missing"]]
    if outcome.skipped:
        return Section(experiment.title, [*parts, "So it was skipped."])
    parts += _verdict(outcome)
    for metric in single_metrics(experiment, outcome.summary):
        parts += [Heading(metric), figures_table(experiment, outcome.summary, metric)]
    parts += [plot for curve in experiment.curves for plot in _curves(outcome, curve)]
    if experiment.name in PICTURES:
        parts += PICTURES[experiment.name](outcome.results)
    if outcome.claims:
        parts += [Heading("Statements, tested"), claims_table(outcome.claims)]
    parts += timing_parts(facts.get("timings", ()))
    if facts.get("chosen"):
        parts += [Heading("Chosen on other users"), chosen_table(facts["chosen"])]
    if experiment.explanations:
        parts.append(Notes("Explanations", experiment.explanations))
    if experiment.deviations:
        parts.append(Notes("Deviations from the publication", experiment.deviations))
    return Section(experiment.title, parts)


def overview_section(outcomes: Mapping[str, Outcome]) -> Section:
    """Return a row per experiment: whether it ran, and how it compares with its publication."""
    body = [[Cell(run_id), *_overview(outcome)] for run_id, outcome in outcomes.items()]
    header = ["experiment", "source", "units", "figures as published or better", "claims that hold"]
    return Section("Summary", [Table(header, body)])


def _overview(outcome: Outcome) -> list[Cell]:
    experiment = outcome.experiment
    if outcome.skipped:
        words = f"skipped: missing {'; '.join(outcome.record['facts']['missing'])}"
        return [Cell(experiment.source, left=True), Cell(words, left=True), Cell("–"), Cell("–")]
    good, published = _reached(outcome)
    held, decided = _held(outcome)
    return [
        Cell(experiment.source, left=True),
        Cell(f"{outcome.record['facts']['units']:,}"),
        Cell(f"{good} of {published}" if published else "–"),
        Cell(f"{held} of {decided}" if decided else "–"),
    ]


def _verdict(outcome: Outcome) -> list[Part]:
    """Return in a sentence how the experiment went."""
    (good, published), (held, decided) = _reached(outcome), _held(outcome)
    words = []
    if published:
        words.append(f"{good} of {published} published figures are reached or bettered")
    if decided:
        words.append(f"{held} of {decided} statements that the intervals decide hold")
    return [f"In short: {'; '.join(words)}."] if words else []


def _reached(outcome: Outcome) -> tuple[int, int]:
    rows = [row for row in outcome.summary if row["differs"] is not None]
    good = sum(not row["differs"] or is_better(outcome.experiment, row) for row in rows)
    return good, len(rows)


def _held(outcome: Outcome) -> tuple[int, int]:
    decided = [row for row in outcome.claims if row["holds"] is not None]
    return sum(row["holds"] for row in decided), len(decided)


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
        ends = ", ".join(f"{band.label} {number(band.y[-1])}" for band in bands)
        alt = f"{title}, {curve.y_axis} by {curve.x_axis}, with 95 % bands; at the end: {ends}."
        plots.append(Plot(svg, alt))
    return plots


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
        f"{record['facts']['units']:,} units of work in {record['seconds']:.1f} s on "
        f"{record['spark']['parallelism']} cores, seed {record['seed']}."
    )


def _settings(outcome: Outcome) -> str:
    return _as_yaml({**outcome.record["settings"], "versions": outcome.record["versions"]})


def _how_they_were_run(outcomes: Mapping[str, Outcome]) -> Section:
    body = [
        [
            Cell(run_id),
            Cell(f"{outcome.record['facts']['units']:,}"),
            Cell(f"{outcome.record['seconds']:.1f}"),
            Cell(outcome.record["spark"]["parallelism"]),
            Cell(str(outcome.record["seed"])),
            Cell(str(outcome.record["started"])),
        ]
        for run_id, outcome in outcomes.items()
    ]
    header = ["experiment", "units of work", "seconds", "cores", "seed", "started"]
    return Section("How they were run", [Table(header, body)])


def _as_yaml(tree: Mapping[str, Any]) -> str:
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
