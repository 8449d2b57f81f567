"""A run that is going on has one owner, whatever clocks and processes do."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank.errors import RunHeldError
from spark_rank.session.filesystem import Filesystem
from spark_rank.session.process_identity import ProcessIdentity
from spark_rank.store.lease import Lease, LeaseTimes, held

FAST = LeaseTimes(beat=0.05, expiry=5.0, watch=0.6)
# as if no process of this name could be looked at
ELSEWHERE = ProcessIdentity("far.example", 7)

MakeLease = Callable[..., Lease]


@pytest.fixture
def lease(spark: SparkSession, tmp_path: Path) -> MakeLease:
    def make(**settings: Any) -> Lease:
        settings = {"times": FAST, "identity": ELSEWHERE, **settings}
        return Lease(Filesystem(spark), f"file:{tmp_path}/run", "r1", **settings)

    return make


def silent(lease: Lease) -> Lease:
    """Take the run and then do nothing more, as a process that was stopped."""
    lease.acquire()
    lease._stop.set()
    lease._beating.join()
    return lease


def test_a_second_start_is_refused_and_told_who_and_what_to_do(lease: MakeLease) -> None:
    with held(lease()):
        message = r"run 'r1' is in use \(process 7 on far.example, since 20.*\): .*--takeover"
        with pytest.raises(RunHeldError, match=message) as caught:
            lease().acquire()
        assert caught.value.exit_code == 2
        assert "\n" not in str(caught.value)
    with held(lease()):  # released, it is free at once
        pass


def test_one_of_many_starts_gets_the_run(lease: MakeLease) -> None:
    leases = [lease() for _ in range(6)]
    outcomes: list[bool] = []

    def start(one: Lease) -> None:
        try:
            one.acquire()
            outcomes.append(True)
        except RunHeldError:
            outcomes.append(False)

    threads = [threading.Thread(target=start, args=(one,)) for one in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 5 + [True]
    winner = leases[0].holder()
    assert winner is not None
    (owner,) = [one for one in leases if one.token == winner.token]
    owner.check()
    owner.release()


def test_who_is_taken_over_stops_and_publishes_nothing(lease: MakeLease) -> None:
    first, second, lost = lease(), lease(), threading.Event()
    first.acquire(when_lost=lost.set)
    first.check()
    second.acquire(takeover=True)
    second.check()
    with pytest.raises(RunHeldError, match="was taken over by another process"):
        first.check()
    assert lost.wait(5.0)
    first.release()  # takes nothing from the new owner
    second.check()
    second.release()
    assert second.holder() is None


def test_an_error_that_follows_from_the_loss_tells_of_the_loss(lease: MakeLease) -> None:
    first, second, cancelled = lease(), lease(), threading.Event()

    def work() -> None:
        with held(first, when_lost=cancelled.set):
            second.acquire(takeover=True)
            cancelled.wait(5.0)
            raise RuntimeError("job was cancelled")

    with pytest.raises(RunHeldError, match="taken over"):
        work()
    second.release()


def test_an_error_of_the_work_itself_stays_what_it_is(lease: MakeLease) -> None:
    def work() -> None:
        with held(lease()):
            raise RuntimeError("broke")

    with pytest.raises(RuntimeError, match="broke"):
        work()
    assert lease().holder() is None


def test_a_silent_holder_is_believed_until_the_lease_expires(lease: MakeLease) -> None:
    silent(lease())
    with pytest.raises(RunHeldError):
        lease().acquire()
    late = lease(clock=lambda: time.time() + 6.0)
    late.acquire()
    late.check()
    late.release()


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_clock_that_jumped_takes_nothing_from_who_is_alive(lease: MakeLease, hours: int) -> None:
    with held(lease()) as owner:
        with pytest.raises(RunHeldError):
            lease(clock=lambda: time.time() + 3600 * hours).acquire()
        owner.check()


@pytest.mark.fault(
    "the clock of a process that works on a run goes back between two renewals of its lease",
    "the run stays its own: a second start is refused, by a right clock and by a wrong one",
)
def test_a_clock_that_goes_back_between_renewals_loses_nothing(lease: MakeLease) -> None:
    jumps = iter([0.0, 3600.0, -3600.0, -7200.0])
    now = 0.0

    def clock() -> float:
        nonlocal now
        now = next(jumps, now)
        return time.time() + now

    with held(lease(clock=clock)) as owner:
        for hours in (0, -3, 3):
            with pytest.raises(RunHeldError, match="is in use"):
                lease(clock=lambda hours=hours: time.time() + 3600 * hours).acquire()
            owner.check()


def test_a_clock_that_went_back_does_not_keep_a_dead_lease_alive(lease: MakeLease) -> None:
    silent(lease(clock=lambda: time.time() + 3600))
    with held(lease()) as owner:
        owner.check()


def test_a_killed_holder_on_this_machine_is_replaced_without_waiting(lease: MakeLease) -> None:
    own = ProcessIdentity.own()
    if own.machine is None:
        pytest.skip("this system does not tell which processes live")
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    silent(lease(identity=ProcessIdentity.of(process.pid)))
    try:
        with pytest.raises(RunHeldError):
            lease(identity=own).acquire()
    finally:
        process.kill()
        process.communicate()
    with held(lease(identity=own)) as owner:
        owner.check()


def test_a_pid_that_was_given_again_is_another_process() -> None:
    own = ProcessIdentity.own()
    if own.machine is None:
        pytest.skip("this system does not tell which processes live")
    assert not own.is_dead(own)
    assert replace(own, started="1").is_dead(own)
    assert not replace(own, machine="another boot", started="1").is_dead(own)
    assert not replace(own, machine=None, pid=2**22 + 1).is_dead(replace(own, machine=None))


def test_a_lease_that_was_broken_off_while_written_is_replaced(
    lease: MakeLease, tmp_path: Path
) -> None:
    (tmp_path / "run" / "_lease").mkdir(parents=True)
    (tmp_path / "run" / "_lease" / "00000004.json").write_text("")
    with held(lease()) as owner:
        owner.check()
        assert (tmp_path / "run" / "_lease" / "00000005.json").exists()
