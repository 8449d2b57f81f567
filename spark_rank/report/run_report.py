"""The report of a pipeline run: accuracy, then other results, then facts about the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from spark_rank.metrics.meaning import Evidence
from spark_rank.records.data import IngestFacts, PrepareFacts
from spark_rank.records.facts import AnyFacts, read_facts
from spark_rank.records.models import Status, TuneFacts
from spark_rank.records.results import AggregateFacts, EvaluateFacts, RankFacts, RecommendFacts
from spark_rank.report import (
    accuracy,
    calibration,
    comparisons,
    data_profile,
    ensembles,
    exposure,
    headline,
    preference,
    recommendations,
    tuning,
)
from spark_rank.report.learner_order import configured_order
from spark_rank.report.page import Cell, Preformatted, Section, Table, render
from spark_rank.report.plots import Histogram
from spark_rank.report.stage_times import stages_section

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class RunReport:
    """The contents of the report, small enough for one machine.

    `tables` has the rows of the run's small tables by name, ``recommendations`` a few users' lists,
    ``liked`` what they rated highest and ``exposures`` the items of all lists; `histograms` has the
    distributions by metric, `records` the manifest, `points` mean ratings by prediction.
    """

    run_id: str
    tables: Mapping[str, Rows]
    histograms: Mapping[str, Sequence[Histogram]]
    records: Mapping[str, Mapping[str, Any]]
    points: Sequence[calibration.CalibrationPoint] = ()

    def html(self) -> str:
        """Return the document."""
        evaluated = self._facts(EvaluateFacts)
        status, top_n = evaluated.status, self.records["evaluate"]["settings"]["top_n"]
        summary = self._in_order("summary")
        evidence = accuracy.evidence_of(summary, status)
        comparison = self.tables["comparison"]
        sections = [
            accuracy.summary_section(summary, status, evaluated.test),
            comparisons.comparison_section(comparison, evidence),
            *self._lists(),
            accuracy.errors_section(summary, status),
            *self._list_metrics(),
            accuracy.groups_section(summary, status),
            accuracy.distribution_section(self.histograms),
            calibration.calibration_section(self._points_with_results(evidence)),
            accuracy.other_metrics_section(summary, status, top_n, evaluated.relevant_from),
            accuracy.roc_section(self.tables["roc"], evidence),
            accuracy.bounds_section(self._in_order("bounds")),
            *self._optional_sections(),
            Section("What became of the users", [self._status_table(status)]),
            data_profile.data_section(
                self.records["ingest"]["tables"]["ratings"],
                self._facts(IngestFacts),
                self._facts(PrepareFacts),
            ),
            stages_section(self.records),
            Section("Settings and versions", [Preformatted(self._settings())]),
        ]
        return render(
            f"spark_rank run {self.run_id}",
            headline.what_ran(self.records),
            sections,
            headline.headline(evidence, comparison),
        )

    def _facts(self, kind: type[AnyFacts]) -> AnyFacts:
        return read_facts(kind, self.records[kind.stage], self.run_id)

    def _in_order(self, table: str) -> Rows:
        """Return a table's rows with the learners in the order of the report."""
        names = {row["learner"] for row in self.tables[table]}
        places = {name: place for place, name in enumerate(configured_order(names, self.records))}
        return sorted(self.tables[table], key=lambda row: places[row["learner"]])

    def _points_with_results(self, evidence: Evidence) -> Sequence[calibration.CalibrationPoint]:
        """Return the points of learners with results, in the order of the report."""
        places = {name: place for place, name in enumerate(evidence.means)}
        points = [p for p in self.points if evidence.nothing_because(p.learner) is None]
        return sorted(points, key=lambda point: places[point.learner])

    def _lists(self) -> list[Section]:
        if "recommendations" not in self.tables:
            return []
        sample, facts = self.tables["recommendations"], self._facts(RecommendFacts)
        liked = self.tables.get("liked", ())
        sections = [recommendations.recommendations_section(sample, facts, liked)]
        if exposures := self.tables.get("exposures"):
            sections.append(exposure.exposure_section(exposures, facts.candidates, facts.users))
        return sections

    def _list_metrics(self) -> list[Section]:
        if "list_metrics" not in self.tables:
            return []
        settings = self.records["evaluate"]["settings"]
        rows = self.tables["list_metrics"]
        return [exposure.list_metrics_section(rows, settings["top_n"], settings["candidates"])]

    def _optional_sections(self) -> list[Section]:
        sections = []
        if "tuning" in self.tables:
            facts, tuned = self._facts(TuneFacts), self._facts(EvaluateFacts).tuned
            sections.append(tuning.tuning_section(self.tables["tuning"], facts, tuned))
        if "ensemble_curve" in self.tables:
            sections.append(
                ensembles.ensembles_section(
                    self.tables["ensemble_curve"],
                    self.tables["ensemble_diversity"],
                    self.tables.get("ensemble_metrics"),
                    self.records["ensemble"]["settings"],
                )
            )
        if "rank" in self.records:
            ranking = self._facts(RankFacts)
            sections.append(preference.rankings_section(self.records["rank"], ranking))
        if "aggregate" in self.tables:
            order = self.tables["aggregate"]
            sections.append(preference.order_section(order, self._facts(AggregateFacts)))
        if "theorems" in self.tables:
            sections.append(preference.theorems_section(self.tables["theorems"]))
        return sections

    def _status_table(self, counts: Status) -> Table:
        body = [
            [Cell(learner), Cell(status, left=True), Cell(f"{count:,}")]
            for learner in configured_order(counts, self.records)
            for status, count in counts[learner].items()
        ]
        return Table(["learner", "status", "users"], body)

    def _settings(self) -> str:
        newest = max(self.records.values(), key=lambda r: str(r["started"]))
        settings = {
            "seed": newest["seed"],
            **{name: r["settings"] for name, r in self.records.items() if r["settings"]},
            "versions": newest["versions"],
        }
        return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
