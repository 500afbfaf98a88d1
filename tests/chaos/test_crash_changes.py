"""The process is killed with SIGKILL while a query set changes: it goes on from one set or the other.

Around every manifest that is put in place, and around renames and deletions between them.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import changing
import polars as pl
import pytest

from anabranch.state.place import place
from anabranch.state.store import read_latest
from helpers import Rows, missing, oracle, orphans, plain, read_results

pytestmark = pytest.mark.chaos

KILLS = [("kill_at_link", number, number % 2 == 0) for number in range(1, 7)]
"""The first manifest repeats the last one, the second has the change, the third an epoch."""
KILLS += [("kill_at_change", number, False) for number in (1, 3, 6)]
MORE = [("kill_at_link", number, number % 2 == 1) for number in range(1, 7)]
MORE += [("kill_at_change", number, False) for number in (2, 4, 9)]


def wanted(query: str, since: int = 0) -> Rows:
    plainly = {
        "kept": "SELECT t//25 AS tb, k, COUNT(*) AS c FROM rows GROUP BY ALL",
        "gone": "SELECT t//40 AS tb, MAX(k) AS k FROM rows GROUP BY ALL",
        "fresh": "SELECT t//25 AS tb, SUM(k)::BIGINT AS s FROM rows GROUP BY ALL",
        "past": "SELECT t//30 AS tb, MIN(t) AS t FROM rows GROUP BY ALL",
    }
    return oracle(plainly[query], rows=pl.concat(changing.FRAMES[since:]))


@pytest.mark.parametrize(
    ("how", "number", "backfill"),
    [*KILLS, *(pytest.param(*more, marks=pytest.mark.soak) for more in MORE)],
)
def test_killed_while_the_query_set_changes(
    tmp_path: Path, how: str, number: int, backfill: bool
) -> None:
    changing.run(tmp_path, changing.BEFORE, 3)
    spec = {"root": str(tmp_path), "backfill": backfill, how: number}
    script = Path(changing.__file__)
    killed = subprocess.run(
        [sys.executable, script, json.dumps(spec)], capture_output=True, timeout=120
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    manifest = read_latest(place(str(tmp_path / "checkpoint")))
    assert manifest is not None
    # Whichever set it has, it goes on with it without a word about changes
    changed = manifest.queries.keys() == changing.AFTER.keys()
    assert changed or manifest.queries.keys() == changing.BEFORE.keys()
    assert how != "kill_at_link" or changed == (number >= 4)
    changing.run(tmp_path, changing.AFTER if changed else changing.BEFORE, 7, at_end="close")
    names = ("kept", "gone", "fresh", "past")
    results = {name: plain(read_results(tmp_path / "out" / name)) for name in names}
    assert results["kept"] == wanted("kept")
    since = 0 if backfill else 3
    if changed:
        assert results["fresh"] == wanted("fresh", since)
        assert results["past"] == wanted("past", since)
    else:
        assert results["gone"] == wanted("gone")
        assert not results["fresh"]
    checkpoint = tmp_path / "checkpoint"
    assert (orphans(checkpoint), missing(checkpoint)) == (set(), set())
