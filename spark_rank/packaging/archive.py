"""Archives whose bytes depend on nothing but what is in them."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# seconds since 1970 of a day in 1980, and how many more a file's time may have
_FIRST_TIME, _TIMES = 315_532_800, 1 << 29


class PackageError(Exception):
    """Something that cannot be packed; the message says what to do."""


@dataclass(frozen=True)
class File:
    """A file of the archive: its bytes, or where they are and the checksum they must have."""

    content: bytes | Path
    executable: bool = False
    sha256: bytes | None = None

    def read(self) -> bytes:
        """Return the bytes, or raise `PackageError` if they are not what was installed."""
        if isinstance(self.content, bytes):
            return self.content
        data = self.content.read_bytes()
        if self.sha256 is not None and hashlib.sha256(data).digest() != self.sha256:
            raise PackageError(
                f"{self.content}: is not as it was installed: remove .venv and run `make setup`"
            )
        return data


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


Entries = Mapping[str, File | Link]


def write_archive(path: Path, entries: Entries, level: int) -> None:
    """Write a tar.gz, in the order of the names; it is there when it is complete."""
    part = path.with_name(f".{path.name}.part")
    with (
        part.open("wb") as raw,
        # a gzip header would tell the time and the name
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
    """Return seconds that other content does not share.

    Python finds compiled modules by the time and size of the source: with one time for all, what
    was compiled of an older version would be taken for the newer one's.
    """
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big") % _TIMES
