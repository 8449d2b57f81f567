"""Files on any Hadoop file system (file:, hdfs:, s3a:, gs:), through Spark's own JVM."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_rank.errors import ConfigError, InputDataError

_CHARSETS = {"utf-8": "UTF-8", "latin-1": "ISO-8859-1"}


@dataclass(frozen=True)
class FileInfo:
    """What a file system knows of a file without opening it."""

    path: str
    size: int
    modified_ms: int


class Filesystem:
    """The few operations a run needs on a path, the same on every file system."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._conf = spark._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory is there."""
        jpath, fs = self._resolve(path)
        return bool(fs.exists(jpath))

    def glob(self, pattern: str) -> list[FileInfo]:
        """Return every file that a path, directory or glob stands for, sorted by path.

        Hidden files (``_SUCCESS``, ``.crc``) inside a directory are left out; one that is named
        itself is not.
        """
        jpath, fs = self._resolve(pattern)
        found: list[FileInfo] = []
        for status in fs.globStatus(jpath) or []:
            found.extend(self._files_below(fs, status))
        return sorted(found, key=lambda info: info.path)

    def read_text(self, path: str) -> str:
        """Return a small UTF-8 file."""
        jpath, fs = self._resolve(path)
        return self.head(path, fs.getFileStatus(jpath).getLen()).decode()

    def head(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, or all there are."""
        jpath, fs = self._resolve(path)
        stream = fs.open(jpath)
        try:
            return bytes(stream.readNBytes(size))
        finally:
            stream.close()

    def first_lines(self, path: str, encoding: str, count: int) -> list[str]:
        """Return a text file's first lines that are not blank, `count` at most, unpacked."""
        jpath, fs = self._resolve(path)
        codec = self._jvm.org.apache.hadoop.io.compress.CompressionCodecFactory(
            self._conf
        ).getCodec(jpath)
        stream = fs.open(jpath)
        try:
            unpacked = stream if codec is None else codec.createInputStream(stream)
            charset = self._jvm.java.nio.charset.Charset.forName(_CHARSETS[encoding])
            characters = self._jvm.java.io.InputStreamReader(unpacked, charset)
            lines = self._jvm.java.io.BufferedReader(characters)
            found: list[str] = []
            while len(found) < count and (line := lines.readLine()) is not None:
                if line.strip():
                    found.append(str(line))
            return found
        except Py4JJavaError as error:
            raise InputDataError(f"{path}: cannot be read: {java_reason(error)}") from None
        finally:
            stream.close()

    def uri(self, path: str) -> str:
        """Return the path as an encoded URI, for the interfaces that read it as one."""
        jpath, fs = self._resolve(path)
        return str(fs.makeQualified(jpath).toUri().toString())

    def write_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file so that a reader sees the old one, the new one or none."""
        jpath, fs = self._resolve(path)
        part, _ = self._resolve(f"{path}.part")
        stream = fs.create(part, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        if fs.exists(jpath):
            fs.delete(jpath, False)
        if not fs.rename(part, jpath):
            raise OSError(f"could not rename {path}.part to {path}")

    def upload(self, local: Path, path: str) -> None:
        """Copy a local file to `path`, replacing what is there."""
        jpath, fs = self._resolve(path)
        source = self._jvm.org.apache.hadoop.fs.Path(local.resolve().as_uri())
        fs.copyFromLocalFile(False, True, source, jpath)

    def delete(self, path: str) -> None:
        """Delete a file or a whole directory, if it is there."""
        jpath, fs = self._resolve(path)
        fs.delete(jpath, True)

    def qualified(self, path: str) -> str:
        """Return the path with its file system and from the root, as any process can use it."""
        jpath, fs = self._resolve(path)
        return str(fs.makeQualified(jpath).toString())

    def _resolve(self, path: str) -> tuple[Any, Any]:
        try:
            jpath = self._jvm.org.apache.hadoop.fs.Path(path)
            return jpath, jpath.getFileSystem(self._conf)
        except (Py4JJavaError, PySparkException) as error:
            raise ConfigError(f"{path}: no file system serves it: {java_reason(error)}") from None

    def _files_below(self, fs: Any, status: Any) -> Iterable[FileInfo]:
        if not status.isDirectory():
            path = status.getPath().toString()
            yield FileInfo(path, status.getLen(), status.getModificationTime())
            return
        for child in fs.listStatus(status.getPath()):
            if not child.getPath().getName().startswith(("_", ".")):
                yield from self._files_below(fs, child)


def literal(path: str) -> str:
    """Return a path that Spark reads as it is, although its name has the signs of a glob."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", path)


def java_reason(error: Exception) -> str:
    """Return what the JVM said, in one line, without the name of the call that failed."""
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else str(cause.toString())
    return (text.strip().splitlines() or ["(no message)"])[0]
