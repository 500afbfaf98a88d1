"""The process of one measured run: `python -m anabranch.bench.worker '{"side": "spark", …}'`.

Prints one line of JSON, a `jobs.Answer`.
"""

from __future__ import annotations

import sys

import msgspec

from anabranch.bench.jobs import Answer, Job, Ours


def work(text: str) -> Answer:
    """Does the job that the text describes."""
    job: Job = msgspec.json.decode(text, type=Job)
    if isinstance(job, Ours):
        from anabranch.bench.ours import run_ours

        return run_ours(job)
    from anabranch.bench.spark_reference import run_reference

    return run_reference(job)


if __name__ == "__main__":
    print(msgspec.json.encode(work(sys.argv[1])).decode())
