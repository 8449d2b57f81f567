"""A packed Python environment that works in any folder, with the interpreter it was made for.

It is a virtual environment whose interpreter is a link to the machine's interpreter. No file
contains the environment's own path, so it needs no activation and no change after unpacking.
"""

from __future__ import annotations

import platform
import sys
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

from spark_rank.packaging.archive import File, Link, PackageError
from spark_rank.packaging.distributions import check_locked, installed_files, with_dependencies

_COMMAND = b"""#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/python" -m spark_rank "$@"
"""


def own_interpreter() -> Path:
    """Return the interpreter that this environment was made from."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Path(sys.base_prefix) / "bin" / name


def environment(wheel: Path, lock: Path, interpreter: Path) -> dict[str, File | Link]:
    """Return the environment's files: the wheel, and its requirements as installed here.

    `interpreter` is the path of Python on the machines that unpack the environment.
    """
    packages = with_dependencies(requirements_of(wheel))
    check_locked(packages, lock)
    entries = skeleton(interpreter)
    site = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    for package in packages:
        entries |= {f"{site}/{place}": file for place, file in installed_files(package)}
    entries |= {f"{site}/{place}": file for place, file in wheel_files(wheel)}
    return entries


def skeleton(interpreter: Path) -> dict[str, File | Link]:
    """Return the files of an empty environment, with the command `spark-rank`."""
    if not interpreter.is_absolute():
        raise PackageError(f"{interpreter}: name the interpreter by its full path")
    settings = (
        f"home = {interpreter.parent}\n"
        "include-system-site-packages = false\n"
        f"version = {platform.python_version()}\n"
    )
    return {
        "pyvenv.cfg": File(settings.encode()),
        "bin/python": Link(str(interpreter)),
        "bin/python3": Link("python"),
        "bin/spark-rank": File(_COMMAND, executable=True),
    }


def requirements_of(wheel: Path) -> list[str]:
    """Return the requirements of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    return metadata.get_all("Requires-Dist", [])


def wheel_files(wheel: Path) -> Iterator[tuple[str, File]]:
    """Yield a wheel's files by their place in site-packages."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            if PurePosixPath(info.filename).parts[0].endswith(".data"):
                raise PackageError(f"{wheel}: {info.filename} has no place in site-packages")
            executable = bool(info.external_attr >> 16 & 0o100)
            yield info.filename, File(archive.read(info), executable)
