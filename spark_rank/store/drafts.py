"""Drafts: what a stage writes, hidden from readers until it is complete.

``<run>/_drafts/<stage>/`` contains

* ``<attempt>/<table>/``, what the current process writes; each process has its own name, so that
  tasks of an abandoned process cannot write into it;
* ``waves-<fingerprint>/``, the waves that are saved (`spark_rank.store.waves`), from which the next
  process with the same settings and inputs goes on;
* ``sealed-<fingerprint>.json``, the record of a stage that has written everything. From then on
  only renames are left, and the next process does those that are missing.

Names that begin with an underscore are hidden from Spark, from Hadoop and from ``*``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError

from spark_rank.errors import ContractError
from spark_rank.session.filesystem import Filesystem
from spark_rank.store.containment import refuse_links
from spark_rank.store.inventory import (
    Inventory,
    as_record,
    from_record,
    relative,
    take_inventory,
)
from spark_rank.store.self_checked import checked_text, read_checked

FOLDER = "_drafts"
_READY = "ready"
_NAME = 16


class Draft:
    """A stage in progress."""

    def __init__(
        self,
        files: Filesystem,
        root: str,
        stage: str,
        fingerprint: str,
        attempt: str,
        check: Callable[[], None],
    ) -> None:
        self.files = files
        self.check = check
        self.stage = stage
        self.attempt = attempt
        self._root = root
        self._folder = f"{root}/{FOLDER}/{stage}"
        self._sealed = f"{self._folder}/sealed-{fingerprint[:_NAME]}.json"
        self.waves = f"{self._folder}/waves-{fingerprint[:_NAME]}"
        # tables that were saved in waves: the folder of every wave, and its files
        self._parts: dict[str, dict[str, Inventory]] = {}

    def path(self, name: str) -> str:
        """Return where this process writes a table or file."""
        return f"{self._folder}/{self.attempt}/{name}"

    def folders(self, name: str) -> list[str]:
        """Return the folders of a written table: one, or one per wave."""
        return list(self._parts.get(name) or [self.path(name)])

    def add_parts(self, table: str, parts: dict[str, Inventory]) -> None:
        """Take these folders, saved one by one, as the parts of a table."""
        self._parts[table] = parts

    def clear(self) -> None:
        """Remove what an earlier process left, except the waves, from which this one goes on."""
        self._refuse_links()
        for name in self.files.names(self._folder):
            if f"{self._folder}/{name}" != self.waves:
                self.files.delete(f"{self._folder}/{name}")

    def seal(self, record: dict[str, Any]) -> None:
        """Note that everything is written: from here on the stage is only published."""
        written = self.files.names(self.path(""))
        visible = {name for name in written if not name.startswith(("_", "."))}
        names = sorted(visible | {*self._parts})
        inventory: Inventory = {}
        for name in names:
            for folder in self.folders(name):
                parts = self._parts.get(name, {})
                files = parts[folder] if folder in parts else take_inventory(self.files, folder)
                inventory |= {_listed(name, path): file for path, file in files.items()}
        folders = {name: [self._from_root(folder) for folder in self.folders(name)]
                   for name in names}  # fmt: skip
        sealed = {"record": {**record, "files": as_record(inventory)}, "folders": folders}
        self.check()
        plain = json.loads(json.dumps(sealed, default=str))
        self.files.write_text(self._sealed, checked_text(plain))

    def sealed(self) -> dict[str, Any] | None:
        """Return the record of a stage that has written everything but is not published."""
        sealed = self.read_note(self._sealed)
        return None if sealed is None else dict(sealed["record"])

    def is_whole(self) -> bool:
        """Tell whether the files of a sealed draft, published or not, are unchanged."""
        sealed = self._seal()
        inventory = from_record(sealed["record"]["files"])
        present: Inventory = {}
        try:
            for name, folders in sealed["folders"].items():
                for place in self._places(name, folders):
                    files = take_inventory(self.files, place)
                    present |= {_listed(name, path): file for path, file in files.items()}
        except Py4JJavaError:  # a local file differs from Hadoop's own checksums
            return False
        return present == inventory

    def read_note(self, path: str) -> dict[str, Any] | None:
        """Return a note of an earlier process; None if there is none, or if it was changed."""
        if not self.files.exists(path):
            return None
        try:
            return read_checked(self.files.read_text(path))
        except UnicodeDecodeError:
            return None

    def publish(self) -> None:
        """Rename everything to its final path, except what was renamed before."""
        self._refuse_links()
        sealed = self._seal()
        inventory = from_record(sealed["record"]["files"])
        for name, folders in sealed["folders"].items():
            self.check()
            self._publish(name, [self._to_root(folder) for folder in folders])
            sizes = {path: file.size for path, file in inventory.items()
                     if path == name or path.startswith(f"{name}/")}  # fmt: skip
            self._check_complete(name, sizes)

    def remove(self) -> None:
        """Remove the stage's draft."""
        self._refuse_links()
        self.files.delete(self._folder)

    def _refuse_links(self) -> None:
        """Refuse links before anything is moved or deleted: they lead out of the run."""
        refuse_links(f"{self._root}/{FOLDER}")

    def _publish(self, name: str, folders: list[str]) -> None:
        waiting = [folder for folder in folders if self.files.exists(folder)]
        whole = folders[0] if len(folders) == 1 else f"{self._folder}/{_READY}/{name}"
        if len(folders) > 1:
            for folder in waiting:
                self._gather(folder, whole)
        if self.files.exists(whole):
            # an outdated result, or one without a record; the new one is complete
            self.files.delete(f"{self._root}/{name}")
            self.files.move(whole, f"{self._root}/{name}")

    def _gather(self, folder: str, whole: str) -> None:
        for info in self.files.below(folder):
            target = f"{whole}/{relative(info, folder)}"
            if not self.files.exists(target):
                self.files.move(info.path, target)
        self.files.delete(folder)

    def _check_complete(self, name: str, expected: dict[str, int]) -> None:
        present = {relative(info, self._root): info.size
                   for info in self.files.below(f"{self._root}/{name}")}  # fmt: skip
        for path in sorted(present.keys() | expected.keys()):
            if present.get(path) != expected.get(path):
                raise ContractError(
                    f"{self._root}/{path}: is not what the stage wrote: delete {self._folder} to "
                    "run the stage again"
                )

    def _seal(self) -> dict[str, Any]:
        sealed = self.read_note(self._sealed)
        assert sealed is not None
        return sealed

    def _places(self, name: str, folders: list[str]) -> list[str]:
        """Return where the files of a table are: still in the draft, or published."""
        drafts = [*map(self._to_root, folders), f"{self._folder}/{_READY}/{name}"]
        return [path for path in drafts if self.files.exists(path)] or [f"{self._root}/{name}"]

    def _from_root(self, path: str) -> str:
        return path.removeprefix(f"{self._root}/")

    def _to_root(self, path: str) -> str:
        return f"{self._root}/{path}"


def _listed(name: str, path: str) -> str:
    """Return a file's path in a record; a table that is a single file has an empty `path`."""
    return f"{name}/{path}".rstrip("/")
