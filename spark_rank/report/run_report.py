"""The report of a pipeline run: accuracy first, then what else it found, then the run's facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from spark_rank.report import (
    accuracy,
    calibration,
    data_profile,
    ensembles,
    preference,
    recommendations,
    tuning,
)
from spark_rank.report.page import Cell, Preformatted, Section, Table, render
from spark_rank.report.plots import Histogram
from spark_rank.report.stage_times import stages_section

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class RunReport:
    """All that the report shows, small enough for one machine.

    `tables` holds the rows of the run's small tables by name, `histograms` per metric the
    distributions, `records` the manifest, `points` predictions beside ratings.
    """

    run_id: str
    tables: Mapping[str, Rows]
    histograms: Mapping[str, Sequence[Histogram]]
    records: Mapping[str, Mapping[str, Any]]
    points: Sequence[calibration.CalibrationPoint] = ()

    def html(self) -> str:
        """Return the document."""
        summary = self.tables["summary"]
        sections = [
            accuracy.summary_section(summary),
            accuracy.comparison_section(self.tables["comparison"]),
            accuracy.groups_section(summary),
            accuracy.distribution_section(self.histograms),
            calibration.calibration_section(self.points),
            accuracy.other_metrics_section(summary),
            accuracy.roc_section(self.tables["roc"]),
            accuracy.bounds_section(self.tables["bounds"]),
            *self._optional_sections(),
            Section("What became of the users", [self._status_table()]),
            data_profile.data_section(self.records["ingest"], self.records["prepare"]),
            stages_section(self.records),
            Section("Settings and versions", [Preformatted(self._settings())]),
        ]
        return render(f"spark_rank run {self.run_id}", self._subtitle(), sections)

    def _optional_sections(self) -> list[Section]:
        sections = []
        if "tuning" in self.tables:
            sections.append(tuning.tuning_section(self.tables["tuning"]))
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
            sections.append(preference.rankings_section(self.records["rank"]))
        if "aggregate" in self.tables:
            facts = self.records["aggregate"]["facts"]
            sections.append(preference.order_section(self.tables["aggregate"], facts))
        if "recommendations" in self.tables:
            facts = self.records["recommend"]["facts"]
            sample = self.tables["recommendations"]
            sections.append(recommendations.recommendations_section(sample, facts))
        if "theorems" in self.tables:
            sections.append(preference.theorems_section(self.tables["theorems"]))
        return sections

    def _subtitle(self) -> str:
        ingest = self.records["ingest"]["tables"]
        return (
            f"{ingest['ratings']:,} ratings of {ingest['users']:,} users and "
            f"{ingest['items']:,} items"
        )

    def _status_table(self) -> Table:
        body = [
            [Cell(learner), Cell(status, left=True), Cell(f"{count:,}")]
            for learner, _ in accuracy.in_order(self.records["evaluate"]["facts"]["status"])
            for status, count in self.records["evaluate"]["facts"]["status"][learner].items()
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
