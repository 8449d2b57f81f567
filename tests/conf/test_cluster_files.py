"""The settings for clusters: explained line by line, known to Spark, enough by the plan."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank.config import load_config
from spark_rank.planning.memory import demand
from spark_rank.planning.offer import PYTHON_LIMIT, Machine, offered
from spark_rank.planning.plan import layout_of
from spark_rank.planning.shortages import idle_cores, shortages
from spark_rank.planning.sizes import spread
from spark_rank.planning.times import PLANNED
from spark_rank.session.java import find_java
from spark_rank.session.session import DEFAULTS

CONF = Path(__file__).parents[2] / "conf"
SUBMITTED = CONF / "spark-defaults.conf"
CLUSTERS = sorted(CONF.glob("cluster-*.yaml"))
# what the configuration decides, though the package has a default of its own
CHOSEN = {"spark.master", "spark.sql.shuffle.partitions"}
# these make a name of an environment variable: Spark's configuration and its pages on YARN say so
PREFIXES = ("spark.executorEnv.", "spark.yarn.appMasterEnv.")
# the objects that hold Spark's settings
HOLDERS = (
    "org.apache.spark.internal.config.package$",
    "org.apache.spark.deploy.yarn.config.package$",
    "org.apache.spark.deploy.k8s.Config$",
)
NETFLIX = spread(480_000, 17_770, 100_000_000, "as Netflix's data")


def submitted() -> dict[str, str]:
    """Read the properties as Java does: a name, blanks, a value."""
    lines = [line.strip() for line in SUBMITTED.read_text().splitlines()]
    pairs = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    return {name: value for name, value in pairs}


def settings_of(path: Path) -> dict[str, str]:
    return load_config(path).spark if path.suffix == ".yaml" else submitted()


def test_all_kinds_of_clusters_are_there() -> None:
    assert [path.stem for path in CLUSTERS] == [
        "cluster-kubernetes", "cluster-standalone", "cluster-yarn"
    ]  # fmt: skip


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_a_configuration_loads_and_every_line_is_explained(path: Path) -> None:
    config = load_config(path)
    assert config.spark["spark.master"]
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    assert lines[0].startswith("# ")
    for line in lines:
        assert re.search(r"(^|\s)# +\S", line), line
        assert len(line) <= 120, line


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_clusters_learn_what_the_default_learns(path: Path) -> None:
    config, default = load_config(path), load_config(CONF / "default.yaml")
    assert (config.train, config.features) == (default.train, default.features)


def test_every_line_of_the_properties_is_explained() -> None:
    lines = SUBMITTED.read_text().splitlines()
    for before, line in pairwise(lines):
        if line.strip() and not line.startswith("#"):
            assert before.startswith("# "), line
            assert "#" not in line, "Java reads it as a part of the value"
    assert len(submitted()) == sum(line.startswith("spark.") for line in lines)


def test_every_setting_has_one_place() -> None:
    for path in CLUSTERS:
        own = settings_of(path)
        assert not own.keys() & submitted().keys()
        assert own.keys() & DEFAULTS.keys() <= CHOSEN
    assert not submitted().keys() & DEFAULTS.keys()
    assert all(PYTHON_LIMIT not in settings_of(path) for path in (*CLUSTERS, SUBMITTED))


@pytest.mark.parametrize("path", [*CLUSTERS, SUBMITTED], ids=lambda path: path.stem)
def test_spark_knows_every_name_and_takes_every_value(path: Path, spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    for name in HOLDERS:
        jvm.java.lang.Class.forName(name)
    config = jvm.org.apache.spark.internal.config
    settings = {n: v for n, v in settings_of(path).items() if not n.startswith(PREFIXES)}
    settings.pop("spark.master", None)  # older than Spark's list of its settings
    values = jvm.java.util.HashMap()
    for name, value in settings.items():
        values.put(name, value)
    reader = config.ConfigReader(values)
    known = {entry.key(): entry for entry in config.ConfigEntry.listAllEntries().toArray()}
    assert len(known) > 1000
    for name in settings:
        assert name in known, name
        known[name].readFrom(reader)


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_they_are_enough_for_the_sizes_that_they_name(path: Path) -> None:
    config = load_config(path)
    settings = {**submitted(), **config.spark}
    offer = offered(settings, Machine(4, 8e9))
    assert offer.cores == 16
    assert layout_of(config, 16, offer, 1).executors == 4
    for stage in PLANNED:
        need = demand(stage, config, NETFLIX, offer.tasks or 1, 16)
        assert shortages(need, offer, settings) == []
    assert idle_cores(16, config.prepare.buckets) == []


@pytest.mark.slow
def test_spark_submit_takes_the_properties(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "import json\nfrom pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "print('conf', json.dumps(dict(spark.sparkContext.getConf().getAll())))\n"
        "spark.stop()\n"
    )
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[1]",
               "--properties-file", str(SUBMITTED), str(job)]  # fmt: skip
    environment = {**os.environ, **find_java().environment(), "SPARK_LOCAL_IP": "127.0.0.1",
                   "PYSPARK_PYTHON": sys.executable}  # fmt: skip
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=200, env=environment, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("conf ")]
    assert submitted().items() <= json.loads(line.removeprefix("conf ")).items()
    assert "Ignoring" not in ended.stderr
