"""Where numba keeps compiled functions when neither the package nor the home can be written.

numba looks for a place when a function is declared, and ends the import where it finds none: so
must a service without a home find it, whose package belongs to root. To be called before anything
is declared; it imports nothing that takes time.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

_SETTING = "NUMBA_CACHE_DIR"


def find_place(package: Path) -> None:
    """Name a private directory for temporary files to numba, unless it has a better place."""
    if os.environ.get(_SETTING) or _is_writable(package / "__pycache__"):
        return
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if _is_writable(Path(caches) / "numba"):
        return
    os.environ[_SETTING] = str(_private_directory())
    numba = sys.modules.get("numba")  # has read its settings already
    if numba is not None:
        numba.config.CACHE_DIR = os.environ[_SETTING]


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
