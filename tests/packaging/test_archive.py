"""The packed environment: the same bytes every time, and it works wherever it is unpacked."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from spark_rank.packaging.archive import File, Link, PackageError, write_archive
from spark_rank.packaging.distributions import check_locked, installed_files, with_dependencies
from spark_rank.packaging.environment import own_interpreter, requirements_of, skeleton, wheel_files
from spark_rank.packaging.package import clear

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def unpack(archive: Path, folder: Path) -> Path:
    folder.mkdir()
    # as Spark does it
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder)], check=True)
    return folder


def test_an_environment_works_wherever_it_is_unpacked(tmp_path: Path) -> None:
    module = File(b"import sys\nprint(__file__, sys.prefix, sys.argv[1:])\n")
    entries = {**skeleton(own_interpreter()), f"{SITE}/spark_rank.py": module}
    write_archive(tmp_path / "e.tar.gz", entries, 1)
    for place in ("here", "some where else"):
        folder = unpack(tmp_path / "e.tar.gz", tmp_path / place)
        link = tmp_path / f"link to {place}"
        link.symlink_to(folder / "bin" / "spark-rank")
        for command in ([folder / "bin/python", "-m", "spark_rank"], [link]):
            shown = subprocess.run(
                [*map(str, command), "a b"], capture_output=True, text=True, check=True,
                cwd="/", env={},
            ).stdout  # fmt: skip
            assert shown == f"{folder}/{SITE}/spark_rank.py {folder} ['a b']\n"


def test_only_an_older_package_is_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "letters" / "dear.txt"
    mine.parent.mkdir()
    mine.write_text("yours")
    with pytest.raises(PackageError, match="is not empty and not a package"):
        clear(mine.parent)
    assert mine.read_text() == "yours"
    older = tmp_path / "package"
    older.mkdir()
    (older / "spark_rank-0.1.0-py3-none-any.whl").touch()
    for folder in (older, tmp_path / "new" / "one"):
        clear(folder)
        assert not list(folder.iterdir())


def test_the_same_entries_make_the_same_bytes(tmp_path: Path) -> None:
    entries = {"b": File(b"two", executable=True), "a": File(b"one"), "c": Link("a")}
    write_archive(tmp_path / "first.tar.gz", entries, 1)
    write_archive(tmp_path / "second.tar.gz", dict(reversed(entries.items())), 1)
    assert (tmp_path / "first.tar.gz").read_bytes() == (tmp_path / "second.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "first.tar.gz") as archive:
        members = archive.getmembers()
    assert [(m.name, m.mode, m.linkname) for m in members] == [
        ("a", 0o644, ""), ("b", 0o755, ""), ("c", 0o777, "a"),
    ]  # fmt: skip
    assert {(m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, "", "")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.tar.gz", "second.tar.gz"]


def test_other_content_has_another_time(tmp_path: Path) -> None:
    """What Python and numba compiled of one version is never taken for another one's."""
    times = []
    for number, text in enumerate((b"limit = 1", b"limit = 2", b"limit = 1")):
        write_archive(tmp_path / f"{number}.tar.gz", {"m.py": File(text)}, 1)
        with tarfile.open(tmp_path / f"{number}.tar.gz") as archive:
            times.append(archive.getmember("m.py").mtime)
    assert times[0] == times[2] != times[1]


def test_a_file_that_was_changed_after_its_installation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(b"limit = 1")
    entry = File(path, sha256=hashlib.sha256(b"limit = 1").digest())
    assert entry.read() == b"limit = 1"
    path.write_bytes(b"limit = 2")
    with pytest.raises(PackageError, match=r"m\.py: was changed since its installation"):
        write_archive(tmp_path / "e.tar.gz", {"m.py": entry}, 1)
    assert not (tmp_path / "e.tar.gz").exists()


def test_what_runs_is_packed_and_what_tests_is_not() -> None:
    required = distribution("spark-rank").requires or []
    found = {one.metadata["Name"].lower(): one for one in with_dependencies(required)}
    needed = {"pyspark", "py4j", "numpy", "scipy", "pandas", "pyarrow", "numba", "llvmlite"}
    assert needed <= found.keys()
    assert not found.keys() & {"pytest", "mypy", "ruff", "hypothesis", "duckdb", "setuptools"}
    check_locked(found.values(), Path(__file__).parents[2] / "conf" / "requirements.lock")
    places = {place for place, _ in installed_files(found["pyspark"])}
    assert {"pyspark/worker.py", "pyspark/sql/session.py"} <= places
    assert not [place for place in places if place.endswith(".jar") or "bin" in place.split("/")]


def test_files_are_listed_with_the_checksums_they_were_installed_with() -> None:
    found = dict(installed_files(distribution("threadpoolctl")))
    module = found["threadpoolctl.py"]
    assert module.sha256 is not None
    assert module.read().startswith(b'"""threadpoolctl')


class Fake(Distribution):
    """An installed package that is not there."""

    def __init__(self, version: str) -> None:
        self.text = f"Metadata-Version: 2.1\nName: Some_Package\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self.text if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


def test_another_version_than_the_locks_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    lock.write_text(
        "some-package==1.0 ; python_full_version < '3.12' \\\n    --hash=sha256:00\n"
        "some-package==1.1 ; python_full_version >= '3.12' \\\n    --hash=sha256:00\n"
    )
    check_locked([Fake("1.0"), Fake("1.1")], lock)
    with pytest.raises(PackageError, match=r"some-package 1\.2 is installed, .* 1\.0 or 1\.1: run"):
        check_locked([Fake("1.2")], lock)
    lock.write_text("other==1.2 \\\n")
    with pytest.raises(PackageError, match=r"has no version of it: run `make setup`"):
        check_locked([Fake("1.2")], lock)


def test_what_is_not_installed_is_named() -> None:
    unused = ["no-such-package; python_version < '3'", "other; extra == 'dev'"]
    assert with_dependencies(unused) == []
    with pytest.raises(PackageError, match="no-such-package is not installed: run `make setup`"):
        with_dependencies(["no-such-package>=1"])


def test_a_wheels_files_and_requirements(tmp_path: Path) -> None:
    wheel = tmp_path / "some-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some/plain.py", "x = 1")
        archive.writestr(
            "some-1.dist-info/METADATA", "Name: some\nRequires-Dist: a>=1\nRequires-Dist: b\n\ntext"
        )
        script = zipfile.ZipInfo("some/run")
        script.external_attr = 0o755 << 16
        archive.writestr(script, "#!/bin/sh")
    assert requirements_of(wheel) == ["a>=1", "b"]
    found = dict(wheel_files(wheel))
    assert found["some/plain.py"] == File(b"x = 1")
    assert found["some/run"] == File(b"#!/bin/sh", executable=True)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("some-1.data/scripts/x", "")
    with pytest.raises(PackageError, match=r"some-1\.data/scripts/x has no place"):
        dict(wheel_files(wheel))


def test_an_interpreter_is_named_by_its_full_path() -> None:
    with pytest.raises(PackageError, match=r"python3\.11: name the interpreter by its full path"):
        skeleton(Path("python3.11"))
