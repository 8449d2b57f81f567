"""Declares compiled functions: numba's `njit`, with a cache that depends on all sources.

numba itself reuses a cached function while its own module is unchanged, although functions of other
modules are compiled into it. Here a cache belongs to one state of all modules that declare compiled
functions (`compiled_cache`).
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)

from spark_rank.compiled_cache import place

__all__ = ["njit"]

# so that two processes never use one file name for the code of two signatures
_PROCESS = secrets.token_hex(4)


class _Locator(_CacheLocator):
    """Finds the cache of a function: a directory for its package, a file for its module."""

    def __init__(self, function: Any) -> None:
        self._line = function.__code__.co_firstlineno
        rooms = function.__module__.split(".")[1:-1]
        self._path = Path(place(numba.__version__), *rooms)

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str:
        return place(numba.__version__).name

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Self:
        return cls(py_func)


class _Implementation(CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_Locator]  # noqa: RUF012


class _Files(IndexDataCacheFile):
    def _data_name(self, number: int) -> str:
        name = Path(super()._data_name(number))
        return f"{name.stem}-{_PROCESS}{name.suffix}"


class _Cache(FunctionCache):
    _impl_class = _Implementation

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _Files(
            cache_path=self.cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )


def _njit(function: Any = None, *, cache: bool = False, **options: Any) -> Any:
    """Do what `numba.njit` does without signatures; `cache` keeps the code on disk."""
    if function is None:
        return lambda given: _njit(given, cache=cache, **options)
    compiled = numba.njit(**options)(function)
    if cache:
        compiled._cache = _Cache(function)
    return compiled


if TYPE_CHECKING:
    from numba import njit
else:
    njit = _njit
