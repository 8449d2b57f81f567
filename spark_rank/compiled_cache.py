"""Where compiled functions are kept on disk: a directory for every state of their sources.

A change in any module that declares compiled functions starts a new directory, so machine code
never outlives the source that it was made of. The name depends on what the modules hold and not
on where they lie: containers that unpack the same environment into other folders share one.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

_CHOSEN = "NUMBA_CACHE_DIR"
_PREFIX = "spark_rank-compiled-"
# directories of other sources that stay: another checkout or another version may use them
_KEPT = 4
_IDLE_SECONDS = 3600.0
_MARKS = (b"\nfrom numba", b"\nfrom spark_rank.compiled import")


def find_home(package: Path) -> Path:
    """Return the first directory that can be written: the chosen one, the package's, the user's.

    A directory for temporary files is named to the processes that this one starts: they find the
    same one.
    """
    chosen = os.environ.get(_CHOSEN)
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    candidates = [package / "__pycache__", Path(caches) / "spark_rank"]
    for candidate in [Path(chosen), *candidates] if chosen else candidates:
        if _is_writable(candidate):
            return candidate
    os.environ[_CHOSEN] = str(_private_directory())
    return Path(os.environ[_CHOSEN])


@cache
def place(compiler: str) -> Path:
    """Return the directory of these sources, compiled by this version of the compiler.

    A process that makes it removes what former sources have left.
    """
    package = Path(__file__).parent
    home = find_home(package)
    own = home / (_PREFIX + sources_digest(resources.files(__package__ or ""), compiler))
    is_new = not own.exists()
    own.mkdir(exist_ok=True)
    os.utime(own)
    if is_new:
        _remove_old(home, own)
        _remove_scattered(package)
    return own


def sources_digest(package: Traversable, compiler: str) -> str:
    """Return a checksum of the modules that declare compiled functions, in a folder or a zip.

    Nothing else is compiled into them: compiled functions take their constants from such modules.
    """
    digest = hashlib.sha256(compiler.encode())
    for name, source in _modules(package):
        if any(mark in source for mark in _MARKS):
            digest.update(f"{name} {hashlib.sha256(source).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def _modules(folder: Traversable, within: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _modules(entry, f"{within}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield within + entry.name, entry.read_bytes()


def _remove_old(home: Path, own: Path) -> None:
    """Remove the directories of other sources but the last used ones.

    numba makes a directory anew where it is gone, so a process that still works with old sources
    loses nothing but time.
    """
    others = [path for path in home.glob(_PREFIX + "*") if path != own]
    oldest = time.time() - _IDLE_SECONDS
    for path in sorted(others, key=_last_use, reverse=True)[_KEPT:]:
        if _last_use(path) < oldest:
            shutil.rmtree(path, ignore_errors=True)


def _remove_scattered(package: Path) -> None:
    """Remove what numba has put beside the modules, where no version looks for it any more."""
    for path in package.glob("**/__pycache__/*.nb[ic]"):
        with contextlib.suppress(OSError):
            path.unlink()


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process has removed it
        return math.inf


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _private_directory() -> Path:
    """Return the user's own directory; where a stranger has taken its name, a new one.

    What lies in it is run as it is: nobody else may write there.
    """
    place = Path(tempfile.gettempdir()) / f"spark_rank-numba-{os.getuid()}"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
        own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if own and not found.st_mode & 0o077 and _is_writable(place):
            return place
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="spark_rank-numba-"))
