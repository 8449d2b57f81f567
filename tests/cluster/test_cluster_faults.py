"""Executors, machines and drivers that are killed while users are learned: the same models."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from spark_rank.config import load_config
from spark_rank.store.run import Run
from tests.cluster.data import SLOW_LEARNERS, write_config, write_ratings
from tests.cluster.networks import Network, obstacle
from tests.cluster.standalone import (
    NODES,
    Cluster,
    Daemon,
    Node,
    eventually,
    folder_of,
    has_open,
    open_below,
    processes_below,
    send,
    status_of,
)
from tests.cluster.submitting import Gateway
from tests.faults.poisoned import PATH, failed_users, learned, poison_users, reasons
from tests.outputs import Bytes, names, table_bytes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

LATER = ("ensemble", "evaluate", "rank", "aggregate", "refit", "recommend", "report")
EIGHT_WAVES = {"users_per_wave": 20, "train": {"learners": SLOW_LEARNERS}}


@dataclass
class Work:
    """A run that has everything but its models, and the command that learns them."""

    config: Path
    run: Path
    expected: Bytes

    @property
    def command(self) -> tuple[str, ...]:
        return "train.py", "--config", str(self.config)

    def waves_saved(self) -> int:
        """Return how many waves have their notes."""
        return len(list(self.run.glob("_drafts/train/waves-*/models/0*.json")))

    def after_waves(self, count: int) -> None:
        """Wait until so many waves are saved, and others are under way.

        Before the first one functions are compiled, which takes its time on a busy machine.
        """
        eventually(lambda: self.waves_saved() >= count, f"{count} waves of {self.run}", 300)
        assert not self.is_published()

    def kill_executor_in_a_task(self, cluster: Cluster) -> None:
        """Wait until an executor is in the middle of a task that writes models, and kill it."""
        drafts = self.run / "_drafts" / "train"

        def caught(pid: int) -> bool:
            if has_open(pid, drafts):
                # held, it cannot end the task between the look and the blow
                send(pid, signal.SIGSTOP)
                if has_open(pid, drafts):
                    return True
                send(pid, signal.SIGCONT)
            return False

        def look() -> int | None:
            executors = (pid for worker in cluster.workers for pid in worker.executors())
            return next(filter(caught, executors), None)

        send(eventually(look, "an executor that writes models", 60), signal.SIGKILL)

    def kill_python_worker_in_a_task(self, cluster: Cluster) -> None:
        """Wait until a Python worker learns users whose models its executor writes, and kill it."""
        drafts = self.run / "_drafts" / "train"

        def written(worker: Daemon) -> set[str]:
            return {path for pid in worker.executors() for path in open_below(pid, drafts)}

        def caught(worker: Daemon, pid: int) -> bool:
            # one that waits for work does not compute
            if status_of(pid)[0] != "R":
                return False
            send(pid, signal.SIGSTOP)
            begun = written(worker)
            # of one that had just handed over its last rows, the executor closes the file
            time.sleep(2)
            if begun & written(worker):
                return True
            send(pid, signal.SIGCONT)
            return False

        def look() -> int | None:
            found = ((w, pid) for w in cluster.workers for pid in w.python_workers())
            return next((pid for worker, pid in found if caught(worker, pid)), None)

        send(eventually(look, "a Python worker that learns", 120), signal.SIGKILL)

    def is_published(self) -> bool:
        return "models" in names(self.run)

    def check(self) -> None:
        """See that the models are those of the undisturbed run, to the byte."""
        assert table_bytes(self.run / "models") == self.expected
        assert not (self.run / "_drafts" / "train").exists()


@pytest.fixture(scope="module")
def undisturbed(run_pipeline: Callable[..., Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Learn on this machine alone, and return the store."""
    folder = tmp_path_factory.mktemp("undisturbed")
    ratings = write_ratings(folder / "ratings")
    config = write_config(folder / "local.yaml", folder / "store", ratings, **EIGHT_WAVES)
    run_pipeline(load_config(config), without=LATER)
    return folder / "store"


@pytest.fixture
def work(undisturbed: Path, tmp_path: Path) -> Work:
    store = tmp_path / "store"
    shutil.copytree(undisturbed, store)
    run = store / "runs" / "run_id=one"
    expected = table_bytes(run / "models")
    shutil.rmtree(run / "models")
    (run / "manifest" / "train.json").unlink()
    # the settings that decide are those of before; where the ratings were nobody asks any more
    config = write_config(tmp_path / "c.yaml", store, tmp_path / "ratings", **EIGHT_WAVES)
    return Work(config, run, expected)


@pytest.fixture
def gateway(gateway: Gateway) -> Gateway:
    """Return one whose environment is on every node already."""
    return replace(gateway, worker_python=str(gateway.environment / "bin" / "python"))


@pytest.fixture
def own_cluster(package: Path, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that may be broken."""
    running = Cluster(tmp_path / "cluster")
    yield running
    running.stop()


@pytest.mark.fault(
    "an executor is killed in the middle of a task",
    "Spark starts another one and repeats the task: the same bytes",
)
def test_an_executor_is_killed(gateway: Gateway, cluster: Cluster, work: Work) -> None:
    with gateway.submitted(*work.command) as submission:
        work.after_waves(1)
        work.kill_executor_in_a_task(cluster)
        said = submission.succeeds()
    assert "ExecutorLostFailure" in said
    work.check()


@pytest.mark.fault(
    "a Python worker of an executor is killed in the middle of a task, as by the out-of-memory "
    "killer",
    "Spark repeats the task, its users in processes of their own: the same bytes",
)
@pytest.mark.timeout(900)
def test_a_python_worker_is_killed(gateway: Gateway, cluster: Cluster, work: Work) -> None:
    with gateway.submitted(*work.command) as submission:
        work.after_waves(1)
        work.kill_python_worker_in_a_task(cluster)
        said = submission.succeeds(500)
    assert "Python worker exited unexpectedly" in said
    # it was no user's fault
    assert "failed by" not in said
    work.check()


@pytest.mark.fault(
    "users on a cluster who end the Python worker that learns them, or ask for too much memory",
    "Spark repeats the task, the users in processes of their own: each is a failed user; all "
    "other rows as undisturbed",
)
@pytest.mark.timeout(1200)
def test_poisoned_users_are_failed_users(
    gateway: Gateway, cluster: Cluster, work: Work, undisturbed: Path
) -> None:
    users, poison = poison_users(work.run)
    conf = {"spark.executorEnv.PYTHONPATH": str(PATH), "spark.executorEnv.POISON": poison}
    with gateway.submitted(*work.command, conf=conf) as submission:
        said = submission.succeeds(900)
    assert "Python worker exited unexpectedly" in said
    # Spark's own second attempt was careful: no wave had to be made again
    assert "[train: warning] a Python worker died" not in said
    assert failed_users(work.run) == {(user, "slow"): why for user, why in reasons(users).items()}
    whole = undisturbed / "runs" / "run_id=one"
    assert learned(work.run, users, "slow") == learned(whole, users, "slow")


@pytest.mark.fault(
    "a worker's machine is lost for good", "the others do its tasks: later, the same bytes"
)
def test_a_worker_is_lost(gateway: Gateway, own_cluster: Cluster, work: Work) -> None:
    gateway.master = own_cluster.url
    with gateway.submitted(*work.command) as submission:
        work.after_waves(1)
        own_cluster.workers[1].kill()
        said = submission.succeeds()
    assert "Lost executor" in said
    assert own_cluster.state()["aliveworkers"] == 1
    work.check()


@pytest.mark.fault(
    "the driver is killed inside the first wave",
    "nothing is visible; the same command again does all of it: the same bytes",
)
def test_the_driver_is_killed_inside_a_wave(gateway: Gateway, work: Work) -> None:
    with gateway.submitted(*work.command) as submission:
        begun = "_drafts/train/waves-*/models/0*/_temporary"
        eventually(lambda: any(work.run.glob(begun)), "a wave that has begun", 300)
        submission.kill()
    assert work.waves_saved() == 0
    assert not work.is_published()
    with gateway.submitted(*work.command) as submission:
        said = submission.succeeds()
    assert "waves are done already" not in said
    work.check()


@pytest.mark.fault(
    "the driver is killed when some waves are saved",
    "nothing is visible; the same command again does the other waves: the same bytes",
)
def test_the_driver_is_killed_between_waves(gateway: Gateway, work: Work) -> None:
    with gateway.submitted(*work.command) as submission:
        work.after_waves(3)
        submission.kill()
    saved = work.waves_saved()
    assert saved >= 3
    assert not work.is_published()
    with gateway.submitted(*work.command) as submission:
        said = submission.succeeds()
    assert f"[train] {saved} of 8 waves are done already" in said
    work.check()


def lose_feature_files(worker: Daemon) -> list[Path]:
    """Delete them from the node, as a cleaner of temporary files does, and end who has them."""
    (executor,) = worker.executors()
    folder = folder_of(executor)
    lost = [*folder.glob("*.npy"), *folder.glob("*.arrow")]
    for path in lost:
        path.unlink()
    for pid, line in processes_below(folder).items():
        if "pyspark.daemon" in line:
            send(pid, signal.SIGKILL)
    return lost


@pytest.mark.fault(
    "feature files are missing on one node",
    "its tasks are repeated on others, and a line names file and node: the same bytes",
)
def test_feature_files_are_missing_on_one_node(
    gateway: Gateway, cluster: Cluster, work: Work
) -> None:
    with gateway.submitted(*work.command) as submission:
        work.after_waves(1)
        lost = lose_feature_files(cluster.workers[0])
        said = submission.succeeds()
    (matrix,) = [path for path in lost if path.name.startswith("matrix-")]
    assert f"feature file {matrix.name} is missing on" in said
    assert f"in {matrix.parent}" in said
    work.check()


def refused(gateway: Gateway, work: Work, code: int) -> str:
    """Return the one line with which the command ends before it has done anything."""
    with gateway.submitted(*work.command) as submission:
        assert submission.ends() == code, submission.said()[-3000:]
        said = submission.said()
    assert "Traceback" not in said
    assert not list(work.run.glob("_probe*"))
    assert not (work.run / "_drafts" / "train").exists()
    return [line for line in said.splitlines() if line.startswith("spark-rank: ")][-1]


def without(folder: Path) -> tuple[str, ...]:
    """Return how a command begins that sees an empty directory there."""
    hidden = f'mount -t tmpfs none "{folder}" && exec "$@"'
    return "unshare", "--mount", "sh", "-c", hidden, "sh"


@pytest.mark.fault(
    "one node has another disk at the store's path",
    "exit code 2 before anything is done; the line names the node",
)
def test_a_node_does_not_see_the_store(gateway: Gateway, work: Work, tmp_path: Path) -> None:
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can give a process another view of the disks")
    store = work.run.parents[1]
    blind = Node(NODES[1].address, without(store))
    cluster = Cluster(tmp_path / "cluster", (NODES[0], blind))
    try:
        gateway.master = cluster.url
        said = refused(gateway, work, 2)
    finally:
        cluster.stop()
    assert "does not see the driver's files there: use a directory" in said


@pytest.mark.fault(
    "the machines have no such Python",
    "exit code 1 before anything is done; one line says what is looked for, and what to give",
)
def test_there_is_no_python(gateway: Gateway, cluster: Cluster, work: Work) -> None:
    gateway.worker_python = "/nowhere/bin/python"
    said = refused(gateway, work, 1)
    assert 'executors cannot work: Cannot run program "/nowhere/bin/python"' in said
    assert "`make package` packs, with --archives and PYSPARK_PYTHON" in said


@pytest.mark.fault(
    "a machine has another version of the package, or of NumPy, SciPy, numba, pyarrow, pandas",
    "exit code 2 before anything is done; one line names machine and versions",
)
def test_the_machines_have_another_version(
    gateway: Gateway, cluster: Cluster, work: Work, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    subprocess.run(["cp", "-al", str(gateway.environment), str(other)], check=True)
    (module,) = other.glob("lib/*/site-packages/spark_rank/errors.py")
    text = module.read_text()
    module.unlink()  # it is a link to the file of the gateway's own
    module.write_text(f"{text}\nOLD = True\n")
    gateway.worker_python = str(other / "bin" / "python")
    said = refused(gateway, work, 2)
    assert " have spark_rank 0.1.0 (" in said
    assert "the driver has 0.1.0 (" in said


@pytest.fixture
def network() -> Iterator[Network]:
    found = obstacle()
    if found is not None:
        pytest.skip(found)
    made = Network(nodes=2)
    yield made
    made.remove()


# how long a machine may be silent
IMPATIENT = {
    "spark.network.timeout": "12s",
    "spark.network.timeoutInterval": "3s",
    "spark.executor.heartbeatInterval": "2s",
}


@pytest.mark.fault(
    "a worker's machine is cut off from the network, and goes on writing into the store",
    "after spark.network.timeout others do its tasks: the same bytes",
)
def test_a_machine_is_cut_off(
    gateway: Gateway, network: Network, package: Path, work: Work, tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path / "cluster", network.nodes, network.hub)
    try:
        gateway.master, gateway.node = cluster.url, network.hub
        with gateway.submitted(*work.command, conf=IMPATIENT) as submission:
            work.after_waves(1)
            network.cut(0)
            said = submission.succeeds()
            assert cluster.workers[0].executors()
    finally:
        cluster.stop()
    assert f"on {network.nodes[0].address}: Executor heartbeat timed out" in said
    work.check()
