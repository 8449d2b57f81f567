"""Files of any Hadoop file system as a read-only pyarrow file system."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
from pyarrow import fs

from spark_rank.session.files import Files
from spark_rank.session.local_files import LocalFiles


def arrow_files(files: Files) -> fs.FileSystem:
    """Return a store's files as a pyarrow file system."""
    if isinstance(files, LocalFiles):
        return fs.LocalFileSystem()
    return fs.PyFileSystem(_Handler(files))


class _Handler(fs.FileSystemHandler):
    """Serves pyarrow through Spark's JVM; a file is copied to a local disk when it is opened."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._folder = tempfile.mkdtemp(prefix="spark-rank-")
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._copies: dict[str, Path] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handler) and other._files is self._files

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return id(self._files)

    def get_type_name(self) -> str:
        return "hadoop"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        names = self._files.names(selector.base_dir)
        return [self._info(f"{selector.base_dir}/{name}") for name in names]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        if path not in self._copies:
            copy = Path(self._folder, str(len(self._copies)))
            self._files.download(path, copy)
            self._copies[path] = copy
        return pa.OSFile(str(self._copies[path]))

    def _info(self, path: str) -> fs.FileInfo:
        if not self._files.exists(path):
            return fs.FileInfo(path, fs.FileType.NotFound)
        is_folder = self._files.is_directory(path)
        return fs.FileInfo(path, fs.FileType.Directory if is_folder else fs.FileType.File)

    def _refuse(self, *arguments: Any) -> NoReturn:
        raise NotImplementedError("a finished run is read only")

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = _refuse
    delete_root_dir_contents = move = open_append_stream = open_output_stream = _refuse
