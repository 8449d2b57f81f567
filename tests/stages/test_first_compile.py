"""train says that it compiles first, where nothing of its learners has been compiled yet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_rank.learners import PER_USER
from spark_rank.stages import first_compile
from spark_rank.stages.first_compile import tell_compiling, uncompiled
from spark_rank.users.specs import BASELINE_SPECS, LearnerSpec

CODE = """
from spark_rank.stages.first_compile import uncompiled
from spark_rank.users.specs import LearnerSpec
from spark_rank.learners import PER_USER, PRank
specs = [LearnerSpec(name, name, False) for name in PER_USER]
specs.append(LearnerSpec("curved", "mprank", False, {"kernel": "rbf"}))
print(*uncompiled(specs))
PRank(3).fit([[1.0], [2.0], [3.0]], [1, 2, 3])
print(*uncompiled(specs))
"""


def test_files_of_numba_tell_what_is_still_to_be_compiled(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    before, after = (set(line.split()) for line in done.stdout.splitlines())
    assert before == {*PER_USER, "curved"}
    assert "prank" not in after
    assert {"mprank", "curved", "svrank", "ranksvm", "rankboost"} <= after


@pytest.mark.parametrize(("master", "said"), [("local[2]", True), ("spark://host:7077", False)])
def test_it_is_told_in_a_line_and_only_of_this_machine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, master: str, said: bool
) -> None:
    context: Any = SimpleNamespace(master=master)
    specs = [LearnerSpec("one", "mprank", True)]
    monkeypatch.setattr(first_compile, "_is_kept", lambda function: False)
    tell_compiling(specs, context)
    line = "[train] compiling the functions of one first, about a minute: only the first time"
    assert capsys.readouterr().err.startswith(line) == said
    assert uncompiled([*BASELINE_SPECS, *specs]) == ["constant", "item_offset", "one"]
    monkeypatch.setattr(first_compile, "_is_kept", lambda function: True)
    tell_compiling([*BASELINE_SPECS, *specs], context)
    assert capsys.readouterr().err == ""
