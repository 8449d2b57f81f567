"""The cache of compiled functions on disk: one directory for every state of their sources.

A change in any module that declares compiled functions starts a new directory, so machine code
never outlives its source. The directory's name depends on the content of the modules, not on their
path: containers that unpack the same environment into different folders share a directory.
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
# how many directories of other sources stay: another checkout or version may use them
_KEPT = 4
_IDLE_SECONDS = 3600.0
_MARKS = (b"\nfrom numba", b"\nfrom spark_rank.compiled import")


def find_home(package: Path) -> Path:
    """Return the first writable directory of: NUMBA_CACHE_DIR, the package's, the user's cache.

    If none is writable, return a temporary directory. NUMBA_CACHE_DIR then passes it on to child
    processes.
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
    """Return the cache directory for the present sources and this version of the compiler.

    The process that makes it also removes directories of older sources.
    """
    package = Path(__file__).parent
    home = find_home(package)
    directory = home / (_PREFIX + sources_digest(resources.files(__package__ or ""), compiler))
    is_new = not directory.exists()
    directory.mkdir(exist_ok=True)
    os.utime(directory)
    if is_new:
        _remove_old(home, directory)
        _remove_scattered(package)
    return directory


def sources_digest(package: Traversable, compiler: str) -> str:
    """Return a checksum of the modules that declare compiled functions, in a folder or a zip.

    Other modules do not matter: compiled functions take their constants from these alone.
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


def _remove_old(home: Path, directory: Path) -> None:
    """Remove directories of other sources, except those used last.

    numba makes a missing directory again, so a process that still runs old sources only loses
    time.
    """
    others = [path for path in home.glob(_PREFIX + "*") if path != directory]
    oldest = time.time() - _IDLE_SECONDS
    for path in sorted(others, key=_last_use, reverse=True)[_KEPT:]:
        if _last_use(path) < oldest:
            shutil.rmtree(path, ignore_errors=True)


def _remove_scattered(package: Path) -> None:
    """Remove numba's own cache files beside the modules, which no version reads any more."""
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
    """Return the user's own temporary directory; a new one if another user has taken its name.

    The machine code in it is run without a check, so nobody else may write there.
    """
    directory = Path(tempfile.gettempdir()) / f"spark_rank-numba-{os.getuid()}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        status = directory.lstat()
        is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        if is_own and not status.st_mode & 0o077 and _is_writable(directory):
            return directory
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="spark_rank-numba-"))
