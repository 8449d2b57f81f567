"""A cluster for a module of tests, and the gateway from which they submit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.standalone import Cluster
from tests.cluster.submitting import Gateway

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "build" / "package"


@pytest.fixture(scope="session")
def package() -> Path:
    """Return what `make package` has made."""
    if sys.platform != "linux":
        pytest.skip("needs /proc and the addresses 127.0.0.2 and 127.0.0.3: Linux")
    if not (PACKAGE / "environment.tar.gz").exists():
        pytest.skip("there is no package yet: `make cluster-test` makes it and runs this test")
    return PACKAGE


@pytest.fixture(scope="session")
def environment(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the gateway's copy of the environment, unpacked."""
    folder = tmp_path_factory.mktemp("gateway") / "environment"
    folder.mkdir()
    archive = package / "environment.tar.gz"
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def cluster(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers; none of their processes outlives the module."""
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.stop()


@pytest.fixture
def gateway(package: Path, environment: Path, cluster: Cluster, tmp_path: Path) -> Gateway:
    return Gateway(package, environment, tmp_path, cluster.url)
