"""Dependencies point one way; the entry points hold no logic."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spark_rank"
SPARK_FREE = ("learners", "metrics", "preference", "report", "config", "experiments", "planning")
FORBIDDEN = {
    **{room: {"pyspark", "pandas"} for room in SPARK_FREE},
    "learners": {"pyspark", "pandas", "spark_rank.engine", "spark_rank.stages", "spark_rank.data",
                 "spark_rank.features", "spark_rank.config", "spark_rank.metrics"},
    "metrics": {"pyspark", "pandas", "spark_rank.engine", "spark_rank.stages", "spark_rank.data",
                "spark_rank.features", "spark_rank.config", "spark_rank.learners"},
    "preference": {"pyspark", "pandas", "spark_rank.engine", "spark_rank.stages",
                   "spark_rank.data", "spark_rank.features", "spark_rank.config",
                   "spark_rank.metrics"},
    "experiments": {"pyspark", "pandas", "spark_rank.engine", "spark_rank.stages",
                    "spark_rank.report"},
    "planning": {"pyspark", "pandas", "spark_rank.engine", "spark_rank.stages", "spark_rank.runs",
                 "spark_rank.data", "spark_rank.report"},
    "data": {"spark_rank.engine", "spark_rank.stages", "spark_rank.features",
             "spark_rank.learners"},
    "features": {"spark_rank.engine", "spark_rank.stages", "spark_rank.learners"},
    "engine": {"spark_rank.stages", "spark_rank.report", "spark_rank.runs"},
    "stages": {"spark_rank.runs"},
    "runs": {"spark_rank.stages", "spark_rank.report"},
}  # fmt: skip


def imported_modules(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("room", FORBIDDEN)
def test_rooms_import_only_what_is_below_them(room: str) -> None:
    files = sorted((PACKAGE / room).rglob("*.py"))
    assert files, f"no module in {room}"
    for path in files:
        for name in imported_modules(path):
            broken = [f for f in FORBIDDEN[room] if name == f or name.startswith(f + ".")]
            assert not broken, f"{path.relative_to(ROOT)} imports {name}"


def test_all_work_of_workers_goes_one_way() -> None:
    own = PACKAGE / "data" / "workers.py"
    for path in PACKAGE.rglob("*.py"):
        called = [node.func for node in ast.walk(ast.parse(path.read_text()))
                  if isinstance(node, ast.Call)]  # fmt: skip
        names = {function.attr for function in called if isinstance(function, ast.Attribute)}
        assert ("mapInArrow" in names) == (path == own), path.relative_to(ROOT)
        assert not names & {"applyInArrow", "applyInPandas", "mapInPandas"}, path.relative_to(ROOT)


def test_the_check_sees_imports(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text("def f():\n    from pyspark.sql import functions\n    import pandas as pd\n")
    assert imported_modules(sample) == {"pyspark.sql", "pandas"}


def test_every_job_only_hands_over() -> None:
    from spark_rank.cli import STAGES

    jobs = {path.stem: path for path in (ROOT / "jobs").glob("*.py")}
    assert jobs.keys() == STAGES.keys()
    for name, path in jobs.items():
        assert f'run_job("{name}")' in path.read_text()
        assert len(path.read_text().splitlines()) <= 10


UNSAFE_MODULES = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "subprocess32"}
UNSAFE_CALLS = {
    "yaml.load", "yaml.unsafe_load", "yaml.full_load", "pd.read_pickle", "os.system", "eval", "exec"
}  # fmt: skip


def calls(path: Path) -> list[tuple[str, dict[str, object]]]:
    """Return the calls in a module: dotted name, and the constants given by keyword."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            given = {
                word.arg: word.value.value
                for word in node.keywords
                if word.arg and isinstance(word.value, ast.Constant)
            }
            found.append((ast.unparse(node.func), given))
    return found


def test_nothing_is_pickled_or_loaded_unsafely() -> None:
    loads = 0
    for path in PACKAGE.rglob("*.py"):
        assert not imported_modules(path) & UNSAFE_MODULES, path
        for name, given in calls(path):
            assert name not in UNSAFE_CALLS, f"{path}: {name}"
            if name in ("np.load", "numpy.load"):
                loads += 1
                assert given.get("allow_pickle") is False, path
            assert given.get("shell") is not True, path
    assert loads > 0


# `spark-rank` is not what says these: a tool of the checkout, and a child that only empties buffers
OWN_STDERR = {"events.py", "packaging/package.py", "users/isolation.py"}


def test_what_is_told_on_stderr_is_an_event() -> None:
    """Else a line is no JSON where that was asked for, and nobody looks for secrets in it."""
    direct = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.stderr"
    }
    assert direct == OWN_STDERR
