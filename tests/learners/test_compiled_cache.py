"""Compiled functions live as long as all their sources, wherever the package can be imported."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import CodeType

import pytest
from numba.core.dispatcher import Dispatcher
from pyspark.sql import SparkSession

import spark_rank
from spark_rank import compiled_cache

PACKAGE = Path(spark_rank.__file__).parent
SPREAD = """
import numba
from spark_rank.compiled_cache import place
from spark_rank.metrics import mean_squared_difference
print(mean_squared_difference([0.0, 1.0], [0.0, 0.0]), place(numba.__version__))
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package, beside folders for homes and the like."""
    copy = tmp_path / "site" / "spark_rank"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "temporary").mkdir()
    return copy.parent


@pytest.fixture
def locked(site: Path) -> Path:
    """Return the same where not even root can write caches into the package."""
    for folder in [site / "spark_rank", *(site / "spark_rank").rglob("*")]:
        if folder.is_dir():
            (folder / "__pycache__").write_text("a file in the place of the folder")
    return site


def started(path: Path, **environment: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items()
            if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}  # fmt: skip
    kept |= {"PYTHONPATH": str(path), "TMPDIR": str(path.parent / "temporary"), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", SPREAD],
        env=kept, cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finished(process: subprocess.Popen[str]) -> tuple[float, Path]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    number, place = out.split()
    return float(number), Path(place)


def measured(path: Path, **environment: str) -> tuple[float, Path]:
    """Return an MSD that a fresh process computes (½), and the place of its compiled functions."""
    return finished(started(path, **environment))


def compiled(place: Path) -> dict[str, float]:
    return {str(path.relative_to(place)): path.stat().st_mtime
            for path in place.rglob("*.nb[ic]")}  # fmt: skip


def test_a_second_process_compiles_nothing(site: Path) -> None:
    place = measured(site)[1]
    found = compiled(place)
    assert place.parent == site / "spark_rank" / "__pycache__"
    assert any(name.startswith("metrics/residuals.squared_difference") for name in found)
    assert measured(site) == (0.5, place)
    assert compiled(place) == found


@pytest.mark.slow
def test_a_change_reaches_the_functions_that_it_is_compiled_into(site: Path) -> None:
    """`_measure_users` of the batch holds the code of `squared_difference` of another module."""
    batch = (
        "from spark_rank.metrics import batch_metrics as b; print(b([0, 1.], [0, 0.], [0, 2], "
        "on_rating_scale=[True], top=1, relevant_from=1, epsilon=0, levels=None)['msd'][0])"
    )
    command, source = [sys.executable, "-c", batch], site / "spark_rank/metrics/residuals.py"
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    before = subprocess.check_output(command, env=environment, cwd=site)
    source.write_text(source.read_text().replace("return 2.0 * total", "return 4.0 * total"))
    after = subprocess.check_output(command, env=environment, cwd=site)
    assert (float(before), float(after)) == (0.5, 1.0)


def test_a_read_only_package_is_cached_at_home(locked: Path, tmp_path: Path) -> None:
    place = measured(locked, HOME=str(tmp_path / "home"))[1]
    assert place.parent == tmp_path / "home" / ".cache" / "spark_rank"
    found = compiled(place)
    assert measured(locked, HOME=str(tmp_path / "home"))[1] == place
    assert found
    assert compiled(place) == found


def test_the_same_sources_elsewhere_share_a_place(locked: Path, tmp_path: Path) -> None:
    place = measured(locked, HOME=str(tmp_path))[1]
    found = compiled(place)
    shutil.move(locked, tmp_path / "container")
    assert measured(tmp_path / "container", HOME=str(tmp_path))[1] == place
    assert compiled(place) == found


def test_a_package_in_a_zip_is_cached_like_its_folder(locked: Path, tmp_path: Path) -> None:
    place = measured(locked, HOME=str(tmp_path))[1]
    found = compiled(place)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for path in PACKAGE.rglob("*.py"):
            archive.write(path, path.relative_to(PACKAGE.parent))
    assert measured(tmp_path / "packed.zip", HOME=str(tmp_path)) == (0.5, place)
    assert compiled(place) == found


def test_without_a_home_compiled_functions_are_kept_privately(locked: Path) -> None:
    home = measured(locked, HOME="/dev/null")[1].parent
    assert home.parent == locked.parent / "temporary"
    assert home.stat().st_mode & 0o777 == 0o700
    assert home == measured(locked, HOME="/dev/null")[1].parent


def test_a_directory_that_others_can_write_is_not_trusted(locked: Path) -> None:
    home = measured(locked, HOME="/dev/null")[1].parent
    home.chmod(0o777)
    assert measured(locked, HOME="/dev/null")[1].parent != home


def test_a_chosen_directory_comes_first(site: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen"
    place = measured(site, NUMBA_CACHE_DIR=str(chosen))[1]
    assert place.parent == chosen
    assert compiled(place)


def test_many_processes_may_start_at_once(site: Path) -> None:
    processes = [started(site) for _ in range(4)]
    results = [finished(process) for process in processes]
    assert {number for number, _ in results} == {0.5}
    assert len({place for _, place in results}) == 1
    assert not list(results[0][1].rglob("*.tmp.*"))


def test_no_two_processes_name_their_code_alike(tmp_path: Path) -> None:
    """Else the index of one could name the code of the other, compiled for other types."""
    from spark_rank.compiled import _Files

    own = _Files(str(tmp_path), "kernel", "stamp")._data_name(1)
    there = "from spark_rank.compiled import _Files; print(_Files('', 'kernel', '')._data_name(1))"
    other = subprocess.check_output([sys.executable, "-c", there], text=True).strip()
    assert own != other
    assert own.startswith("kernel.1-")
    assert own.endswith(".nbc")


def test_old_places_are_removed_but_a_few(tmp_path: Path) -> None:
    own = tmp_path / "spark_rank-compiled-own"
    old = [tmp_path / f"spark_rank-compiled-{n}" for n in range(9)]
    for age, path in enumerate([own, *old]):
        (path / "learners").mkdir(parents=True)
        (path / "learners" / "kernel.nbc").write_bytes(b"code")
        used = time.time() - (60.0 if age < 7 else 7200.0) - age
        os.utime(path, (used, used))
    (tmp_path / "other").mkdir()
    compiled_cache._remove_old(tmp_path, own)
    # four stay in any case, further ones while they are in use
    assert {path.name for path in tmp_path.iterdir()} == {
        "other", own.name, *(path.name for path in old[:6])
    }  # fmt: skip


def test_what_numba_put_beside_the_modules_goes(site: Path) -> None:
    folder = site / "spark_rank" / "metrics" / "__pycache__"
    folder.mkdir()
    for name in ("pairs.kernel-1.py311.nbi", "pairs.kernel-1.py311.1.nbc", "pairs.pyc"):
        (folder / name).write_bytes(b"")
    measured(site)
    assert not list(folder.glob("*.nb*"))
    assert (folder / "pairs.pyc").exists()


def test_workers_use_the_place_of_the_driver(spark: SparkSession) -> None:
    def places(_: object) -> list[str]:
        import numba

        from spark_rank.compiled_cache import place

        return [str(place(numba.__version__))]

    found = spark.sparkContext.parallelize(range(2), 2).mapPartitions(places).collect()
    assert set(found) == set(places(None))


def _marked() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py"))
            if any(mark in path.read_bytes() for mark in compiled_cache._MARKS)]  # fmt: skip


def _module(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def _names(code: CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _imported(path: Path) -> dict[str, str]:
    """Return from which module of the package a module takes each name."""
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spark_rank")
        for alias in node.names
    }


def test_compiled_functions_use_nothing_that_the_checksum_leaves_out() -> None:
    modules = {_module(path): path for path in _marked()}
    checked = 0
    for name, path in modules.items():
        imported = _imported(path)
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == name:
                used = {imported[n] for n in _names(value.py_func.__code__) & imported.keys()}
                assert used <= modules.keys(), f"{name}: {value.py_func.__name__}"
                checked += 1
    assert checked > 100


def test_every_compiled_function_is_declared_in_one_way() -> None:
    for path in _marked():
        if path.name != "compiled.py":
            imports = [node for node in ast.walk(ast.parse(path.read_text()))
                       if isinstance(node, ast.ImportFrom) and node.module == "numba"]  # fmt: skip
            names = {alias.name for node in imports for alias in node.names}
            assert not names & {"njit", "jit"}, f"{path}: take njit from spark_rank.compiled"
