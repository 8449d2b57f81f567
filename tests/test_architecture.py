"""Dependencies point one way; the entry points hold no logic."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spark_rank"
# What a room may import of the package, beside modules that stand in no room. A room that is not
# here fails the test, so that a new one is thought about. An entry "room.module" allows one module.
ALLOWED: dict[str, set[str]] = {
    # the mathematics: NumPy alone
    "learners": set(),
    "metrics": set(),
    "preference": {"learners"},
    # what a run leaves, as names and types
    "tables": set(),
    # what a stage leaves beside its tables, as types
    "records": set(),
    # Spark as a process
    "session": set(),
    "config": {"learners"},
    # ratings and features: in Spark and beside it
    "data": {"tables", "records", "session", "config"},
    "features": {"tables", "records", "session", "data.blocks"},
    # what one task does with a batch of users
    "users": {"learners", "metrics", "preference", "features", "tables", "records"},
    "sequences": {"learners", "metrics", "features", "tables", "session", "users"},
    # DataFrames in, DataFrames out
    "frames": {
        "users", "sequences", "features", "data", "tables", "records", "session", "metrics",
        "experiments", "config",
    },
    # a run on disk
    "store": {"tables", "records", "session", "config", "users.learning"},
    # a finished run as an object
    "reader": {"users", "features", "tables", "records", "config", "store.records"},
    "experiments": {"learners", "metrics", "preference", "features", "records", "config"},
    "planning": {"config", "features", "learners", "records"},
    "report": {"learners", "experiments", "metrics", "records"},
    # a run as a page that learns in a browser
    "demo": {
        "reader", "users.specs", "features.files", "learners", "tables", "config",
        "store.self_checked",
    },
    # runs in MLflow
    "tracking": {
        "reader", "store.run_records", "users.user_groups", "tables", "records", "session.files",
        "config",
    },
    "stages": {
        "frames", "store", "report", "planning", "experiments", "users", "sequences", "features",
        "data", "tables", "records", "session", "learners", "metrics", "preference", "config",
        "reader", "tracking",
    },
    # what `spark-rank runs`, `plan`, `explain`, `track` and `recommend --user` do
    "runs": {
        "store", "stages", "planning", "records", "session", "config", "metrics", "learners",
        "reader", "tables", "tracking", "demo", "users.measuring",
    },
    # estimator and model; `stages` for what turns configurations into settings of `frames`
    "ml": {
        "frames", "stages", "store", "users", "features", "data", "tables", "records", "session",
        "learners", "metrics", "config", "reader",
    },
    # what the command line says of itself
    "help": {"config", "learners", "experiments"},
    "packaging": set(),
}  # fmt: skip
# The modules of a room that other rooms may import, all others are its own; "formats.*" stands for
# all modules of that sub-room.
PUBLIC: dict[str, set[str]] = {
    "learners": {
        "", "base", "costs", "errors", "feature_maps", "kernel_machine", "kernels", "parameters",
        "rows", "compiled.dot", "compiled.fenwick", "pairs.losses", "ridge.systems",
        "perceptrons.blocks", "perceptrons.diversity", "perceptrons.draws", "perceptrons.members",
        "perceptrons.online", "perceptrons.replay", "perceptrons.rounds",
    },
    "metrics": {"", "comparison", "intervals", "meaning"},
    "preference": {"", "many_users", "theorem_rows", "theorems"},
    "tables": {"contract", "contracts", "user_buckets"},
    "records": {"data", "facts", "features", "models", "results"},
    "session": {
        "arrow_files", "crashes", "event_logs", "files", "filesystem", "java", "jvm_death",
        "parquet_footer", "process_identity", "progress", "session", "sharing", "worker_log",
        "workers",
    },
    "config": {"", "describing", "labels", "run_ids", "schema", "sections", "values"},
    "data": {
        "blocks", "damage", "dictionaries", "duplicates", "filters", "formats", "formats.*",
        "merging", "packing", "pieces", "profile", "quality", "rating_scale", "shares", "splits",
        "synthetic",
    },
    "features": {
        "als", "choice", "content", "expected", "factor_model", "factors", "files", "gathering",
        "given", "offset", "panel", "pool", "reference", "shown", "similar",
    },
    "users": {
        "batches", "best_users", "candidates", "cases", "choice_prior", "ensemble_learning",
        "ensembles", "evaluating", "fitting", "generalization", "grid_edges", "held_out",
        "joining", "landmarks", "learning", "list_measuring", "list_summaries", "measuring",
        "member_sums", "model_rows", "newcomers",
        "predicting", "prior_scores", "problems", "rank_scale", "ranking", "rated_pairs",
        "recommending", "roc_sums", "selection", "shown_measuring",
        "specs", "stored_models", "tuning", "user_groups",
    },
    "sequences": {"examples", "files", "landmarks", "learning", "rivals"},
    "frames": {
        "block_counts", "blocks", "buckets", "distributions", "evaluate", "experiment_units",
        "ids", "isolation", "item_features", "majority_counts", "newcomers", "pair_metrics",
        "predict", "predictions", "rank", "recommend", "train", "tuning", "weights",
    },
    "store": {
        "catalogue", "containment", "drafts", "earlier_runs", "failures", "lease", "needed_runs",
        "pointer", "pruning", "records", "run", "run_metrics", "run_records",
        "self_checked", "storage_faults", "verification", "waves",
    },
    "reader": {"near", "recorded", "recommender", "run_folder", "user_model", "user_rows"},
    "demo": {"page", "reading"},
    "experiments": {"", "frame", "prank_ellipses", "rating_profile", "rating_set", "summary"},
    "planning": {
        "arguments", "memory", "offer", "plan", "rendering", "shortages", "sizes", "times",
    },
    "report": {
        "accuracy", "calibration", "console", "experiments", "explanation", "learner_order",
        "plots", "recommendations", "run_report", "spreads",
    },
    "stages": {
        "", "evaluate", "execution", "feature_arrays", "feature_tables", "final_run",
        "incremental", "prepare", "refit", "reproduce", "run_plan", "runner", "stage", "train",
        "training", "tune",
    },
    "ml": set(),
    "runs": {"arguments", "commands", "demo", "folds", "planning", "tracking", "users"},
    "tracking": {"connection", "mlflow_run"},
    "help": {"commands", "keys", "learners", "pages"},
    "packaging": set(),
}  # fmt: skip
# who may import Spark; `tables` does so only when it is asked for a DataFrame
WITH_SPARK = {
    "session", "tables", "data", "features", "frames", "sequences", "store", "stages", "runs", "ml",
}  # fmt: skip
# text that Spark hands over as a pandas Series, for it has nothing faster; and pandas UDFs
WITH_PANDAS = {"data/formats/netflix_scan.py", "frames/udfs.py", "tracking/pyfunc.py"}


def imported_modules(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
    return names


def imported_parts(path: Path) -> set[tuple[str, str]]:
    """Return the rooms and their modules that a module imports: ("learners", "pairs.losses")."""
    parts: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(
            "spark_rank."
        ):
            continue
        room, *inner = str(node.module).split(".")[1:]
        folder = PACKAGE.joinpath(room, *inner)
        for alias in node.names:
            is_module = (folder / f"{alias.name}.py").exists() or (folder / alias.name).is_dir()
            parts.add((room, ".".join([*inner, alias.name] if is_module else inner)))
    return parts


def broken_rules(room: str, path: Path) -> list[str]:
    """Return the imports of a module that its room is not allowed."""
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    broken = []
    for name in imported_modules(path):
        top, *inner = name.split(".")
        if top == "spark_rank" and inner and inner[0] in rooms - {room}:
            if not {inner[0], ".".join(inner[:2])} & ALLOWED[room]:
                broken.append(name)
        elif top in ("pyspark", "py4j"):
            broken += [] if room in WITH_SPARK else [name]
        elif top == "pandas" and str(path)[len(str(PACKAGE)) + 1 :] not in WITH_PANDAS:
            broken.append(name)
    return broken


def test_every_room_has_a_rule() -> None:
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    assert rooms == ALLOWED.keys()


def test_other_rooms_import_public_modules_alone() -> None:
    assert PUBLIC.keys() == ALLOWED.keys()
    used: dict[str, set[str]] = {room: set() for room in PUBLIC}
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0]
        for room, module in imported_parts(path):
            if room in PUBLIC and room != own:
                entry = "formats.*" if module.startswith("formats.") else module
                assert entry in PUBLIC[room], f"{path.relative_to(ROOT)}: {room}.{module}"
                used[room].add(entry)
    assert used == PUBLIC  # what nobody else imports is private


@pytest.mark.parametrize("room", ALLOWED)
def test_rooms_import_only_what_they_may(room: str) -> None:
    files = sorted((PACKAGE / room).rglob("*.py"))
    assert files, f"no module in {room}"
    for path in files:
        assert not broken_rules(room, path), path.relative_to(ROOT)


@pytest.mark.parametrize(
    "room",
    [
        "learners",
        "metrics",
        "preference",
        "tables",
        "records",
        "config",
        "users",
        "reader",
        "demo",
        "tracking",
        "help",
    ],
)
def test_what_needs_no_spark_loads_none(room: str) -> None:
    script = f"import sys, spark_rank.{room}; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_rules_do_not_go_in_a_circle() -> None:
    left = {room: {name.partition(".")[0] for name in below} for room, below in ALLOWED.items()}
    left["features"] -= {"data"}  # one module; the rooms do not know each other otherwise
    left["store"] -= {"users"}
    while left:
        free = {room for room, below in left.items() if not below & left.keys()}
        assert free, f"a circle among {sorted(left)}"
        left = {room: below for room, below in left.items() if room not in free}


def test_all_work_of_workers_goes_one_way() -> None:
    own = PACKAGE / "session" / "workers.py"
    joined = PACKAGE / "frames" / "buckets.py"
    for path in PACKAGE.rglob("*.py"):
        called = [node.func for node in ast.walk(ast.parse(path.read_text()))
                  if isinstance(node, ast.Call)]  # fmt: skip
        names = {function.attr for function in called if isinstance(function, ast.Attribute)}
        assert ("mapInArrow" in names) == (path == own), path.relative_to(ROOT)
        assert ("applyInArrow" in names) == (path == joined), path.relative_to(ROOT)
        assert not names & {"applyInPandas", "mapInPandas"}, path.relative_to(ROOT)


def test_the_check_sees_imports(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(
        "from spark_rank.errors import ConfigError\n"
        "def f():\n    from pyspark.sql import functions\n    import pandas as pd\n"
        "    from spark_rank.stages.train import train\n"
    )
    assert imported_modules(sample) == {
        "pyspark.sql", "pandas", "spark_rank.stages.train", "spark_rank.errors"
    }  # fmt: skip
    wrong = {"pyspark.sql", "pandas", "spark_rank.stages.train"}
    assert set(broken_rules("learners", sample)) == wrong
    assert set(broken_rules("runs", sample)) == {"pandas"}


def test_every_job_only_hands_over() -> None:
    from spark_rank.help.commands import STAGES

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


@pytest.mark.parametrize("room", ["features", "frames", "ml", "users"])
def test_what_the_python_api_stands_on_does_without_a_spark_context(room: str) -> None:
    """Sessions of Spark Connect have neither; `session/sharing.py` knows both kinds."""
    missing = {"sparkContext", "rdd", "_jvm", "_jsc", "_jdf", "_jsparkSession"}
    for path in sorted((PACKAGE / room).rglob("*.py")):
        used = {
            node.attr for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute)
        }  # fmt: skip
        assert not used & missing, path
