"""Workers run what `make package` has packed, and nothing of the checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.standalone import SPARK_HOME, Cluster
from tests.cluster.submitting import Gateway

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, os, sys
from spark_rank.session.session import spark_session

def look(_):
    import numpy, spark_rank
    found = {"module": spark_rank.__file__, "numpy": numpy.__file__, "prefix": sys.prefix}
    yield found | {"path": sys.path, "cwd": os.getcwd(), "env": dict(os.environ)}

with spark_session("look", {}) as spark:
    workers = spark.sparkContext.parallelize(range(8), 8).mapPartitions(look).collect()
print("found", json.dumps({"driver": list(look(None)), "workers": workers}), flush=True)
"""


def test_driver_and_workers_run_the_packed_environment(
    gateway: Gateway, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    script = gateway.folder / "look.py"
    script.write_text(SCRIPT)
    with gateway.submitted(script) as submission:
        said = submission.succeeds()
    (line,) = [line for line in said.splitlines() if line.startswith("found ")]
    found = json.loads(line.removeprefix("found "))
    (driver,) = found["driver"]
    assert Path(driver["prefix"]) == gateway.environment
    works = {str(worker.folder / "work") for worker in cluster.workers}
    seen = set()
    for worker in found["workers"]:
        seen |= {work for work in works if worker["cwd"].startswith(f"{work}/app-")}
        unpacked = f"{worker['cwd']}/environment"
        assert worker["prefix"] == unpacked
        assert worker["env"]["OPENBLAS_CORETYPE"] == "Haswell"
        for module in ("module", "numpy"):
            assert worker[module].startswith(f"{unpacked}/lib/"), worker[module]
    assert seen == works
    for place in found["driver"] + found["workers"]:
        for entry in [*place["path"], *place["env"].get("PYTHONPATH", "").split(":")]:
            # Spark brings its own Python files and one of its jars along; here it is installed in
            # the tests' Python
            own = (f"{SPARK_HOME}/python/", f"{SPARK_HOME}/jars/")
            assert not entry.startswith(str(ROOT)) or entry.startswith(own)
