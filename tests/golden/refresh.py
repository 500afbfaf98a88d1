"""Writes the plans of the golden files anew: python -m tests.golden.refresh [name …].

Only the --plan sections; expected rows are written by people. Look at the difference before you commit it.
"""

from __future__ import annotations

import sys

from tests.golden.golden_file import FOLDER, read, with_plan

from anabranch.plan.outline import outline


def main(names: list[str]) -> None:
    for path in sorted((FOLDER / "sql").glob("*.sql")):
        if names and path.stem not in names:
            continue
        golden = read(path)
        frames = {stream: golden.frames(stream) for stream in golden.ordered}
        session, _ = golden.session(2, "query", frames)
        before = path.read_text()
        after = with_plan(before, outline(session.plan()))
        if after != before:
            path.write_text(after)
            print(f"{path.relative_to(FOLDER)}: another plan")


if __name__ == "__main__":
    main(sys.argv[1:])
