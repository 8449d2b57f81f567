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
# the begin of a name that Spark and Hadoop pass over
_HIDDEN = re.compile(r"/[_.]")
# bytes that come from the JVM at once: written as text it is less than py4j's buffer of 8,192
_PIECE = 6000


class Filesystem:
    """The few operations a run needs on a path, the same on every file system."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._classes: dict[str, Any] = {}
        self._gateway: Any = spark.sparkContext._gateway
        self._conf = spark._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory is there."""
        jpath, fs = self._resolve(path)
        return bool(fs.exists(jpath))

    def is_directory(self, path: str) -> bool:
        """Tell whether a directory is there."""
        jpath, fs = self._resolve(path)
        return bool(fs.exists(jpath) and fs.getFileStatus(jpath).isDirectory())

    def glob(self, pattern: str) -> list[FileInfo]:
        """Return every file that a path, directory or glob stands for, sorted by path.

        Hidden files and directories (``_SUCCESS``, ``_temporary``, ``.crc``) are left out, inside
        a directory and among those that signs like ``*`` stand for; what is named itself is not.
        """
        jpath, fs = self._resolve(pattern)
        named = len(_GLOB.split(str(fs.makeQualified(jpath).toString()), maxsplit=1)[0])
        found: list[FileInfo] = []
        for status in fs.globStatus(jpath) or []:
            if not _HIDDEN.search(status.getPath().toString(), named - 1):
                found.extend(self._files_below(fs, status))
        return sorted(found, key=lambda info: info.path)

    def below(self, path: str, *, hidden: bool = False) -> list[FileInfo]:
        """Return every file in a directory and those below it, sorted by path; [] without it.

        Hidden ones are left out, as by `glob`, unless they are asked for; then a local disk's
        checksums are there as well. No sign in the path has a meaning.
        """
        jpath, fs = self._unchecked(path) if hidden else self._resolve(path)
        if not fs.exists(jpath):
            return []
        found = self._files_below(fs, fs.getFileStatus(jpath), hidden)
        return sorted(found, key=lambda info: info.path)

    def read_text(self, path: str) -> str:
        """Return a small UTF-8 file, or raise `OSError`."""
        jpath, fs = self._resolve(path)
        try:
            return self.head(path, fs.getFileStatus(jpath).getLen()).decode()
        except Py4JJavaError as error:
            raise OSError(java_reason(error)) from None

    def head(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, or all there are."""
        jpath, fs = self._resolve(path)
        stream = fs.open(jpath)
        try:
            return _read(stream, size)
        finally:
            stream.close()

    def tail(self, info: FileInfo, size: int) -> bytes:
        """Return the last `size` bytes of a file, or all there are."""
        jpath, fs = self._resolve(info.path)
        stream = fs.open(jpath)
        try:
            stream.seek(max(info.size - size, 0))
            return _read(stream, size)
        finally:
            stream.close()

    def unpacked_head(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of what a file holds, unpacked as its name says."""
        jpath, fs = self._resolve(path)
        stream = fs.open(jpath)
        try:
            return _read(self._unpacked(jpath, stream), size)
        except Py4JJavaError as error:
            said = java_reason(error).removeprefix("java.io.")
            raise InputDataError(f"{path}: is damaged and cannot be read ({said})") from None
        finally:
            stream.close()

    def first_lines(self, path: str, encoding: str, count: int) -> list[str]:
        """Return a text file's first lines that are not blank, `count` at most, unpacked."""
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
            found: list[str] = []
            while len(found) < count and (line := lines.readLine()) is not None:
                if line.strip():
                    found.append(str(line))
            return found
        except Py4JJavaError as error:
            raise InputDataError(f"{path}: cannot be read: {java_reason(error)}") from None
        finally:
            stream.close()

    def parquet_columns(self, path: str) -> str:
        """Return names and types of a Parquet file's columns, as text to compare."""
        jpath, _ = self._resolve(path)
        try:
            named = self._java("org.apache.parquet.hadoop.util.HadoopInputFile")
            file = named.fromPath(jpath, self._conf)
            reader = self._java("org.apache.parquet.hadoop.ParquetFileReader").open(file)
            try:
                # not the schema's own text: it has a name that every writer chooses
                return str(reader.getFileMetaData().getSchema().getFields().toString())
            finally:
                reader.close()
        except Py4JJavaError as error:
            raise InputDataError(
                f"{path}: cannot be read as Parquet: {java_reason(error)}"
            ) from None

    def uri(self, path: str) -> str:
        """Return the path as an encoded URI, for the interfaces that read it as one."""
        jpath, fs = self._resolve(path)
        return str(fs.makeQualified(jpath).toUri().toString())

    def write_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file at once: a reader sees the old one or the new one."""
        jpath, fs = self._unchecked(path)
        with self._part(fs, jpath, text) as part:
            self._replace(fs, part, jpath)

    def create_text(self, path: str, text: str) -> bool:
        """Write a small UTF-8 file unless it is there; tell whether it was this call that did.

        Of several processes that try at the same time one succeeds. On a local disk the file is
        there with all its text or not at all, whatever happens meanwhile.
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
        """Rename a file or directory; its new place must be free."""
        jsource, fs = self._resolve(source)
        jtarget, _ = self._resolve(target)
        fs.mkdirs(jtarget.getParent())
        # Hadoop would move a directory into one that is there
        if fs.exists(jtarget):
            raise FileExistsError(f"{target}: is there already")
        if not fs.rename(jsource, jtarget):
            raise OSError(f"could not rename {source} to {target}")

    def names(self, path: str) -> list[str]:
        """Return the names of all that is in a directory, hidden ones too; [] without it."""
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
        """Copy a local file to `path`, replacing what is there."""
        jpath, fs = self._resolve(path)
        source = self._java(_PATH)(local.resolve().as_uri())
        fs.copyFromLocalFile(False, True, source, jpath)

    def download(self, path: str, local: Path) -> None:
        """Copy a file to a local path."""
        jpath, fs = self._resolve(path)
        target = self._java(_PATH)(local.resolve().as_uri())
        fs.copyToLocalFile(False, jpath, target, True)

    def delete(self, path: str) -> None:
        """Delete a file or a whole directory, if it is there."""
        jpath, fs = self._resolve(path)
        fs.delete(jpath, True)

    def qualified(self, path: str) -> str:
        """Return the path with its file system and from the root, as any process can use it."""
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
        """Return what `_resolve` does, but for local files the file system without `.crc` files.

        A file that is replaced would leave the old one's behind for a moment.
        """
        jpath, fs = self._resolve(path)
        return jpath, fs.getRawFileSystem() if _is_local(fs) else fs

    def _replace(self, fs: Any, source: Any, target: Any) -> None:
        if _is_local(fs):
            options = self._java("java.nio.file.StandardCopyOption")
            how = self._array(
                self._java(_COPY_OPTION), options.ATOMIC_MOVE, options.REPLACE_EXISTING
            )
            places = (fs.pathToFile(source).toPath(), fs.pathToFile(target).toPath())
            self._java(_FILES).move(*places, how)
            return
        rename = self._java("org.apache.hadoop.fs.Options$Rename")
        contexts = self._java("org.apache.hadoop.fs.FileContext")
        context = contexts.getFileContext(fs.getUri(), self._conf)
        context.rename(source, target, self._array(rename, rename.OVERWRITE))

    @contextmanager
    def _part(self, fs: Any, jpath: Any, text: str) -> Iterator[Any]:
        """Yield a hidden file beside `jpath` with the text; if it is left there, it goes."""
        hidden = f".{jpath.getName()}.{secrets.token_hex(4)}.part"
        part = self._java(_PATH)(jpath.getParent(), hidden)
        try:
            _write(fs.create(part, True), text)
            yield part
        finally:
            fs.delete(part, False)

    def _link(self, source: Any, target: Any) -> None:
        """Give a file a second name, which must be free."""
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

        It is looked up once: the JVM searches hundreds of archives for every part of a name that
        is no class, such as `org` and `org.apache`.
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
    """Return the next `size` bytes, or all there are.

    Piece by piece: an answer of the JVM that is more than one packet waits 40 ms for the first
    one's receipt.
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
    """Return a path that Spark reads as it is, although its name has the signs of a glob."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", path)


def java_reason(error: Exception) -> str:
    """Return what the JVM said, in one line, without the name of the call that failed."""
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else str(cause.toString())
    return (text.strip().splitlines() or ["(no message)"])[0]
