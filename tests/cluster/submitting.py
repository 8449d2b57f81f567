"""spark-submit as docs/guide/cluster.md tells it: from a packed environment."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.standalone import SPARK_HOME, Node, clean_environment

# small, for executors of one gigabyte; the first task waits for both of them, so that a run has
# as many cores from the beginning as it was planned for
SETTINGS = {
    "spark.executor.memory": "640m",
    "spark.executor.cores": "1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


@dataclass
class Submission:
    """A spark-submit command that was started."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        return self.log.read_text()

    def succeeds(self, seconds: float = 200) -> str:
        """Wait until it has ended well; return what it said."""
        assert self.ends(seconds) == 0, self.said()[-6000:]
        return self.said()

    def ends(self, seconds: float = 200) -> int:
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still going on after {seconds} s:\n{self.said()}") from None

    def kill(self) -> None:
        """End driver and JVM at once."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=10)


@dataclass
class Gateway:
    """The machine where commands are submitted: unpacked environment, package, working folder."""

    package: Path
    environment: Path
    folder: Path
    master: str
    # what a path from here names comes with the command; another one is on every node already
    worker_python: str = "./environment/bin/python"
    node: Node = field(default_factory=lambda: Node("127.0.0.1"))
    _count: int = 0

    @contextmanager
    def submitted(
        self, script: str | Path, *arguments: str, conf: Mapping[str, str] | None = None
    ) -> Iterator[Submission]:
        """Start a command; whatever happens, it is not left behind."""
        self._count += 1
        log = self.folder / f"submission-{self._count}.txt"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command(script, arguments, conf or {}), stdout=output, stderr=output,
                stdin=subprocess.DEVNULL, cwd=self.folder, start_new_session=True,
                env=self._environment(),
            )  # fmt: skip
        submission = Submission(process, log)
        try:
            yield submission
        finally:
            submission.kill()

    def _command(
        self, script: str | Path, arguments: tuple[str, ...], conf: Mapping[str, str]
    ) -> list[str]:
        host = {"spark.driver.host": self.node.address,
                "spark.driver.bindAddress": self.node.address}  # fmt: skip
        settings = [
            option
            for name, value in {**SETTINGS, **host, **conf}.items()
            for option in ("--conf", f"{name}={value}")
        ]
        archives = ["--archives", f"{self.package / 'environment.tar.gz'}#environment"]
        return [*self.node.prefix, str(SPARK_HOME / "bin" / "spark-submit"),
                "--master", self.master, "--driver-memory", "1g",
                *(archives if self.worker_python.startswith("./") else []), *settings,
                str(self.package / "jobs" / script), *arguments]  # fmt: skip

    def _environment(self) -> dict[str, str]:
        # the local run has them too; the nodes' own environments do not
        kernels = {n: value for n, value in os.environ.items() if n.startswith("OPENBLAS_")}
        return clean_environment({
            **kernels,
            "PYSPARK_PYTHON": self.worker_python,
            "PYSPARK_DRIVER_PYTHON": str(self.environment / "bin" / "python"),
            "SPARK_LOCAL_IP": self.node.address,
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
            "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1",
        })  # fmt: skip
