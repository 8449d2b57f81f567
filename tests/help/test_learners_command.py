"""``spark-rank learners`` lists what can be learned, at once and without Java."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from spark_rank import cli
from spark_rank.learners import BASELINES, REGISTRY, learner_class, registry

ROOT = Path(__file__).parents[2]
Shown = Callable[..., str]


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    def show(*words: str) -> str:
        assert cli.main(["learners", *words]) == 0
        return capsys.readouterr().out

    return show


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pretend that packages with learners are installed; one of them is broken."""
    entries = {
        name: EntryPoint(name, value, registry.GROUP)
        for name, value in (("theirs", "spark_rank.learners:PRank"), ("broken", "nowhere:Class"))
    }
    monkeypatch.setattr(registry, "_installed", lambda: entries)
    learner_class.cache_clear()
    yield
    learner_class.cache_clear()


def test_the_table_has_every_learner_and_baseline(shown: Shown) -> None:
    lines = {
        line.split()[0]: line for line in shown().split("\n\n")[0].splitlines() if line[2] > " "
    }
    assert {*REGISTRY, *BASELINES} <= lines.keys()
    assert "a rank" in lines["prank"]
    assert "a place in an order" in lines["ranksvm"]
    cost = float(lines["rankboost"].split("order")[1].split()[0])
    assert cost == pytest.approx(1e3 * REGISTRY["rankboost"].cost({}, 100, 32), rel=0.05)


@pytest.mark.parametrize("name", [*REGISTRY, *BASELINES])
def test_a_learners_page_has_all_its_parameters(name: str, shown: Shown) -> None:
    text = shown(name)
    learner = {**REGISTRY, **BASELINES}[name]
    for own, parameter in learner.parameters.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"  {own} ")]
        assert parameter.doc.split()[0] in line
        default = getattr(learner(**({"n_ranks": 5} if learner.of_ranks else {})), own)
        assert own == "n_ranks" or ("null" if default is None else str(default)) in line
    assert "example:" in text or name in BASELINES


def test_learners_of_installed_packages_are_listed(installed: None, shown: Shown) -> None:
    text = shown()
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "a rank" in lines["theirs"]
    assert "learner 'broken' cannot be imported" in " ".join(text.split())
    assert "PRank" in shown("theirs")
    assert "PRank" in shown("spark_rank.learners:PRank")


@pytest.mark.parametrize(
    ("name", "words"),
    [("mprnk", "did you mean 'mprank'?"), ("json:JSONDecoder", "is not a learner class")],
)
def test_what_is_no_learner_is_one_line(
    name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["learners", name]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_it_answers_at_once_and_starts_no_java() -> None:
    script = (
        "import sys, time; from spark_rank import cli; cli.main(['learners']);"
        "assert 'pyspark' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": "/nowhere"}
    seconds = []
    for _ in range(3):  # the machine may be busy
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=60)
        seconds.append(time.perf_counter() - began)
        if seconds[-1] < 1.5:
            break
    assert min(seconds) < 1.5
