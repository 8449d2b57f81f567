"""The data sets of an experiment, and where its time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_rank.records.results import RatingSetProfile
from spark_rank.report.numbers import shown
from spark_rank.report.page import Cell, Table
from spark_rank.wording import count_of


def data_table(profiles: Sequence[RatingSetProfile]) -> Table:
    """Return a row per data set, with its size and its rating scale."""
    body = [
        [
            Cell(profile.name),
            Cell(f"{profile.users:,}"),
            Cell(f"{profile.items:,}"),
            Cell(f"{profile.ratings:,}"),
            Cell(_density(profile)),
            Cell(f"{profile.median_of_a_user:,.0f} / {profile.most_of_a_user:,}"),
            Cell(_scale(profile), left=True),
            Cell(shown(profile.mean)),
        ]
        for profile in profiles
    ]
    header = ["data set", "users", "items", "ratings", "density",
              "ratings of a user: median / most", "scale", "mean"]  # fmt: skip
    dropped = [
        f"Dropped: {count_of(profile.implicit, 'row')} of {profile.name} without a rating."
        for profile in profiles
        if profile.implicit
    ]
    return Table(header, body, " ".join(["As read, before users are chosen.", *dropped]))


def steps_table(times: Mapping[str, tuple[float, Mapping[str, float]]]) -> Table:
    """Return the seconds of every run by step, and their share of the run's time."""
    body = []
    for run_id, (whole, steps) in times.items():
        other = max(whole - sum(steps.values()), 0.0)
        body += [[Cell(run_id)]] if len(times) > 1 else []
        body += [
            [Cell(step), Cell(f"{seconds:,.1f}"), Cell(_share(seconds, whole))]
            for step, seconds in {**steps, "other": other}.items()
        ]
    return Table(["step", "seconds", "share"], body, "Where the time went.")


def _density(profile: RatingSetProfile) -> str:
    cells = profile.users * profile.items
    return f"{100.0 * profile.ratings / cells:.3g} %" if cells else "–"


def _scale(profile: RatingSetProfile) -> str:
    if profile.levels:
        return ", ".join(shown(level) for level in profile.levels)
    return f"{shown(profile.ends[0])} to {shown(profile.ends[1])}" if profile.ends else "–"


def _share(seconds: float, whole: float) -> str:
    return f"{100.0 * seconds / whole:.0f} %" if whole > 0.0 else "–"
