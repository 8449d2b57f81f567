"""Announces that the first `train` of an installation compiles its functions.

numba keeps compiled functions in files, which show what is still to be compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from numba.core.dispatcher import Dispatcher
from pyspark import SparkContext

from spark_rank.events import emit
from spark_rank.learners import kernels
from spark_rank.learners.costs import kernel_of
from spark_rank.users.specs import LearnerSpec


def tell_compiling(specs: Sequence[LearnerSpec], context: SparkContext) -> None:
    """Emit an event if the workers on this machine have to compile functions of the learners."""
    labels = uncompiled(specs) if str(context.master).startswith("local") else []
    if labels:
        emit(
            "compiling",
            f"compiling the functions of {', '.join(labels)} first, about a minute: only the first "
            "time on this machine",
            stage="train", learners=labels,
        )  # fmt: skip


def uncompiled(specs: Sequence[LearnerSpec]) -> list[str]:
    """Return the labels of the learners without any compiled function."""
    needed = {spec.label: _functions(_modules(spec)) for spec in specs}
    return [label for label, found in needed.items() if found and not any(map(_is_kept, found))]


def _modules(spec: LearnerSpec) -> Iterable[ModuleType]:
    """Return the modules with the functions to compile for a learner."""
    own = [sys.modules[kind.__module__] for kind in spec.kind.__mro__]
    return [*own, kernels] if kernel_of(spec) != "linear" else own


def _functions(modules: Iterable[ModuleType]) -> list[Dispatcher]:
    found = [value for module in modules for value in vars(module).values()]
    return [value for value in found if isinstance(value, Dispatcher)]


def _is_kept(function: Dispatcher) -> bool:
    """Tell whether the cache has a compiled form of the function."""
    python = function.py_func
    name = f"{python.__module__.rpartition('.')[2]}.{python.__qualname__}-*.nbi"
    folder = function.stats.cache_path
    return folder is not None and any(Path(folder).glob(name))
