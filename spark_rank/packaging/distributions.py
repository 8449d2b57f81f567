"""The packages that spark_rank needs at run time, as they are installed in this environment."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from spark_rank.packaging.archive import File, PackageError

# workers need only the Python part of pyspark: Spark's installation has the JVM part
_NOT_PACKED = {
    "pyspark": {"jars", "bin", "sbin", "data", "examples", "licenses", "python"},
}
_LEFT_OUT = {"tests", "__pycache__"}


def with_dependencies(requirements: Iterable[str]) -> list[Distribution]:
    """Return the installed packages of the requirements and of all they require, by name."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        # the plain package does not require what an extra requires
        if name in found or not _applies(requirement):
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            raise PackageError(f"{name} is not installed: run `make setup`") from None
        waiting += [Requirement(text) for text in found[name].requires or []]
    return [found[name] for name in sorted(found)]


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def check_locked(distributions: Iterable[Distribution], lock: Path) -> None:
    """Raise `PackageError` unless the lock has every installed version."""
    pinned: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock.read_text(), re.MULTILINE):
        pinned.setdefault(canonicalize_name(name), set()).add(version)
    for package in distributions:
        name = canonicalize_name(package.metadata["Name"])
        if package.version not in pinned.get(name, set()):
            wanted = " or ".join(sorted(pinned.get(name, {"no version of it"})))
            raise PackageError(
                f"{name} {package.version} is installed, {lock} has {wanted}: run `make setup`"
            )


def installed_files(package: Distribution) -> Iterator[tuple[str, File]]:
    """Yield a distribution's files by their place in site-packages, with their checksums.

    Scripts are left out, because their first lines name this environment; so are tests.
    """
    if package.files is None:
        raise PackageError(
            f"{package.metadata['Name']}: has no list of its files: run `make setup`"
        )
    unwanted = _NOT_PACKED.get(canonicalize_name(package.metadata["Name"]), set())
    for file in package.files:
        place = PurePosixPath(str(file))
        within = place.parts[1:2] if len(place.parts) > 2 else ()
        if place.parts[0] == ".." or _LEFT_OUT & {*place.parts[:-1]} or unwanted & {*within}:
            continue
        source = Path(str(file.locate()))
        digest = None if file.hash is None else _decoded(file.hash.value)
        yield str(place), File(source, _is_executable(source), digest)


def _decoded(value: str) -> bytes:
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))


def _is_executable(source: Path) -> bool:
    try:
        return bool(source.stat().st_mode & 0o100)
    except FileNotFoundError:
        raise PackageError(
            f"{source}: is missing: remove {sys.prefix} and run `make setup`"
        ) from None
