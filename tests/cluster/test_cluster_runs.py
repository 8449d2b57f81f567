"""The whole pipeline on a cluster leaves what it leaves on one machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spark_rank.tables.contracts import TABLES
from tests.cluster.data import write_config, write_ratings
from tests.cluster.submitting import Gateway
from tests.outputs import TOLD_OF_THE_RUN, differences, names, page, records

pytestmark = pytest.mark.cluster

# tables of commands that this pipeline does not hold, or of inputs that it does not have
NOT_MADE = {
    "changes", "ensemble_metrics", "experiment_claims", "experiment_results", "experiment_summary",
    "given_features", "panel", "reviewer_ratings", "final_panel", "final_reviewer_ratings",
    "synthetic", "theorems", "titles",
}  # fmt: skip


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
    assert {*made} == {*TABLES} - NOT_MADE | {
        *TOLD_OF_THE_RUN, "feature_files", "final_feature_files",
    }  # fmt: skip
    assert names(ours) == made
    assert differences(ours, theirs, made) == TOLD_OF_THE_RUN
    assert records(ours) == records(theirs)
    assert page(ours) == page(theirs)
