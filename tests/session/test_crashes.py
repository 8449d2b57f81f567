"""When the driver takes an error for a worker's death, and what it does then."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from spark_rank.errors import TooManyFailuresError
from spark_rank.session.crashes import isolating_on_crash

DIED = "Lost task 0.0: SparkException: Python worker exited unexpectedly (crashed): Fatal"
TOO_MUCH = "An exception was thrown from the Python worker:\nnumpy._ArrayMemoryError: 8 TiB"
OTHERS = ("java.lang.OutOfMemoryError: Java heap space", "ValueError: a mistake")


def failing(said: str) -> tuple[list[bool], object]:
    asked: list[bool] = []

    def work(care: bool) -> str:
        asked.append(care)
        if not care:
            raise PySparkException(said)
        return "done"

    return asked, work


@pytest.mark.parametrize("said", [DIED, TOO_MUCH, "SystemExit: 1"])
def test_what_workers_died_of_is_done_isolating_on_crash(
    said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, work = failing(said)
    assert isolating_on_crash(work, "train", "wave 2 of 3") == "done"  # type: ignore[arg-type]
    assert asked == [False, True]
    told = capsys.readouterr().err
    assert told.startswith("[train: warning] a Python worker died; computing wave 2 of 3 again")
    assert told.count("\n") == 1


@pytest.mark.parametrize("said", OTHERS)
def test_other_errors_are_not_tried_again(said: str) -> None:
    asked, work = failing(said)
    with pytest.raises(PySparkException, match=said.split(":", maxsplit=1)[0]):
        isolating_on_crash(work, "train", "wave 2 of 3")  # type: ignore[arg-type]
    assert asked == [False]


def test_who_dies_again_is_not_tried_for_ever() -> None:
    asked = []

    def work(care: bool) -> None:
        asked.append(care)
        raise PySparkException(DIED)

    with pytest.raises(PySparkException, match="exited unexpectedly"):
        isolating_on_crash(work, "train", "wave 2 of 3")
    assert asked == [False, True]


@pytest.mark.parametrize("at", [False, True])
def test_without_hope_it_ends_with_one_line(at: bool) -> None:
    def work(care: bool) -> None:
        said = "isolation.TooManyCrashesError: of 9 users 100 crashed\n\tat" if care is at else DIED
        raise PySparkException(said)

    with pytest.raises(TooManyFailuresError) as caught:
        isolating_on_crash(work, "train", "wave 2 of 3")
    assert str(caught.value).startswith("train: of 9 users 100 crashed: check the machine")
