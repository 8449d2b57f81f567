"""Every block of code in the pages works: it runs here, or it says where it runs."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank import cli
from spark_rank.config import load_config
from spark_rank.ml import PerUserRankerModel
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# blocks that this module leaves to others, by a line that they contain
ELSEWHERE = {
    "als = ALS(userCol=": "tests/examples/test_from_als.py runs the example with these lines",
    "ranker = PerUserRanker(userCol=\"user\", itemCol=\"item\", ratingCol=\"rating\", rank=20":
        "tests/examples/test_from_als.py runs the example with these lines",
    "class CovarianceScorer(Learner)": "tests/stages/test_added_learner.py takes it through a run",
    "def score(row, item)": "tests/stages/test_read_tables_page.py scores every model with it",
    "def read_star_log(": "tests/data/test_added_format.py reads files with it",
    "reviewer_ratings": "tests/stages/test_features.py runs it on a run with reviewers",
    "pip install mlflow": "tests/tracking/test_mlflow.py needs what these lines install",
    "import log_model": "tests/tracking/test_mlflow.py runs these lines with a real MLflow",
    "load_model(\"models:/ranking/1\")":
        "tests/tracking/test_mlflow.py runs these lines with a real MLflow",
    "learner: \"toy_rank:": "tests/stages/test_added_learner.py takes it through a run",
}  # fmt: skip
# commands that answer at once; all others take minutes, and have tests of their own
QUICK = {"runs", "explain", "plan", "config", "formats", "learners", "demo"}
# what a shell has, and what a reader's own machine has
SHELL = {"cd", "mkdir", "tar", "export", "curl", "duckdb"}
RUNS = ("default", "films", "monday", "tuesday")


@dataclass(frozen=True)
class Block:
    page: Path
    number: int
    language: str
    text: str

    @property
    def label(self) -> str:
        return f"{self.page.relative_to(ROOT)}-{self.number}"


def blocks_of(page: Path) -> Iterator[Block]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    for number, (language, text) in enumerate(found, 1):
        yield Block(page, number, language, text)


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def written_in(*languages: str) -> list[Any]:
    own = [block for block in BLOCKS if block.language in languages]
    left = [block for block in own if not any(line in block.text for line in ELSEWHERE)]
    return [pytest.param(block, id=block.label) for block in left]


def commands_of(block: Block) -> list[list[str]]:
    lines = block.text.replace("\\\n", " ").splitlines()
    parts = [part for line in lines for part in re.split(r" && ", line)]
    words = [shlex.split(re.sub(r"\s#.*", "", part)) for part in parts]
    return [own for own in words if own]


@pytest.fixture(scope="module")
def place(finished: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the store that the pages speak of: the same run by several names."""
    folder = tmp_path_factory.mktemp("pages")
    for name in RUNS:
        target = folder / "store" / "runs" / f"run_id={name}"
        shutil.copytree(finished.root.removeprefix("file:"), target)
    return folder


def test_every_block_has_a_language_that_is_checked() -> None:
    assert len(BLOCKS) > 40
    for block in BLOCKS:
        assert block.language in ("python", "sh", "sql", "yaml", "toml", "text"), block.label


def test_what_runs_elsewhere_is_there() -> None:
    for line, where in ELSEWHERE.items():
        assert any(line in block.text for block in BLOCKS), line
        assert (ROOT / where.split()[0]).exists()


@pytest.mark.parametrize("block", written_in("yaml"))
def test_a_configuration_is_taken(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "page.yaml"
    path.write_text(block.text)
    load_config(path, [])


@pytest.mark.parametrize("block", written_in("toml"))
def test_toml_is_read(block: Block) -> None:
    assert tomllib.loads(block.text)


def check_settings(options: Any) -> None:
    """Load the configuration that a command asks for; a file of the reader's own may be missing."""
    own = options.config and not (ROOT / options.config).exists()
    assert not own or options.config.endswith("nightly.yaml")
    load_config(None if own or not options.config else ROOT / options.config, options.sets)


def run_command(words: list[str]) -> None:
    """Check a command of a page: what is quick runs, of what is not every argument is taken."""
    program, *rest = words
    if program == "spark-rank":
        options = cli.command_parser().parse_args(rest)
        if "sets" in options and options.command != "reproduce":
            check_settings(options)
        user = options.command == "recommend" and options.user is not None
        if (options.command in QUICK or user) and "conf/" not in " ".join(rest):
            assert cli.main(rest) == 0, words
    elif program in ("spark-submit", "python"):
        (script, *arguments) = rest[next(i for i, w in enumerate(rest) if w.endswith(".py")) :]
        assert (ROOT / script).exists()
        if script.startswith("jobs/"):
            stage = Path(script).stem
            check_settings(cli.command_parser().parse_args([stage, *arguments]))
    elif program == "make":
        assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), words
    else:
        assert program in SHELL, words


@pytest.mark.parametrize("block", written_in("sh"))
def test_commands_are_there_and_take_their_arguments(
    block: Block, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    for words in commands_of(block):
        run_command(words)


@pytest.mark.parametrize("block", written_in("sql"))
def test_queries_find_rows(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    if "latest.json" not in block.text:
        monkeypatch.chdir(place / "store/runs/run_id=default")
    assert cli.main(["runs", "promote", "default", "--set", f"store={place / 'store'}"]) == 0
    with duckdb.connect() as connection:
        query = block.text.replace("'mprank_linear'", "'linear'")  # the name in the tests' run
        *before, last = [part for part in query.split(";\n") if part.strip()]
        for statement in before:
            connection.execute(statement)
        assert connection.execute(last).fetchall()


def run_python(block: Block, place: Path, names: dict[str, Any]) -> None:
    # the JVM stays in the folder where it began
    code = block.text.replace('"store/', f'"{place}/store/')
    exec(compile(code, block.label, "exec"), names)


def first_python(place: Path) -> tuple[dict[str, Any], str]:
    """Run the README's Python; return its names, and what it prints."""
    (first,) = (block for block in blocks_of(ROOT / "README.md") if block.language == "python")
    names: dict[str, Any] = {"__name__": "page"}
    with redirect_stdout(StringIO()) as shown:
        run_python(first, place, names)
    return names, shown.getvalue()


def lines(text: str) -> str:
    """Return what is written, without empty lines."""
    return "\n".join(line for line in text.splitlines() if line)


@pytest.mark.slow
def test_the_readme_shows_what_its_lines_print(spark: SparkSession, tmp_path: Path) -> None:
    config = load_config(ROOT / "conf/default.yaml", [f"store={tmp_path / 'store'}"])
    run_stages([STAGES["synthesize"]], config, spark, Run(spark, config.store, config.run_id))
    _, shown = first_python(tmp_path)
    assert lines(shown) in lines((ROOT / "README.md").read_text())


@pytest.fixture(scope="module")
def names(spark: SparkSession, place: Path) -> dict[str, Any]:
    """Return what the blocks of a page take for granted: among it, the model of the README."""
    names, shown = first_python(place)
    ratings = names["ratings"].drop("schema_version")
    return {
        **names, "shown": shown, "PerUserRankerModel": PerUserRankerModel,
        "held_out": ratings.limit(40), "items": ratings.select("item").limit(2),
        "new_ratings": ratings.limit(9).withColumn("user", F.lit("new")),
        "store": str(place / "store"), "run_id": "default",
    }  # fmt: skip


def test_the_readme_fits_predicts_and_lists(names: dict[str, Any]) -> None:
    text = (ROOT / "README.md").read_text()
    for head in ("|user|item|", "|user|recommendations"):
        assert head in names["shown"]
        assert head in text
    ratings = names["ratings"]
    n_items = ratings.select("item").distinct().count()
    rated = ratings.groupBy("user").count()
    with_unseen = rated.where(F.col("count") < n_items).count()
    assert names["model"].recommendForAllUsers(3).count() == with_unseen > 40


def after_the_readme() -> list[Any]:
    """Return the blocks of Python that are left; what asks a fitted model takes long."""
    left = [each for each in written_in("python") if "README" not in each.id]
    return [pytest.param(*each.values, id=each.id, marks=[pytest.mark.slow])
            if "model.evaluate" in each.values[0].text else each for each in left]  # fmt: skip


@pytest.mark.parametrize("block", after_the_readme())
def test_python_runs(block: Block, place: Path, request: pytest.FixtureRequest) -> None:
    fitted = "model.evaluate" in block.text
    names = dict(request.getfixturevalue("names")) if fitted else {"__name__": "page"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        run_python(block, place, names)
