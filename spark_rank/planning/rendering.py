"""The plan as text, and as values for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from spark_rank.planning.memory import GIGA
from spark_rank.planning.plan import Plan
from spark_rank.planning.times import Range
from spark_rank.wording import count_of

_NOTE = (
    "Usual costs were measured on one server: a stage takes half to twice the estimate, with "
    "kernels or grids a quarter to four times. Estimates from a run of this store are good to a "
    "factor of 1.5. They ignore networks, slow disks, and ratings that filters drop."
)


def as_text(plan: Plan) -> str:
    """Return the plan as text for people."""
    layout = plan.layout
    cut = f"{count_of(layout.buckets, 'bucket')}, {count_of(layout.waves, 'wave')}"
    cores = f"{count_of(layout.cores, 'core')} in {count_of(layout.executors, 'executor')}"
    head = [
        f"plan of run {plan.run_id}: {plan.sizes.in_words()}",
        f"({plan.sizes.source}); {cores}, {cut}",
        "",
    ]
    rows = [("stage", "time", "Python worker", "driver's Python", "estimated from")]
    rows += [
        (stage.need.stage, span(stage.time), _gb(stage.need.worker), _gb(stage.need.driver),
         stage.reckoned_from)
        for stage in plan.stages
    ]  # fmt: skip
    rows.append(("all", span(plan.time), "", "", ""))
    settings = [(f"{advice.setting}: {advice.value}", advice.why) for advice in plan.settings]
    warnings = [f"warning: {warning}" for warning in plan.warnings]
    lines = [*head, *_table(rows), "", *_table(settings), "", *warnings, _NOTE]
    return "\n".join(line.rstrip() for line in lines)


def as_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain values: bytes, and seconds."""
    tree = dataclasses.asdict(plan)
    for stage, planned in zip(tree["stages"], plan.stages, strict=True):
        stage["time"] = planned.time._asdict()
    return {**tree, "time": plan.time._asdict()}


def span(time: Range) -> str:
    """Return a range of time in the unit that suits its size."""
    units = {3600: "h", 60: "min", 1: "s"}
    size = next(size for size in units if time.high >= 2 * size or size == 1)
    digits = 1 if size == 3600 else 0
    return f"{time.low / size:.{digits}f} to {time.high / size:.{digits}f} {units[size]}"


def _gb(size: float) -> str:
    return f"{size / GIGA:.1f} GB"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows]  # fmt: skip
