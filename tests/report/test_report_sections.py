"""Calibration and stage times in the report of a run."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rank.report.calibration import CalibrationPoint, calibration_section
from spark_rank.report.page import Plot, Table, render
from spark_rank.report.stage_times import stages_section


def record(stage: str, started: str, seconds: float) -> dict[str, Any]:
    return {"stage": stage, "started": started, "seconds": seconds, "message": f"{stage} done"}


def test_calibration_weighs_by_ratings() -> None:
    points = [
        CalibrationPoint("mine", 2.0, 2.5, 30),
        CalibrationPoint("mine", 4.0, 3.5, 10),
        CalibrationPoint("constant", 3.0, 3.0, 40),
    ]
    section = calibration_section(points)
    table = next(part for part in section.parts if isinstance(part, Table))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["constant", "0.000", "+0.000", "40"],
        ["mine", "0.500", "−0.250", "40"],
    ]
    plot = next(part for part in section.parts if isinstance(part, Plot))
    assert "mine" in plot.svg


def test_without_predictions_calibration_says_so() -> None:
    assert "No learner predicts" in render("t", "s", [calibration_section([])])


def test_stages_stand_in_order_with_their_shares() -> None:
    records = {r["stage"]: r for r in (
        record("train", "2020-01-02", 30.0), record("ingest", "2020-01-01", 10.0)
    )}  # fmt: skip
    section = stages_section(records)
    table = next(part for part in section.parts if isinstance(part, Table))
    assert [[cell.text for cell in row][:3] for row in table.rows] == [
        ["ingest", "10.0", "25 %"], ["train", "30.0", "75 %"]
    ]  # fmt: skip
    plot = next(part for part in section.parts if isinstance(part, Plot))
    assert plot.alt == "Seconds by stage, 40.0 in all; train took longest, 30.0."


@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_a_run_that_took_no_time_is_drawn(seconds: float) -> None:
    assert "ingest" in render("t", "s", [stages_section({"a": record("ingest", "x", seconds)})])
