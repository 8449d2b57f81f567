"""One folder for all that this process, its JVM and its workers put aside while they run.

Its name tells whose it is, so that a later start removes what a process left that was killed.
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
# pid, start in clock ticks, machine, and what tells apart folders of one process
_NAME = re.compile(rf"{_PREFIX}(\d+)-(\d+)-([0-9a-f]{{12}})-\w+")


def make_folder(parent: Path, owner: ProcessIdentity) -> Path:
    """Make a folder that only this user can look into, with a name that tells whose it is."""
    if owner.machine is None or owner.started is None:
        # nobody could tell later whether the process lives: nobody will remove it
        return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    mark = f"{_PREFIX}{owner.pid}-{owner.started}-{_digest(owner)}-"
    return Path(tempfile.mkdtemp(prefix=mark, dir=parent))


def remove_leftovers(parent: Path, observer: ProcessIdentity) -> list[Path]:
    """Remove this user's folders of processes that have ended on this machine; return them.

    Two starts may do this at the same time: what is gone already is no error.
    """
    left = [path for path in _folders(parent) if _owner_is_dead(path.name, observer)]
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return left


def _folders(parent: Path) -> Iterator[Path]:
    try:
        names = sorted(name for name in os.listdir(parent) if name.startswith(_PREFIX))
    except OSError:
        return
    for name in names:
        path = parent / name
        try:
            found = path.lstat()
        except OSError:
            continue  # another start has removed it
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            yield path


def _owner_is_dead(name: str, observer: ProcessIdentity) -> bool:
    found = _NAME.fullmatch(name)
    if found is None or found[3] != _digest(observer):
        return False
    owner = ProcessIdentity(observer.host, int(found[1]), observer.machine, found[2])
    return owner.is_dead(observer)


def _digest(identity: ProcessIdentity) -> str:
    text = f"{identity.host} {identity.machine}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def own_folder(parent: Path) -> Path:
    """Return this process's folder below `parent`; it goes when the process ends.

    The first call removes what dead processes left there.
    """
    own = ProcessIdentity.own()
    remove_leftovers(parent, own)
    folder = make_folder(parent, own)
    atexit.register(_remove, folder, own.pid)
    return folder


def _remove(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # a child that was forked has the same functions to call at its end
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Let this process and the children that it starts put their temporary files into a folder."""
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
