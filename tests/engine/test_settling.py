"""What stays loaded in a worker is passed over by the garbage collector, once per kind of work."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession


def test_what_a_worker_has_loaded_is_frozen_after_its_first_task(spark: SparkSession) -> None:
    def work(rows: Iterator[int]) -> Iterator[tuple[int, int]]:
        import gc

        import pyarrow as pa

        from spark_rank.engine.item_counts import counted

        before = gc.get_freeze_count()
        batch = pa.record_batch({"content": pa.array([], pa.binary())})
        first, second = (sum(1 for _ in counted(iter([batch]))) for _ in range(2))
        assert first == second == 1
        frozen = gc.get_freeze_count()
        cycle: list[object] = []
        cycle.append(cycle)
        sum(1 for _ in counted(iter([batch])))
        # later ends freeze nothing more: what has become garbage by then is collected
        yield before, frozen if gc.get_freeze_count() == frozen else -1

    ((before, frozen),) = spark.sparkContext.parallelize([0], 1).mapPartitions(work).collect()
    assert frozen > max(before, 10_000) or before == frozen > 10_000


def test_nothing_is_frozen_where_no_worker_is() -> None:
    import gc

    import pyarrow as pa

    from spark_rank.engine.item_counts import counted

    before = gc.get_freeze_count()
    list(counted(iter([pa.record_batch({"content": pa.array([], pa.binary())})])))
    assert gc.get_freeze_count() == before
