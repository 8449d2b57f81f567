"""Files on a local disk without a JVM, with the operations and paths of `Filesystem`."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_rank.session.files import FileInfo

# Hadoop's checksum file beside a local file: these bytes, the size of a piece, every piece's CRC
_SUMS_HEAD = b"crc\0"
_PIECES = 2048  # pieces that are read at once
_SUMS = re.compile(r"\..*\.crc", re.DOTALL)
_WILDCARDS = re.compile(r"[*?\[{]")
_HIDDEN = re.compile(r"/[_.]")


class LocalFiles:
    """A local disk as `Filesystem` shows it."""

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory exists."""
        return _local(path).exists()

    def is_directory(self, path: str) -> bool:
        """Tell whether a directory exists."""
        return _local(path).is_dir()

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, hidden ones too; [] if there is no directory.

        Hadoop's checksum files are left out, as Hadoop does.
        """
        place = _local(path)
        names = os.listdir(place) if place.is_dir() else []
        return sorted(name for name in names if not _SUMS.fullmatch(name))

    def below(self, path: str, *, hidden: bool = False) -> list[FileInfo]:
        """Return all files in and below a directory, sorted by path; [] if there is none."""
        place = _local(path)
        if place.is_file():
            return [_info(place)]
        return sorted((_info(file) for file in _walk(place, hidden)), key=lambda info: info.path)

    def glob(self, pattern: str) -> list[FileInfo]:
        """Return all files that a path, directory or glob matches, sorted by path.

        Hidden files are left out, in a directory and where a wildcard matches them.
        """
        literal = len(_WILDCARDS.split(os.path.abspath(_local(pattern)), maxsplit=1)[0])
        files = {
            info.path: info
            for simple in _without_braces(str(_local(pattern)))
            for path in glob.glob(simple.replace("[^", "[!"))
            if not _HIDDEN.search(os.path.abspath(path), literal - 1)
            for info in self.below(path)
        }
        return sorted(files.values(), key=lambda info: info.path)

    def read_text(self, path: str) -> str:
        """Return a small UTF-8 file, or raise `OSError`."""
        return _local(path).read_bytes().decode()

    def head(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, or all if it is shorter."""
        with _local(path).open("rb") as stream:
            return stream.read(size)

    def tail(self, info: FileInfo, size: int) -> bytes:
        """Return the last `size` bytes of a file, or all if it is shorter."""
        with _local(info.path).open("rb") as stream:
            stream.seek(max(info.size - size, 0))
            return stream.read(size)

    def sha256(self, path: str) -> str:
        """Return the checksum of a file's bytes; raise `OSError` if Hadoop's checksums differ."""
        place = _local(path)
        sums = place.with_name(f".{place.name}.crc")
        stored = sums.read_bytes() if sums.is_file() else None
        size = 512 if stored is None else int.from_bytes(stored[4:8])
        digest, computed = hashlib.sha256(), [_SUMS_HEAD, size.to_bytes(4)]
        if size < 1:
            raise OSError(f"{sums}: is not a checksum file")
        with place.open("rb") as stream:
            while part := stream.read(size * _PIECES):
                digest.update(part)
                if stored is not None:
                    computed += [zlib.crc32(part[at : at + size]).to_bytes(4)
                              for at in range(0, len(part), size)]  # fmt: skip
        if stored is not None and stored != b"".join(computed):
            raise OSError(f"{place}: differs from the checksums in {sums.name}")
        return digest.hexdigest()

    def download(self, path: str, local: Path) -> None:
        """Copy a file to a local path."""
        shutil.copyfile(_local(path), local)

    def qualified(self, path: str) -> str:
        """Return the absolute path with its file system, which any process can use."""
        return f"file:{os.path.abspath(_local(path))}"

    def write_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file atomically: a reader sees the old file or the new one."""
        place = _local(path)
        with _part(place, text) as part:
            os.replace(part, place)

    def create_text(self, path: str, text: str) -> bool:
        """Write a small UTF-8 file unless it exists; tell whether this call wrote it."""
        place = _local(path)
        with _part(place, text) as part:
            try:
                os.link(part, place)
            except FileExistsError:
                return False
        return True

    def delete(self, path: str) -> None:
        """Delete a file or a whole directory, if it exists."""
        place = _local(path)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def _without_braces(pattern: str) -> list[str]:
    """Return the patterns without braces that a pattern with ``{a,b}`` stands for."""
    match = re.fullmatch(r"(.*?)\{([^{}]*)\}(.*)", pattern)
    if match is None:
        return [pattern]
    begin, choices, end = match.groups()
    return [
        expanded
        for choice in choices.split(",")
        for expanded in _without_braces(begin + choice + end)
    ]


def _local(path: str) -> Path:
    return Path(path.removeprefix("file://").removeprefix("file:"))


def _info(place: Path) -> FileInfo:
    status = place.stat()
    return FileInfo(
        f"file:{os.path.abspath(place)}", status.st_size, status.st_mtime_ns // 1_000_000
    )


def _walk(folder: Path, hidden: bool) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        if not hidden:
            folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        for name in names:
            if hidden or not name.startswith(("_", ".")):
                yield Path(place, name)


@contextmanager
def _part(place: Path, text: str) -> Iterator[Path]:
    """Yield a hidden file beside `place` with the text; afterwards delete it if it still exists."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        yield part
    finally:
        part.unlink(missing_ok=True)
