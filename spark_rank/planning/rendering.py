"""The plan as text, and as JSON would have it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from spark_rank.planning.plan import Plan
from spark_rank.planning.rates import GIGA, UNCERTAINTY
from spark_rank.wording import count_of


def as_text(plan: Plan) -> str:
    """Return the plan for people."""
    layout = plan.layout
    cut = f"{count_of(layout.buckets, 'bucket')}, {count_of(layout.waves, 'wave')}"
    cores = f"{count_of(layout.cores, 'core')} in {count_of(layout.executors, 'executor')}"
    head = [
        f"plan of run {plan.run_id}: {plan.sizes.in_words()}",
        f"({plan.sizes.source}); {cores}, {cut}",
        "",
    ]
    rows = [("stage", "tasks", "time", "Python worker", "driver's Python", "rates of")]
    rows += [
        (stage.stage, f"{stage.tasks:,}", duration(stage.seconds), _gb(stage.worker_bytes),
         _gb(stage.driver_bytes), stage.rate)
        for stage in plan.stages
    ]  # fmt: skip
    rows.append(("all", "", duration(plan.seconds), "", "", ""))
    settings = [(f"{advice.setting}: {advice.value}", advice.why) for advice in plan.settings]
    lines = [*head, *_table(rows), "", *_table(settings), "", *plan.notes]
    return "\n".join(line.rstrip() for line in lines)


def as_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain values; seconds are the middle of the uncertainty."""
    tree = dataclasses.asdict(plan)
    del tree["sizes"]["groups"]
    return {**tree, "seconds": plan.seconds, "uncertainty": UNCERTAINTY}


def duration(seconds: float) -> str:
    """Return a time in the unit that people would use."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _gb(size: float) -> str:
    return f"{size / GIGA:.1f} GB"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows]  # fmt: skip
