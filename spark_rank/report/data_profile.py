"""What the data look like: counts, ratings, activity of users, popularity of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.report.page import Cell, Plot, Section, Table
from spark_rank.report.plots import COLOURS, dress, new_figure, plain, to_svg
from spark_rank.wording import count_of

Record = Mapping[str, Any]
Bins = Sequence[Sequence[int]]


def data_section(ingest: Record, prepare: Record) -> Section:
    """Return the numbers and pictures of the ratings, from the records of the two stages."""
    facts, profile = prepare["facts"], prepare["facts"]["profile"]
    parts: list[Table | Plot | str] = [_numbers(ingest, prepare)]
    if facts["filters"]:
        parts.append(_filters(facts["filters"], settled=facts["filters_settled"]))
    parts += [_rating_plot(profile["histogram"]), _activity_plot(profile)]
    return Section("Data", parts)


def _numbers(ingest: Record, prepare: Record) -> Table:
    """Return what came in, what was set aside, and what is learned from."""
    facts, profile = prepare["facts"], prepare["facts"]["profile"]
    quarantined = ingest["facts"]["quarantined_by_reason"]
    dropped = ingest["facts"].get("dropped_by_reason", {})
    numbers = [
        ("rows read", f"{ingest['facts']['rows_in']:,}"),
        ("ratings kept", f"{ingest['tables']['ratings']:,}"),
        *[(f"quarantined: {reason}", f"{count:,}") for reason, count in quarantined.items()],
        *[(f"dropped: {reason}", f"{count:,}") for reason, count in dropped.items()],
        ("users", f"{profile['users']:,}"),
        ("items", f"{profile['items']:,}"),
        ("ratings", f"{profile['ratings']:,}"),
        ("density", _share(profile["density"])),
        ("most ratings of one user", f"{facts['most_ratings_of_a_user']:,}"),
        ("ratings to learn from", f"{facts['train_ratings']:,}"),
        ("ratings held out", f"{facts['test_ratings']:,}"),
        ("users with nothing held out", f"{facts['users_with_nothing_held_out']:,}"),
        ("first and last day", _days(profile)),
        ("ratings without a time", f"{profile['without_time']:,}"),
    ]
    body = [[Cell(name), Cell(value)] for name, value in numbers]
    return Table(["what", "number"], body, "Users, items and what follows: after the filters.")


def _filters(steps: Sequence[Record], *, settled: bool) -> Table:
    """Return what every filter kept and dropped."""
    body = [
        [
            Cell(step["filter"]),
            Cell(str(step["round"] or "–")),
            *[
                Cell(f"{step[kind]:,} (−{step[f'{kind}_dropped']:,})")
                for kind in ("ratings", "users", "items")
            ],
        ]
        for step in steps
    ]
    end = "Another round would drop nothing." if settled else "Another round might drop more."
    header = ["filter", "round", "ratings", "users", "items"]
    return Table(header, body, f"What each filter kept (and dropped). {end}")


def _rating_plot(histogram: Sequence[Record]) -> Plot:
    """Return the share of every level, or of every bin of a scale without levels."""
    total = sum(entry["ratings"] for entry in histogram)
    shares = [entry["ratings"] / total for entry in histogram]
    figure = new_figure(7.2, 3.0)
    axes = figure.add_subplot()
    if "rating" in histogram[0]:
        levels = [entry["rating"] for entry in histogram]
        places, width, labels = list(range(len(levels))), 0.8, [f"{level:g}" for level in levels]
        step = -(-len(levels) // 20)  # more labels than that would run into each other
        axes.set_xticks(places[::step], labels[::step])
        ends = (-0.6, len(levels) - 0.4)
    else:
        places = [(entry["from"] + entry["to"]) / 2 for entry in histogram]
        # one single value has no width of its own
        width = histogram[0]["to"] - histogram[0]["from"] or 1.0
        ends = (places[0] - width / 2, places[-1] + width / 2)
    axes.bar(places, shares, width=width, color=COLOURS[0], alpha=0.8, label="ratings")
    dress(axes, "ratings", "rating", "share of ratings", ends)
    top = max(histogram, key=lambda entry: int(entry["ratings"]))
    words = (
        f"Distribution of {count_of(total, 'rating')}; the most frequent is {_place(top)} with "
        f"{100 * top['ratings'] / total:.1f} %."
    )
    return Plot(to_svg(figure), words)


def _activity_plot(profile: Record) -> Plot:
    """Return how many users and items have how many ratings, on logarithmic axes."""
    figure = new_figure(7.2, 3.6)
    axes = figure.add_subplot()
    curves = {"users": profile["user_activity"], "items": profile["item_popularity"]}
    for position, (label, bins) in enumerate(curves.items()):
        # an empty bin has no place on a logarithmic axis: the line goes on to the next
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
        "How many users and items have how many ratings. Half of the users or more have "
        f"{_end_of_half(curves['users'])} each, half of the items or more "
        f"{_end_of_half(curves['items'])}."
    )
    return Plot(to_svg(figure), words)


def _end_of_half(bins: Bins) -> str:
    """Return below what number of ratings half of all lie, as far as the bins tell."""
    total, so_far = sum(count for _, count in bins), 0
    for place, (_, count) in enumerate(bins[:-1]):
        so_far += count
        if 2 * so_far >= total:
            return f"fewer than {bins[place + 1][0]:,}"
    return f"{bins[-1][0]:,} or more"


def _place(entry: Record) -> str:
    if "rating" in entry:
        return f"{entry['rating']:g}"
    return f"from {entry['from']:g} to {entry['to']:g}"


def _share(density: float | None) -> str:
    return "–" if density is None else f"{100 * density:.3g} %"


def _days(profile: Record) -> str:
    if profile["first_time"] is None:
        return "–"
    return f"{profile['first_time']} to {profile['last_time']}"
