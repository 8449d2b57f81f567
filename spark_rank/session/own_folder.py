"""One folder for the temporary files of this process, its JVM and its workers.

Its name identifies the process, so that a later start removes the folder of a killed process.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from spark_rank.session.process_identity import ProcessIdentity

_PREFIX = "spark_rank-"
# pid, start in clock ticks, machine, and a random part that separates folders of one process
_NAME = re.compile(rf"{_PREFIX}(\d+)-(\d+)-([0-9a-f]{{12}})-\w+")


def make_folder(parent: Path, owner: ProcessIdentity) -> Path:
    """Make a folder that only this user can read, with a name that identifies its process."""
    if owner.machine is None or owner.started is None:
        # later starts cannot tell whether the process lives, so they must not remove the folder
        return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    mark = f"{_PREFIX}{owner.pid}-{owner.started}-{_digest(owner)}-"
    return Path(tempfile.mkdtemp(prefix=mark, dir=parent))


def remove_leftovers(parent: Path, observer: ProcessIdentity) -> list[Path]:
    """Remove this user's folders of processes that have ended on this machine; return them.

    Two starts may do this at the same time, so a folder that is already gone is no error.
    """
    leftovers = [path for path in _folders(parent) if _owner_is_dead(path.name, observer)]
    for path in leftovers:
        shutil.rmtree(path, ignore_errors=True)
    return leftovers


def _folders(parent: Path) -> Iterator[Path]:
    try:
        names = sorted(name for name in os.listdir(parent) if name.startswith(_PREFIX))
    except OSError:
        return
    for name in names:
        path = parent / name
        try:
            status = path.lstat()
        except OSError:
            continue  # another start has removed it
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
            yield path


def _owner_is_dead(name: str, observer: ProcessIdentity) -> bool:
    match = _NAME.fullmatch(name)
    if match is None or match[3] != _digest(observer):
        return False
    owner = ProcessIdentity(observer.host, int(match[1]), observer.machine, match[2])
    return owner.is_dead(observer)


def _digest(identity: ProcessIdentity) -> str:
    text = f"{identity.host} {identity.machine}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def own_folder(parent: Path) -> Path:
    """Return this process's folder below `parent`, which is removed when the process ends.

    The first call also removes the folders of processes that are dead.
    """
    identity = ProcessIdentity.own()
    remove_leftovers(parent, identity)
    folder = make_folder(parent, identity)
    atexit.register(_remove, folder, identity.pid)
    return folder


def _remove(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # a forked child inherits this function but must not remove the folder
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Let this process and the children that it starts use a folder for their temporary files."""
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        if variable is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = variable
