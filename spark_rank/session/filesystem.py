"""Files on any Hadoop file system (file:, hdfs:, s3a:, gs:), through Spark's own JVM."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_rank.errors import ConfigError, InputDataError
from spark_rank.session.files import FileInfo

_PATH = "org.apache.hadoop.fs.Path"
_FILES, _COPY_OPTION = "java.nio.file.Files", "java.nio.file.CopyOption"
_CHARSETS = {"utf-8": "UTF-8", "latin-1": "ISO-8859-1"}

_GLOB = re.compile(r"[*?\[{\\]")
# the beginning of a name that Spark and Hadoop ignore
_HIDDEN = re.compile(r"/[_.]")
# bytes per answer of the JVM: encoded as text they fit py4j's buffer of 8,192
_PIECE = 6000


class Filesystem:
    """The operations that a run needs on files, the same on every file system."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._classes: dict[str, Any] = {}
        self._gateway: Any = spark.sparkContext._gateway
        self._conf = spark._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory exists."""
        jpath, fs = self._resolve(path)
        return bool(fs.exists(jpath))

    def is_directory(self, path: str) -> bool:
        """Tell whether a directory exists."""
        jpath, fs = self._resolve(path)
        return bool(fs.exists(jpath) and fs.getFileStatus(jpath).isDirectory())

    def glob(self, pattern: str) -> list[FileInfo]:
        """Return all files that a path, directory or glob matches, sorted by path.

        Hidden files and directories (``_SUCCESS``, ``_temporary``, ``.crc``) are left out, in a
        directory and where a wildcard matches them, but not where the path names them.
        """
        jpath, fs = self._resolve(pattern)
        literal = len(_GLOB.split(str(fs.makeQualified(jpath).toString()), maxsplit=1)[0])
        files: list[FileInfo] = []
        for status in fs.globStatus(jpath) or []:
            if not _HIDDEN.search(status.getPath().toString(), literal - 1):
                files.extend(self._files_below(fs, status))
        return sorted(files, key=lambda info: info.path)

    def below(self, path: str, *, hidden: bool = False) -> list[FileInfo]:
        """Return all files in and below a directory, sorted by path; [] if there is none.

        Hidden files are left out, as by `glob`, unless `hidden`; then the checksum files of a local
        disk are included too. The path has no wildcards.
        """
        jpath, fs = self._unchecked(path) if hidden else self._resolve(path)
        if not fs.exists(jpath):
            return []
        files = self._files_below(fs, fs.getFileStatus(jpath), hidden)
        return sorted(files, key=lambda info: info.path)

    def read_text(self, path: str) -> str:
        """Return a small UTF-8 file, or raise `OSError`."""
        jpath, fs = self._resolve(path)
        try:
            return self.head(path, fs.getFileStatus(jpath).getLen()).decode()
        except Py4JJavaError as error:
            raise OSError(java_reason(error)) from None

    def head(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, or all if it is shorter."""
        jpath, fs = self._resolve(path)
        stream = fs.open(jpath)
        try:
            return _read(stream, size)
        finally:
            stream.close()

    def tail(self, info: FileInfo, size: int) -> bytes:
        """Return the last `size` bytes of a file, or all if it is shorter."""
        jpath, fs = self._resolve(info.path)
        stream = fs.open(jpath)
        try:
            stream.seek(max(info.size - size, 0))
            return _read(stream, size)
        finally:
            stream.close()

    def unpacked_head(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, decompressed as its name says."""
        jpath, fs = self._resolve(path)
        stream = fs.open(jpath)
        try:
            return _read(self._unpacked(jpath, stream), size)
        except Py4JJavaError as error:
            reason = java_reason(error).removeprefix("java.io.")
            raise InputDataError(f"{path}: is damaged and cannot be read ({reason})") from None
        finally:
            stream.close()

    def first_lines(self, path: str, encoding: str, count: int) -> list[str]:
        """Return the first `count` lines of a text file that are not blank, decompressed."""
        jpath, fs = self._resolve(path)
        try:
            stream = fs.open(jpath)
        except Py4JJavaError as error:
            raise InputDataError(f"{path}: cannot be read: {java_reason(error)}") from None
        try:
            unpacked = self._unpacked(jpath, stream)
            charset = self._java("java.nio.charset.Charset").forName(_CHARSETS[encoding])
            characters = self._java("java.io.InputStreamReader")(unpacked, charset)
            lines = self._java("java.io.BufferedReader")(characters)
            first: list[str] = []
            while len(first) < count and (line := lines.readLine()) is not None:
                if line.strip():
                    first.append(str(line))
            return first
        except Py4JJavaError as error:
            raise InputDataError(f"{path}: cannot be read: {java_reason(error)}") from None
        finally:
            stream.close()

    def parquet_columns(self, path: str) -> str:
        """Return the names and types of a Parquet file's columns, as text to compare."""
        jpath, _ = self._resolve(path)
        try:
            input_file = self._java("org.apache.parquet.hadoop.util.HadoopInputFile")
            file = input_file.fromPath(jpath, self._conf)
            reader = self._java("org.apache.parquet.hadoop.ParquetFileReader").open(file)
            try:
                # not the text of the schema: it includes a name that each writer chooses
                return str(reader.getFileMetaData().getSchema().getFields().toString())
            finally:
                reader.close()
        except Py4JJavaError as error:
            raise InputDataError(
                f"{path}: cannot be read as Parquet: {java_reason(error)}"
            ) from None

    def uri(self, path: str) -> str:
        """Return the path as an encoded URI, for interfaces that take a URI."""
        jpath, fs = self._resolve(path)
        return str(fs.makeQualified(jpath).toUri().toString())

    def write_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file atomically: a reader sees the old file or the new one."""
        jpath, fs = self._unchecked(path)
        with self._part(fs, jpath, text) as part:
            self._replace(fs, part, jpath)

    def create_text(self, path: str, text: str) -> bool:
        """Write a small UTF-8 file unless it exists; tell whether this call wrote it.

        Of several processes that try at the same time, one succeeds. On a local disk the file
        appears with all its text or not at all, even if the process is killed.
        """
        jpath, fs = self._unchecked(path)
        try:
            if _is_local(fs):
                if not fs.mkdirs(jpath.getParent()):
                    # Hadoop does not say why
                    raise PermissionError(f"Permission denied: {jpath.getParent()}")
                with self._part(fs, jpath, text) as part:
                    self._link(fs.pathToFile(part).toPath(), fs.pathToFile(jpath).toPath())
                return True
            stream = fs.create(jpath, False)
        except Py4JJavaError as error:
            if "AlreadyExists" in java_reason(error):
                return False
            raise
        _write(stream, text)
        return True

    def move(self, source: str, target: str) -> None:
        """Rename a file or directory; the new path must not exist."""
        jsource, fs = self._resolve(source)
        jtarget, _ = self._resolve(target)
        fs.mkdirs(jtarget.getParent())
        # Hadoop would move a directory into an existing one
        if fs.exists(jtarget):
            raise FileExistsError(f"{target}: exists already")
        if not fs.rename(jsource, jtarget):
            raise OSError(f"could not rename {source} to {target}")

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, hidden ones too; [] if there is no directory."""
        jpath, fs = self._resolve(path)
        if not fs.exists(jpath):
            return []
        return sorted(str(status.getPath().getName()) for status in fs.listStatus(jpath))

    def sha256(self, path: str) -> str:
        """Return the checksum of a file's bytes, which the JVM reads piece by piece."""
        jpath, fs = self._resolve(path)
        stream = fs.open(jpath)
        try:
            digests = self._java("org.apache.commons.codec.digest.DigestUtils")
            return str(digests.sha256Hex(stream))
        finally:
            stream.close()

    def upload(self, local: Path, path: str) -> None:
        """Copy a local file to `path`, replacing an existing file."""
        jpath, fs = self._resolve(path)
        source = self._java(_PATH)(local.resolve().as_uri())
        fs.copyFromLocalFile(False, True, source, jpath)

    def download(self, path: str, local: Path) -> None:
        """Copy a file to a local path."""
        jpath, fs = self._resolve(path)
        target = self._java(_PATH)(local.resolve().as_uri())
        fs.copyToLocalFile(False, jpath, target, True)

    def delete(self, path: str) -> None:
        """Delete a file or a whole directory, if it exists."""
        jpath, fs = self._resolve(path)
        fs.delete(jpath, True)

    def qualified(self, path: str) -> str:
        """Return the absolute path with its file system, which any process can use."""
        jpath, fs = self._resolve(path)
        return str(fs.makeQualified(jpath).toString())

    def _unpacked(self, jpath: Any, stream: Any) -> Any:
        factory = self._java("org.apache.hadoop.io.compress.CompressionCodecFactory")
        codec = factory(self._conf).getCodec(jpath)
        return stream if codec is None else codec.createInputStream(stream)

    def _resolve(self, path: str) -> tuple[Any, Any]:
        try:
            jpath = self._java(_PATH)(path)
            return jpath, jpath.getFileSystem(self._conf)
        except (Py4JJavaError, PySparkException) as error:
            raise ConfigError(f"{path}: no file system serves it: {java_reason(error)}") from None

    def _unchecked(self, path: str) -> tuple[Any, Any]:
        """Do what `_resolve` does, but for local files use the file system without `.crc` files.

        Replacing a file would leave the old file's checksums beside it for a moment.
        """
        jpath, fs = self._resolve(path)
        return jpath, fs.getRawFileSystem() if _is_local(fs) else fs

    def _replace(self, fs: Any, source: Any, target: Any) -> None:
        if _is_local(fs):
            options = self._java("java.nio.file.StandardCopyOption")
            overwrite = self._array(
                self._java(_COPY_OPTION), options.ATOMIC_MOVE, options.REPLACE_EXISTING
            )
            places = (fs.pathToFile(source).toPath(), fs.pathToFile(target).toPath())
            self._java(_FILES).move(*places, overwrite)
            return
        rename = self._java("org.apache.hadoop.fs.Options$Rename")
        contexts = self._java("org.apache.hadoop.fs.FileContext")
        context = contexts.getFileContext(fs.getUri(), self._conf)
        context.rename(source, target, self._array(rename, rename.OVERWRITE))

    @contextmanager
    def _part(self, fs: Any, jpath: Any, text: str) -> Iterator[Any]:
        """Yield a hidden file beside `jpath` with the text; afterwards delete it if it exists."""
        hidden = f".{jpath.getName()}.{secrets.token_hex(4)}.part"
        part = self._java(_PATH)(jpath.getParent(), hidden)
        try:
            _write(fs.create(part, True), text)
            yield part
        finally:
            fs.delete(part, False)

    def _link(self, source: Any, target: Any) -> None:
        """Give a file a second name, which must not exist yet."""
        files = self._java(_FILES)
        try:
            files.createLink(target, source)
        except Py4JJavaError as error:
            if "AlreadyExists" in java_reason(error):
                raise
            # not every file system has links
            files.copy(source, target, self._array(self._java(_COPY_OPTION)))

    def _java(self, name: str) -> Any:
        """Return a Java class by its full name.

        Each class is looked up once: the JVM searches hundreds of archives for every part of a
        name that is not a class, such as `org` and `org.apache`.
        """
        if name not in self._classes:
            self._classes[name] = getattr(self._jvm, name)
        return self._classes[name]

    def _array(self, kind: Any, *values: Any) -> Any:
        array = self._gateway.new_array(kind, len(values))
        for position, value in enumerate(values):
            array[position] = value
        return array

    def _files_below(self, fs: Any, status: Any, hidden: bool = False) -> Iterable[FileInfo]:
        if not status.isDirectory():
            path = status.getPath().toString()
            yield FileInfo(path, status.getLen(), status.getModificationTime())
            return
        for child in fs.listStatus(status.getPath()):
            if hidden or not child.getPath().getName().startswith(("_", ".")):
                yield from self._files_below(fs, child, hidden)


def _read(stream: Any, size: int) -> bytes:
    """Return the next `size` bytes, or all that are left.

    They are read in pieces: an answer of the JVM that takes more than one packet waits 40 ms for
    the acknowledgement of the first.
    """
    pieces: list[bytes] = []
    while size > 0 and (piece := bytes(stream.readNBytes(min(size, _PIECE)))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _write(stream: Any, text: str) -> None:
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()


def _is_local(fs: Any) -> bool:
    return str(fs.getUri().getScheme()) == "file"


def literal(path: str) -> str:
    """Return a path with its wildcards escaped, so that Spark reads it literally."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", path)


def java_reason(error: Exception) -> str:
    """Return the JVM's message in one line, without the name of the call that failed."""
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else str(cause.toString())
    return (text.strip().splitlines() or ["(no message)"])[0]
