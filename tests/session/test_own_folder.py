"""A start removes what dead processes of this package left, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from spark_rank.session import own_folder as module
from spark_rank.session.own_folder import make_folder, remove_leftovers, temporary_files_in
from spark_rank.session.process_identity import ProcessIdentity

OWN = ProcessIdentity.own()


@pytest.fixture
def dead() -> ProcessIdentity:
    """Return a process that has ended."""
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    identity = ProcessIdentity.of(process.pid)
    process.communicate(b"\n")
    return identity


def filled(folder: Path) -> Path:
    (folder / "blockmgr-1" / "0a").mkdir(parents=True)
    (folder / "blockmgr-1" / "0a" / "shuffle").write_text("data")
    return folder


def test_what_a_dead_process_left_is_removed_whole(tmp_path: Path, dead: ProcessIdentity) -> None:
    left = [filled(make_folder(tmp_path, dead)) for _ in range(2)]
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in left)
    assert remove_leftovers(tmp_path, OWN) == sorted(left)
    assert list(tmp_path.iterdir()) == []
    assert remove_leftovers(tmp_path / "nowhere", OWN) == []


def test_what_may_be_in_use_or_is_no_folder_of_ours_stays(
    tmp_path: Path, dead: ProcessIdentity
) -> None:
    precious = filled(tmp_path / "precious")
    mark = make_folder(tmp_path, dead).name
    os.rmdir(tmp_path / mark)
    kept = [
        make_folder(tmp_path, OWN),
        make_folder(tmp_path, ProcessIdentity.of(os.getppid())),
        # of another machine, or of a boot before this one
        make_folder(tmp_path, replace(dead, host="elsewhere")),
        make_folder(tmp_path, replace(dead, machine="another boot")),
        make_folder(tmp_path, replace(dead, machine=None, started=None)),
        *[tmp_path / name for name in ("spark_rank-numba-0", "spark-1", "blockmgr-2", "artifacts-3",
                                       f"x{mark}", f"{mark}.old", "spark_rank-1-2-3")],
    ]  # fmt: skip
    for path in kept:
        path.mkdir(exist_ok=True)
        filled(path)
    (tmp_path / mark).symlink_to(precious)
    (tmp_path / f"{mark}2").write_text("a file")
    inside = make_folder(tmp_path, dead)
    (inside / "link").symlink_to(precious)
    before = {path for path in tmp_path.rglob("*") if inside not in (path, *path.parents)}
    assert remove_leftovers(tmp_path, OWN) == [inside]
    assert set(tmp_path.rglob("*")) == before


def test_a_pid_that_lives_again_is_not_the_process_that_left_it(tmp_path: Path) -> None:
    assert OWN.started is not None
    earlier = make_folder(tmp_path, replace(OWN, started=str(int(OWN.started) - 1)))
    own = make_folder(tmp_path, OWN)
    assert remove_leftovers(tmp_path, OWN) == [earlier]
    assert list(tmp_path.iterdir()) == [own]


def test_folders_of_another_user_stay(
    tmp_path: Path, dead: ProcessIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = make_folder(tmp_path, dead)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert remove_leftovers(tmp_path, OWN) == []
    assert left.exists()


def test_several_starts_remove_the_same_folders_at_once(
    tmp_path: Path, dead: ProcessIdentity
) -> None:
    for _ in range(30):
        filled(make_folder(tmp_path, dead))
    own = make_folder(tmp_path, OWN)
    with ThreadPoolExecutor(4) as pool:
        starts = [pool.submit(remove_leftovers, tmp_path, OWN) for _ in range(4)]
        for start in starts:
            start.result()  # raises what it raised
    assert list(tmp_path.iterdir()) == [own]


def test_a_process_removes_its_own_folder_at_its_end(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from spark_rank.session.own_folder import own_folder\n"
        "folder = own_folder(Path(sys.argv[1])); assert folder == own_folder(Path(sys.argv[1]))\n"
        "(folder / 'file').write_text('x'); os.fork() or sys.exit()\n"
        "os.wait(); assert folder.exists(), 'removed by the child'; print(folder.name)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(module._PREFIX)
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_go_there_for_a_block_of_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (None, "/somewhere"):
        monkeypatch.delenv("TMPDIR", raising=False)
        if variable is not None:
            monkeypatch.setenv("TMPDIR", variable)
        before = tempfile.gettempdir()
        with temporary_files_in(tmp_path):
            assert (os.environ["TMPDIR"], tempfile.gettempdir()) == (str(tmp_path), str(tmp_path))
        assert (os.environ.get("TMPDIR"), tempfile.gettempdir()) == (variable, before)
