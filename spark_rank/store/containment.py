"""Ensures that a run is inside its store, whatever links a local disk has."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from spark_rank.errors import ConfigError


def check_contained(root: str, runs: str) -> None:
    """Raise `ConfigError` if the run directory `root` is a link, out of `runs` or to another run.

    Both are qualified paths. Only local disks have links. The store itself may be a link.
    """
    if not _is_local(root):
        return
    parent, target = _resolved(runs), _resolved(root)
    if target == os.path.join(parent, os.path.basename(_local(root))):
        return
    if os.path.commonpath([parent, target]) == parent:
        raise ConfigError(f"{root} is a link to {target}: remove it, or name that run")
    raise ConfigError(
        f"{root} is a link that leads out of the store, to {target}: remove it, or name that store"
    )


def refuse_links(folder: str) -> None:
    """Raise `ConfigError` if a folder of a run is a link or contains one at any depth.

    Writing or deleting through a link would change files outside the run.
    """
    if not _is_local(folder):
        return
    for path in _links(_local(folder)):
        raise ConfigError(
            f"{path} is a link to {os.readlink(path)}, and a run must not contain links: replace "
            "it by what it links to"
        )


def _links(folder: str) -> Iterator[str]:
    if os.path.islink(folder):
        yield folder
        return
    for place, folders, files in os.walk(folder):
        for name in sorted([*folders, *files]):
            path = os.path.join(place, name)
            if os.path.islink(path):
                yield path


def _is_local(path: str) -> bool:
    return path.startswith("file:")


def _resolved(path: str) -> str:
    return os.path.realpath(_local(path))


def _local(path: str) -> str:
    return re.sub("^file:(//)?", "", path)
