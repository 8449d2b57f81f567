"""The data in the report: counts, ratings, activity of users, popularity of items."""

from __future__ import annotations

from collections.abc import Sequence

from spark_rank.records.data import (
    Bins,
    DataProfile,
    FilterFacts,
    IngestFacts,
    PrepareFacts,
    RatingBin,
)
from spark_rank.report.page import Cell, Plot, Section, Table
from spark_rank.report.plots import COLOURS, dress, new_figure, plain, to_svg
from spark_rank.wording import count_of


def data_section(kept: int, ingest: IngestFacts, prepare: PrepareFacts) -> Section:
    """Return the numbers and plots of the ratings; `kept` is how many rows `ingest` kept."""
    parts: list[Table | Plot | str] = [_numbers(kept, ingest, prepare)]
    if prepare.filters:
        parts.append(_filters(prepare.filters, settled=prepare.filters_settled))
    parts += [_rating_plot(prepare.profile.histogram), _activity_plot(prepare.profile)]
    return Section("Data", parts)


def _numbers(kept: int, ingest: IngestFacts, facts: PrepareFacts) -> Table:
    """Return the numbers of rows read, set aside and kept, and of ratings to learn from."""
    profile = facts.profile
    quarantined, dropped = ingest.quarantined_by_reason, ingest.dropped_by_reason
    numbers = [
        ("rows read", f"{ingest.rows_in:,}"),
        ("ratings kept", f"{kept:,}"),
        *[(f"quarantined: {reason}", f"{count:,}") for reason, count in quarantined.items()],
        *[(f"dropped: {reason}", f"{count:,}") for reason, count in dropped.items()],
        ("users", f"{profile.users:,}"),
        ("items", f"{profile.items:,}"),
        ("ratings", f"{profile.ratings:,}"),
        ("density", _share(profile.density)),
        ("most ratings of one user", f"{facts.most_ratings_of_a_user:,}"),
        ("ratings to learn from", f"{facts.train_ratings:,}"),
        ("ratings held out", f"{facts.test_ratings:,}"),
        ("users with nothing held out", f"{facts.users_with_nothing_held_out:,}"),
        ("users without training ratings", f"{facts.users_without_training:,}"),
        ("items without training ratings", f"{facts.items_without_training:,}"),
        ("first and last day", _days(profile)),
        ("ratings without a time", f"{profile.without_time:,}"),
    ]
    body = [[Cell(name), Cell(value)] for name, value in numbers]
    return Table(
        ["what", "number"],
        body,
        "Users, items and all numbers below them are counted after the filters.",
    )


def _filters(steps: Sequence[FilterFacts], *, settled: bool) -> Table:
    """Return the numbers that every filter kept and dropped."""
    body = [
        [
            Cell(step.filter),
            Cell(str(step.round or "–")),
            Cell(f"{step.ratings:,} (−{step.ratings_dropped:,})"),
            Cell(f"{step.users:,} (−{step.users_dropped:,})"),
            Cell(f"{step.items:,} (−{step.items_dropped:,})"),
        ]
        for step in steps
    ]
    end = "Another round would drop nothing." if settled else "Another round might drop more."
    header = ["filter", "round", "ratings", "users", "items"]
    return Table(header, body, f"What each filter kept (and dropped). {end}")


def _rating_plot(histogram: Sequence[RatingBin]) -> Plot:
    """Return the share of every level, or of every bin of a scale without levels."""
    total = sum(entry.ratings for entry in histogram)
    shares = [entry.ratings / total for entry in histogram]
    figure = new_figure(7.2, 3.0)
    axes = figure.add_subplot()
    levels = [entry.rating for entry in histogram if entry.rating is not None]
    bins = [(e.low, e.high) for e in histogram if e.low is not None and e.high is not None]
    if levels:
        places, width = [float(place) for place in range(len(levels))], 0.8
        labels = [f"{level:g}" for level in levels]
        step = -(-len(levels) // 20)  # more than 20 labels would overlap
        axes.set_xticks(places[::step], labels[::step])
        ends = (-0.6, len(levels) - 0.4)
    else:
        places = [(low + high) / 2.0 for low, high in bins]
        # a scale of a single value has no width
        width = bins[0][1] - bins[0][0] or 1.0
        ends = (places[0] - width / 2, places[-1] + width / 2)
    axes.bar(places, shares, width=width, color=COLOURS[0], alpha=0.8, label="ratings")
    dress(axes, "ratings", "rating", "share of ratings", ends)
    top = max(histogram, key=lambda entry: entry.ratings)
    words = (
        f"Distribution of {count_of(total, 'rating')}; the most frequent is {_bin_name(top)} with "
        f"{100 * top.ratings / total:.1f} %."
    )
    return Plot(to_svg(figure), words)


def _activity_plot(profile: DataProfile) -> Plot:
    """Return how many users and items have how many ratings, on logarithmic axes."""
    figure = new_figure(7.2, 3.6)
    axes = figure.add_subplot()
    curves = {"users": profile.user_activity, "items": profile.item_popularity}
    for position, (label, bins) in enumerate(curves.items()):
        # a logarithmic axis cannot show an empty bin: the line skips it
        filled = [entry for entry in bins if entry[1]]
        x, y = [start for start, _ in filled], [count for _, count in filled]
        axes.plot(x, y, color=COLOURS[position], linewidth=2.0, marker="o", markersize=3.5,
                  label=plain(label))  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    most = max(bins[-1][0] for bins in curves.values())
    dress(axes, "activity", "number of ratings (four bins to a factor of ten)", "users or items",
           (0.8, 1.5 * most))  # fmt: skip
    words = (
        "How many users and items have how many ratings. At least half of the users have "
        f"{_end_of_half(curves['users'])} each, at least half of the items "
        f"{_end_of_half(curves['items'])}."
    )
    return Plot(to_svg(figure), words)


def _end_of_half(bins: Bins) -> str:
    """Return the range of ratings that half of the users or items are in, to the nearest bin."""
    total, so_far = sum(count for _, count in bins), 0
    for place, (_, count) in enumerate(bins[:-1]):
        so_far += count
        if 2 * so_far >= total:
            return f"fewer than {bins[place + 1][0]:,}"
    return f"{bins[-1][0]:,} or more"


def _bin_name(entry: RatingBin) -> str:
    if entry.rating is not None:
        return f"{entry.rating:g}"
    return f"from {entry.low:g} to {entry.high:g}"


def _share(density: float | None) -> str:
    return "–" if density is None else f"{100 * density:.3g} %"


def _days(profile: DataProfile) -> str:
    if profile.first_time is None:
        return "–"
    return f"{profile.first_time} to {profile.last_time}"
