"""Writes the plans of the golden files anew: python -m tests.golden.refresh [name …].

Only plans and drafts; expected rows and chosen partitionings are written by people. Look at the difference
before you commit it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.golden.golden_file import FOLDER, GoldenFile, read, with_plan
from tests.golden.outline import outline
from tests.golden.plans import drafts


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as empty:
        for path in sorted(FOLDER.glob("*/*.sql")):
            if names and path.stem not in names:
                continue
            before = path.read_text()
            after = before
            for section, plan in sections(read(path), Path(empty)).items():
                after = with_plan(after, plan, section)
            if after != before:
                path.write_text(after)
                print(f"{path.relative_to(FOLDER)}: another plan")


def sections(golden: GoldenFile, empty: Path) -> dict[str, str]:
    """What a file should say by what the compiler does now."""
    match golden.path.parent.name:
        case "sql":
            frames = {stream: golden.frames(stream) for stream in golden.ordered}
            return {"plan": outline(golden.session(2, "query", frames)[0].plan())}
        case "papers":
            return {"plan": outline(golden.planned(empty).plan())}
        case "rules":
            before, after = drafts(golden.planned(empty), golden.path.stem)
            return {"before": outline(before), "after": outline(after)}
    return {}


if __name__ == "__main__":
    main(sys.argv[1:])
