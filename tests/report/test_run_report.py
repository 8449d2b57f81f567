"""The page of a run: what its reader sees first, and in which order the rest comes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from spark_rank.records.facts import as_record
from spark_rank.report.run_report import RunReport
from tests.report.summaries import status_of, summary
from tests.report.test_data_profile import INGEST, prepared

MEANS = {"constant": 2.0, "item_offset": 1.5, "mine": 1.0}
LIST = {"user_id": "7", "list": "top", "position": 1, "item_id": "i", "title": "Film", "score": 4.0,
        "predicted_rating": 4.0, "source": "learned", "item_ratings": 7}  # fmt: skip


def record(stage: str, **more: Any) -> dict[str, Any]:
    return {"stage": stage, "started": "2026-01-01T10:00:00+00:00", "seconds": 60.0, "seed": 0,
            "message": "", "settings": {}, "versions": {}, "tables": {}, **more}  # fmt: skip


def against(rival: str, metric: str, users: int) -> dict[str, Any]:
    """Return a comparison as the table has it: the baseline first, by its name."""
    return {"learner": rival, "rival": "mine", "metric": metric, "user_group": "all",
            "users": users, "difference": 0.1, "ci_low": 0.05, "ci_high": 0.15, "wins": 10,
            "ties": 0, "losses": 50, "wilcoxon_p_holm": 0.01, "sign_p_holm": 0.01}  # fmt: skip


def page(rows: list[dict[str, Any]], **status: dict[str, int]) -> str:
    learners = {row["learner"] for row in rows}
    counts = {name: own for name, own in (status_of(rows) | status).items() if name in learners}
    records = {
        "ingest": record("ingest", facts=as_record(INGEST), settings={"path": "u.data",
                         "format": "csv"}, tables={"ratings": 1000, "users": 50, "items": 40}),
        "prepare": record("prepare", facts=as_record(prepared())),
        "train": record("train", settings={"learners": [{"name": "mine", "learner": "mprank"}]}),
        "evaluate": record("evaluate", facts={"means": {}, "status": counts, "relevant_from": 4.0},
                           settings={"top_n": 10}),
        "recommend": record("recommend", facts={"users": 60, "learner": "mine", "candidates": 9,
                                                "places": {"learned": 60}}),
    }  # fmt: skip
    rivals = learners & {"constant", "item_offset"}
    pairs = [against(rival, metric, rows[0]["users"])
             for rival in sorted(rivals) for metric in ("msd", "misranking")]  # fmt: skip
    tables = {"summary": rows, "comparison": pairs, "roc": [], "bounds": [],
              "recommendations": [LIST]}  # fmt: skip
    return RunReport("monday", tables, {}, records).html()


def headings(html: str) -> list[str]:
    return re.findall(r"<h2[^>]*>([^<]*)</h2>", html)


def test_the_headline_stands_above_the_contents() -> None:
    html = page(summary(MEANS))
    header = html.split("<header>")[1].split("</header>")[0]
    lead = header.index('<p class="lead">mine correctly orders 70.0 % of the pairs')
    assert header.index("mine (mprank) on 1,000 ratings of 50 users") < lead
    assert "from u.data (csv), 2026-01-01 10:00 to 10:01 UTC" in header
    assert lead < header.index("<nav")


def test_own_results_come_first_and_lists_before_bounds() -> None:
    found = headings(page(summary(MEANS)))
    assert found[:3] == ["Summary", "Learners compared over the same users",
                         "Unseen items for a few users"]  # fmt: skip
    assert found.index("Generalisation bounds") > 3


def test_a_learner_that_is_better_wins_in_green() -> None:
    html = page(summary(MEANS))
    assert "✗" not in html.replace("✗ if it is worse", "")
    compared = html.split("compared over the same users</h2>")[1].split("</section>")[0]
    assert compared.count("marked)") == 4
    assert "item_offset − mine" not in html


@pytest.mark.parametrize(
    "rows",
    [
        summary({"mine": 0.0, "constant": 0.0}, misranking=None),
        summary(MEANS, users=2),
        summary({"mine": 1.0}),
    ],
)
def test_what_says_nothing_is_never_marked(rows: list[dict[str, Any]]) -> None:
    assert "(marked" not in page(rows)
    assert "(marked" in page(summary(MEANS))


def test_a_learner_of_fallbacks_has_no_figure() -> None:
    html = page(summary(MEANS), mine={"fallback: no_features": 60})
    assert "1.0000" not in html
    assert "nothing learned (no features)" in html
    assert "No verdict on mine" in html
