"""The live panel of a fit on a terminal: phase, progress, time left, losses, cluster sizes."""

import time
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

DRAWS_PER_SECOND = 4
BAR = 12  # characters of the bar of the largest cluster
MOST_BARS = 20


class LivePanel:
    """One panel that is drawn again in place; notes go above it.

    What is drawn is read when it is drawn, so the calls of a training loop cost an assignment.
    """

    def __init__(self, stream: Any):
        self.phases: list[str] = []
        self.epochs: int | None = None
        self.total: int | None = None
        self.done, self.begun, self.ended = 0, 0.0, False
        self.record: dict[str, Any] = {}
        self.shares: list[float] = []
        self.live = Live(
            get_renderable=self._draw,
            console=Console(file=stream),
            refresh_per_second=DRAWS_PER_SECOND,
        )  # it draws at once

    def phase(self, name: str, total_epochs: int | None, total_steps: int | None) -> None:
        self.phases.append(name)
        self.epochs, self.total, self.done = total_epochs, total_steps, 0
        self.begun, self.record = time.monotonic(), {}
        self.live.start()

    def step(self, done_steps: int) -> None:
        self.done = done_steps

    def epoch(self, record: dict) -> None:
        self.record = record

    def sizes(self, shares: list[float]) -> None:
        self.shares = shares

    def note(self, text: str) -> None:
        self.live.console.print(text, markup=False, highlight=False)

    def close(self, finished: bool) -> None:
        self.ended = finished
        self.live.stop()

    # -- drawing ------------------------------------------------------------------------------
    def _draw(self) -> Panel:
        parts: list[Any] = [self._phases(), self._progress()]
        if self.record:
            parts.append(self._losses())
        if self.shares:
            parts.append(self._clusters())
        return Panel(Group(*parts), title="coterie fit", title_align="left", width=80)

    def _phases(self) -> Text:
        line = Text("phase  ", style="dim")
        for name in self.phases[:-1]:
            line.append(f"{name} ", style="dim").append("✓  ", style="green")
        now = self.phases[-1] if self.phases else ""
        line.append(now, style="bold")
        if self.ended:
            line.append(" ✓", style="green")
        return line

    def _progress(self) -> Table:
        took = time.monotonic() - self.begun
        table = Table.grid(padding=(0, 1))
        if not self.total:
            table.add_row(Text(f"{clock(took)} in this phase", style="dim"))
            return table
        done = self.total if self.ended else min(self.done, self.total)
        share = done / self.total
        left = f"{clock(took / share - took)} left" if 0 < share < 1 else ""
        bar = ProgressBar(total=self.total, completed=done, width=40)
        table.add_row(bar, f"{share:4.0%}", Text(clock(took), style="dim"), left)
        return table

    def _losses(self) -> Text:
        hidden = {"phase", "seconds", "smallest_share", "largest_share", "clusters_used"}
        line = Text()
        for name, value in self.record.items():
            if name in hidden or value is None:
                continue
            of = f" of {self.epochs}" if name == "epoch" and self.epochs else ""
            shown = f"{value:.4g}" if isinstance(value, float) else f"{value}"
            line.append(f"{name} ", style="dim").append(f"{shown}{of}  ")
        return line

    def _clusters(self) -> Group:
        used = sum(share > 0 for share in self.shares)
        order = sorted(range(len(self.shares)), key=lambda k: -self.shares[k])[:MOST_BARS]
        top = max(self.shares)
        bars = []
        for k in sorted(order):
            share = self.shares[k]
            bar = "█" * max(round(BAR * share / top), int(share > 0))
            bars.append(
                Text.assemble((f"{k:>3} ", "dim"), (f"{bar:<{BAR}}", "cyan"), f" {share:4.0%}")
            )
        more = len(self.shares) - len(order)
        tail = f"  (the {MOST_BARS} largest are shown)" if more else ""
        return Group(Text(f"{used} clusters{tail}", style="dim"), Columns(bars, padding=(0, 2)))


def clock(seconds: float) -> str:
    """``0:07``, ``12:30``, ``1:02:03``."""
    minutes, s = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{s:02}" if hours else f"{minutes}:{s:02}"
