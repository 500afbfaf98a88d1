"""Damage on purpose: one bit of one durable file of a checkpoint, as a disk may flip it.

What must follow is never a wrong result: the run says which file is damaged, or never reads it again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

DURABLE = (
    "manifests/*.json", "sources/*.json", "state/*/*.arrow", "landing/*/batch-*/*",
    "results/*/*.arrow", "results/*.json",
)  # fmt: skip
"""What a checkpoint keeps, as patterns. Spark's own files below `landing` have checksums of Spark's."""


@dataclass(frozen=True)
class Damage:
    """A bit that was flipped."""

    path: Path
    offset: int
    bit: int

    def __str__(self) -> str:
        return f"bit {self.bit} of byte {self.offset} of {self.path}"

    def flip(self) -> None:
        """Flips it, or flips it back."""
        with open(self.path, "r+b") as file:
            file.seek(self.offset)
            (value,) = file.read(1)
            file.seek(self.offset)
            file.write(bytes([value ^ (1 << self.bit)]))


def durable_files(checkpoint: Path) -> list[Path]:
    """All that a checkpoint folder keeps, in an order that does not change."""
    found = (path for pattern in DURABLE for path in checkpoint.glob(pattern))
    return sorted(path for path in found if not path.name.startswith(".") and path.stat().st_size)


def corrupt(checkpoint: Path, rng: random.Random) -> Damage | None:
    """Flips a random bit of a random durable file; which one it was, None if there is no file."""
    files = durable_files(checkpoint)
    if not files:
        return None
    path = rng.choice(files)
    damage = Damage(path, rng.randrange(path.stat().st_size), rng.randrange(8))
    damage.flip()
    return damage
