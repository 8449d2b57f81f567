"""Netflix's densities and the readers of books, on generated ratings."""

from __future__ import annotations

import dataclasses

import numpy as np
from studies import generated_ratings, run_all, study_of

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.mprank_table2 import restricted, subset

SETTINGS = {
    "repeats": 2, "test_reviewers": 3, "references": 8, "held_out": 3,
    "netflix_users": [10, 20, 30], "netflix_items": [5, 9, 12], "book_users": 30, "book_items": 4,
    "Cs": [1, 10], "gammas": [0.05], "epsilons": [0.3], "rounds": [2],
}  # fmt: skip


def test_subsets_keep_users_and_items_with_enough_ratings() -> None:
    ratings = generated_ratings(40, 50)
    found = restricted(ratings, 20, 19)
    rows = {
        (ratings.user_ids[u], ratings.item_ids[i]): r
        for u in range(ratings.n_users)
        for i, r in zip(*ratings.of_user(u), strict=True)
        if len(ratings.of_user(u)[0]) >= 20
    }
    counts: dict[str, int] = {}
    for _, item in rows:
        counts[item] = counts.get(item, 0) + 1
    expected = {key: r for key, r in rows.items() if counts[key[1]] >= 19}
    assert 0 < len(expected) < len(rows)
    assert expected == {
        (found.user_ids[u], found.item_ids[i]): r
        for u in range(found.n_users)
        for i, r in zip(*found.of_user(u), strict=True)
    }


def test_every_part_is_tried_then_measured() -> None:
    data = {"Netflix": generated_ratings(40, 50), "Books": generated_ratings(40, 45, seed=1)}
    study = study_of("mprank_table2", SETTINGS, data)
    pilot = EXPERIMENTS["mprank_table2"].pilot
    assert pilot is not None
    trials = [r for unit in pilot.units(study) for r in pilot.run_unit(study, unit)]
    study = dataclasses.replace(study, chosen=pilot.choose(study, trials))
    results = [r for unit in run_all(study) for r in unit]
    parts = {r.part for r in results}
    assert parts == {"Netflix 32 %", "Netflix 46 %", "Netflix 58 %", "Books"}
    assert {claim.part for claim in EXPERIMENTS["mprank_table2"].claims(study.settings)} == parts
    for part in parts - {"Books"}:
        tried, measured = ({r.target for r in rows if r.part == part} for rows in (trials, results))
        assert len(measured) == 6
        assert not tried & measured
    readers = {r.target for r in results if r.part == "Books"}
    assert readers == set(subset(study, 3).user_ids.tolist())
    assert all(np.isfinite(r.value) for r in results if r.value is not None)


def test_without_netflix_the_books_remain() -> None:
    study = study_of("mprank_table2", SETTINGS, {"Books": generated_ratings(40, 45, seed=1)})
    assert {part for part, *_ in EXPERIMENTS["mprank_table2"].units(study)} == {3}
