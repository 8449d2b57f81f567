"""The whole pipeline on a cluster leaves what it leaves on one machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_rank.data.tables import TABLES
from tests.cluster.data import write_config, write_ratings
from tests.cluster.outputs import differences, names
from tests.cluster.submitting import Gateway

pytestmark = pytest.mark.cluster

# what tells how long something took, where and when, and the names of Spark's files
TOLD_OF_THE_RUN = ["manifest", "report", "run_metrics"]
# tables of commands that this pipeline does not hold, or of inputs that it does not have
NOT_MADE = {
    "changes", "ensemble_metrics", "experiment_claims", "experiment_results", "experiment_summary",
    "given_features", "panel", "reviewer_ratings", "synthetic", "theorems", "titles",
}  # fmt: skip
DECIDED = ("fingerprint", "upstream", "inputs", "settings", "seed", "message", "tables", "versions")


def records(run: Path) -> dict[str, dict[str, Any]]:
    """Return the manifest, without what may differ."""
    found = {path.stem: json.loads(path.read_text()) for path in run.glob("manifest/*.json")}
    # the page is told by its place
    found["report"]["message"] = ""
    return {stage: {key: record[key] for key in DECIDED} for stage, record in found.items()}


def page(run: Path) -> str:
    """Return the report without how long the stages took, and when."""
    text = (run / "report" / "report.html").read_text()
    shown, pictures = re.subn(
        r'<figure><svg role="img" aria-label="Seconds by stage.*?</figure>', "", text, flags=re.S
    )
    shown, rows = re.subn(
        r'<td>[\d.]+</td><td>\d+ %</td><td class="text">20[\dT:+-]+</td>', "", shown
    )
    # the page cannot tell of itself
    assert (pictures, rows) == (1, len([*run.glob("manifest/*.json")]) - 1)
    return shown


@pytest.mark.timeout(900)
def test_the_pipeline_leaves_the_bytes_of_a_local_run(gateway: Gateway, tmp_path: Path) -> None:
    ratings = write_ratings(tmp_path / "ratings")
    local = write_config(tmp_path / "local.yaml", tmp_path / "local", ratings)
    command = [sys.executable, "-m", "spark_rank", "pipeline", "--config", str(local),
               "--spark", "spark.master=local[2]", "spark.driver.memory=1g"]  # fmt: skip
    subprocess.run(command, check=True, timeout=400)
    config = write_config(tmp_path / "cluster.yaml", tmp_path / "cluster", ratings)
    with gateway.submitted("pipeline.py", "--config", str(config)) as submission:
        submission.succeeds(450)
    ours, theirs = (tmp_path / store / "runs" / "run_id=one" for store in ("cluster", "local"))
    made = names(theirs)
    assert {*made} == {*TABLES} - NOT_MADE | {*TOLD_OF_THE_RUN, "feature_files"}
    assert names(ours) == made
    assert differences(ours, theirs, made) == TOLD_OF_THE_RUN
    assert records(ours) == records(theirs)
    assert page(ours) == page(theirs)
