"""Rows that wait before an exchange: written beside the state when held back, read when let go."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from anabranch.engine.orders import Orders
from anabranch.errors import StateError
from anabranch.routing.frame import Inlet, to_table
from anabranch.routing.locator import slot_of_locator
from anabranch.routing.reach import Hold, within
from anabranch.routing.sorting import distinct
from anabranch.state.checksum import Damaged
from anabranch.state.manifest import HeldRef
from anabranch.state.segment import LOCATOR, open_arrow, write_arrow


def hold_back(
    orders: Orders, exchange: str, inlet: Inlet, rows: pl.DataFrame, holds: Sequence[Hold]
) -> HeldRef:
    """Writes rows in their order; they count once the manifest names the file."""
    firsts = np.asarray([hold.first for hold in holds])
    waiting = np.searchsorted(firsts, slot_of_locator(rows[LOCATOR].to_numpy()), "right") - 1
    slots = [(holds[at].first, holds[at].end) for at in distinct(waiting).tolist()]
    subquery, input = inlet
    file = f"state/{subquery}/{orders.epoch:012d}-held-{input}-{uuid.uuid4().hex[:12]}.arrow"
    table = to_table(rows)
    try:
        total = write_arrow(orders.place, file, table.schema, [table], orders.settings.fsync)
    except OSError as error:
        raise StateError(
            f"Rows that wait cannot be written to '{orders.place}/{file}': {error.strerror or error}. "
            "The epoch is not counted; free space or mend the folder and start again."
        ) from error
    return HeldRef(
        file=file, exchange=exchange, subquery=subquery, input=input, rows=rows.height, bytes=table.nbytes,
        slots=tuple(slots), checksum=total,
    )  # fmt: skip


def read_held(orders: Orders, ref: HeldRef) -> pl.DataFrame:
    """The rows of these slots in a file, in the order in which they were written."""
    try:
        found = pl.from_arrow(open_arrow(orders.place, ref.file, ref.checksum).read_all())
    except (OSError, pa.ArrowException, Damaged) as error:
        raise StateError(
            f"The rows that wait in '{orders.place}/{ref.file}' cannot be read: {error}. Was the "
            "checkpoint folder changed by hand? Restore it or start with a new one."
        ) from error
    assert isinstance(found, pl.DataFrame)
    wanted = within(slot_of_locator(found[LOCATOR].to_numpy()), ref.slots)
    return found if wanted.all() else found.filter(pl.Series(wanted))
