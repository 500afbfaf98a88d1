"""How much of the experiments is run: all of it for the figures, little to see that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """What the experiments run through."""

    buffers: tuple[int, ...] = (128, 256, 512, 1024, 2048)
    """Rows that each producer may hold back in Fig 3."""
    loaded: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 24, 32)
    """Loaded sites in Fig 7."""
    least: tuple[float, ...] = (0.01, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0)
    """Values of δ_min in Fig 8."""
    seeds: int = 3
    """Runs of each point of Fig 8, each with other popular partitions."""
    skewed_seconds: int = 60


FULL = Scale()
QUICK = Scale((512, 2048), (0, 1, 8), (0.01, 0.25), 1, 20)
