"""``spark-rank demo``: write a run's page that learns in a browser."""

from __future__ import annotations

from dataclasses import dataclass

from spark_rank.config import Config
from spark_rank.demo.page import page_of
from spark_rank.demo.reading import DemoSource
from spark_rank.events import emit
from spark_rank.runs.users import folder_of
from spark_rank.session.files import store_files
from spark_rank.store.run_records import RunRecords
from spark_rank.store.self_checked import DEMO_PAGE

# a larger page takes a telephone too long
LARGE = 3_000_000


@dataclass(frozen=True)
class Written:
    """A page that was written: its path, its size in bytes, and its items."""

    path: str
    size: int
    items: int


def make_demo(config: Config) -> Written:
    """Write the page into the folder of the run that the configuration names."""
    with store_files("spark_rank demo", config.store, config.spark) as files:
        run = RunRecords(files, config.store, config.run_id)
        source = DemoSource(folder_of(run), config.run_id, config.demo, config.recommend)
        contents = source.contents()
        html = page_of(contents)
        files.write_text(run.path(DEMO_PAGE), html)
    size = len(html.encode())
    if size > LARGE:
        emit(
            "large_page",
            f"the page has {size / 1e6:.1f} MB: fewer items make it smaller (demo.items)",
            stage="demo", level="warning", bytes=size,
        )  # fmt: skip
    return Written(run.path(DEMO_PAGE), size, len(contents.item_ids))
