"""Writes reproducible archives: their bytes depend only on the packed files."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# the earliest time of a file, a day in 1980 as seconds since 1970, and how many seconds may follow
_FIRST_TIME, _TIMES = 315_532_800, 1 << 29


class PackageError(Exception):
    """The package cannot be made; the message says what to do."""


@dataclass(frozen=True)
class File:
    """A file of the archive: its bytes, or a path and the checksum that its bytes must have."""

    content: bytes | Path
    executable: bool = False
    sha256: bytes | None = None

    def read(self) -> bytes:
        """Return the bytes, or raise `PackageError` if they differ from the checksum."""
        if isinstance(self.content, bytes):
            return self.content
        data = self.content.read_bytes()
        if self.sha256 is not None and hashlib.sha256(data).digest() != self.sha256:
            raise PackageError(
                f"{self.content}: was changed since its installation: remove .venv and run "
                "`make setup`"
            )
        return data


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


Entries = Mapping[str, File | Link]


def write_archive(path: Path, entries: Entries, level: int) -> None:
    """Write a tar.gz in the order of the names; it appears when it is complete."""
    part = path.with_name(f".{path.name}.part")
    with (
        part.open("wb") as raw,
        # no time and no name in the gzip header
        gzip.GzipFile("", "wb", level, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for name in sorted(entries):
            info, data = _member(name, entries[name])
            archive.addfile(info, io.BytesIO(data))
    os.replace(part, path)


def _member(name: str, entry: File | Link) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.mtime = _FIRST_TIME
    if isinstance(entry, Link):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.target, 0o777
        return info, b""
    data = entry.read()
    info.size, info.mode = len(data), 0o755 if entry.executable else 0o644
    info.mtime += _time_of(data)
    return info, data


def _time_of(data: bytes) -> int:
    """Return a modification time that depends on the content.

    Python takes a cached module as valid if time and size of the source match. With the same time
    for all files, Python could run the compiled module of an older version.
    """
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big") % _TIMES
