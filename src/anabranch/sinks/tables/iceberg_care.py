"""Small files of an Iceberg table brought together, and snapshots that are no longer wanted.

pyiceberg has no call for the first: small files of one partition are read, as many at once as make a file of
the wanted size, written as one, and replaced in a snapshot that adds no row. Files that no snapshot names any
more stay where they are: others may read them, and pyiceberg deletes none.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from anabranch.sinks.tables.care import microseconds

FEWEST = 2
"""Files of one partition that are worth to be written as one."""


def bring_together(table: Any, target_bytes: int) -> None:
    """Replaces files smaller than half the target by larger ones, in one commit."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files

    small = defaultdict(list)
    for task in table.scan().plan_files():
        if task.file.file_size_in_bytes < target_bytes // 2 and not task.delete_files:
            small[(task.file.spec_id, str(task.file.partition))].append(task)
    groups = [
        tasks
        for alike in small.values()
        for tasks in _packed(alike, target_bytes)
        if len(tasks) >= FEWEST
    ]
    if not groups:
        return
    read = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    with (
        table.transaction() as change,
        change.update_snapshot({"anabranch.care": "optimize"}).overwrite() as snapshot,
    ):
        for tasks in groups:
            for task in tasks:
                snapshot.delete_data_file(task.file)
            rows = read.to_table(tasks)
            for file in _dataframe_to_data_files(
                change.table_metadata, rows, table.io, write_uuid=uuid.uuid4()
            ):
                snapshot.append_data_file(file)


def _packed(tasks: Sequence[Any], target_bytes: int) -> Iterator[list[Any]]:
    """The files in groups of at most so many bytes: a group is in memory at once."""
    group: list[Any] = []
    size = 0
    for task in tasks:
        if group and size + task.file.file_size_in_bytes > target_bytes:
            yield group
            group, size = [], 0
        group.append(task)
        size += task.file.file_size_in_bytes
    if group:
        yield group


def expire(table: Any, retain: str) -> None:
    """Forgets snapshots that are older than this length of time, but for those that have a name."""
    oldest = dt.datetime.now(dt.UTC) - dt.timedelta(microseconds=microseconds(retain))
    table.maintenance.expire_snapshots().older_than(oldest.replace(tzinfo=None)).commit()
