"""Sees that a run lies in its store, whatever links there are on a local disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from spark_rank.errors import ConfigError


def check_contained(root: str, runs: str) -> None:
    """Raise `ConfigError` if the run directory `root` is a link, out of `runs` or to another run.

    Both are qualified paths. Only local disks have links; the store itself may be one.
    """
    if not _is_local(root):
        return
    inside, outside = _resolved(runs), _resolved(root)
    if outside == os.path.join(inside, os.path.basename(_local(root))):
        return
    if os.path.commonpath([inside, outside]) == inside:
        raise ConfigError(f"{root} is a link to {outside}: remove it, or name that run")
    raise ConfigError(
        f"{root} is a link that leads out of the store, to {outside}: remove it, or name that store"
    )


def refuse_links(folder: str) -> None:
    """Raise `ConfigError` if a folder of a run is a link, or has one in it, however deep.

    Whoever writes or deletes through a link does so where the link leads.
    """
    if not _is_local(folder):
        return
    for path in _links(_local(folder)):
        raise ConfigError(
            f"{path} is a link to {os.readlink(path)}, and a run has none: remove it, and bring "
            "there what it stands for"
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
