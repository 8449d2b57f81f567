"""Users who end the interpreter that learns them: marked and left out, and nobody else notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.driver import CHECKOUT, Driver, Tables, rows
from tests.faults.poisoned import PATH, failed_users, learned, poison_users, reasons

# several commands, each with a bound of its own
pytestmark = pytest.mark.timeout(3000)
GRIDS = (
    "train.learners=[{name: curved, params: {kernel: rbf}, grid: {C: [1, 10]}}]", "tune.users=120",
    "ensemble={in_pipeline: true, groups: 2, learners: [{n_members: 3}]}",
)  # fmt: skip


def poison(run: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the users to poison and how, and the environment in which they end their worker."""
    users, poison = poison_users(run)
    return users, {"PYTHONPATH": f"{PATH}:{CHECKOUT}", "POISON": poison}


@pytest.mark.slow
@pytest.mark.fault(
    "users who end the Python worker that learns them (segmentation fault, exit, SIGKILL as by "
    "the out-of-memory killer), or ask for too much memory",
    "each is a failed user, `crashed` or `out_of_memory`, after two tries in a process of its "
    "own; all other rows as undisturbed",
)
def test_a_user_who_crashes_is_a_row(undisturbed: Driver, expected: Tables) -> None:
    users, environment = poison(undisturbed.run("undisturbed"))
    said = undisturbed.finish("poisoned", environment=environment)
    run = undisturbed.run("poisoned")
    assert "a Python worker died" in said
    assert "curved: 3 users failed by crashed, for example user" in said
    assert "spark_rank/cli.py" not in said
    crashed = {(user, "curved"): why for user, why in reasons(users).items()}
    assert failed_users(run) == failed_users(run, "final_models") == crashed
    whole = undisturbed.run("undisturbed")
    assert learned(run, users, "curved") == learned(whole, users, "curved")
    lists = [
        rows(root / "recommendations", "user_id, source, * exclude (run_id)")
        for root in (whole, run)
    ]
    healthy, others = ([row for row in found if row[0] not in users] for found in lists)
    assert others == healthy
    # a list without a model is that of the item offset
    assert {row[1] for row in lists[1] if row[0] in users} == {"item_offset"}
    assert {row[0] for row in lists[1]} == {row[0] for row in lists[0]}
    # what is done is not done again, and so nobody crashes again
    assert "a Python worker died" not in undisturbed.finish("poisoned", environment=environment)


@pytest.mark.slow
@pytest.mark.fault(
    "such users where Spark starts a failed task again",
    "its second attempt isolates them: nobody else's task is made again",
)
def test_a_second_attempt_isolates_users(undisturbed: Driver, tmp_path: Path) -> None:
    users, environment = poison(undisturbed.run("undisturbed"))
    driver = Driver(tmp_path)
    driver.copy_before_train(undisturbed)
    again = ("--spark", "spark.master=local[2,2]")
    said = driver.finish("undisturbed", *again, command="train", environment=environment)
    assert "[train: warning] a Python worker died" not in said
    assert "curved: 3 users failed by crashed, for example user" in said
    found, expected = (
        learned(d.run("undisturbed"), users, "curved") for d in (driver, undisturbed)
    )
    assert found == expected


@pytest.mark.slow
@pytest.mark.fault(
    "more users crash than `train.max_failed_share` allows",
    "exit code 4, and one line that says how many and why",
)
def test_too_many_crashes_end_the_run(undisturbed: Driver, tmp_path: Path) -> None:
    _, environment = poison(undisturbed.run("undisturbed"))
    driver = Driver(tmp_path)
    driver.copy_before_train(undisturbed)
    limit = "train.max_failed_share=0.01"
    found = driver.outcome("undisturbed", limit, command="train", environment=environment)
    assert found.code == 4
    assert "3 failed: crashed" in found.last_line
    assert "spark_rank/cli.py" not in found.said
    assert "models" not in driver.tables("undisturbed")


@pytest.mark.slow
@pytest.mark.fault(
    "the same users end the workers of `tune` and `ensemble`",
    "left out of the choice, failed users of the ensemble; all other rows as undisturbed",
)
def test_tuning_and_ensembles_go_on_without_them(undisturbed: Driver, expected: Tables) -> None:
    undisturbed.finish("grids", *GRIDS)
    users, environment = poison(undisturbed.run("undisturbed"))
    said = undisturbed.finish("grids-poisoned", *GRIDS, environment=environment)
    assert "[tune: warning] a Python worker died" in said
    assert "left out 4 failures, the first: " in said
    assert "[ensemble: warning] a Python worker died" in said
    ensembles = [
        {row[0]: row for row in rows(undisturbed.run(run) / "ensemble_models",
                                     "user_id, status, reason, * exclude (run_id)")}
        for run in ("grids", "grids-poisoned")
    ]  # fmt: skip
    failed = {user: row[2] for user, row in ensembles[1].items() if row[1] == "failed"}
    assert failed == reasons(users)
    whole, poisoned = (
        {user: row for user, row in found.items() if user not in users} for found in ensembles
    )
    assert poisoned == whole
