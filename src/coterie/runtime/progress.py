"""The one wrapper around progress display and callbacks.

The engine reports phases, steps and epochs; this file decides what a person sees of it:
nothing (``verbose=0``), a live panel on a terminal, or a plain line every few seconds elsewhere.
"""

import sys
import time
from collections.abc import Callable

PLAIN_SECONDS = 5.0  # a log file wants a sign of life, not a flood


class Progress:
    """Show how far a fit has come, and hand each epoch's record to a callback.

    Parameters
    ----------
    verbose : int
        0 is silent (rich is not even imported), 1 shows progress.
    callback : callable or None
        Called with the record of each epoch; its return value is handed back by `epoch`.
    stream : file or None
        Where to write; standard error by default, so that standard output stays clean.
    """

    def __init__(self, verbose: int = 0, callback: Callable | None = None, stream=None):
        self.callback = callback
        self._display = _display(stream or sys.stderr) if verbose else _Silent()

    def phase(self, name: str, total_epochs: int | None = None, total_steps: int | None = None):
        """Begin a phase; both totals count over the whole phase and may be unknown (None)."""
        self._display.phase(name, total_epochs, total_steps)

    def step(self, done_steps: int):
        """Say how many steps of this phase are done. Cheap enough for every step."""
        self._display.step(done_steps)

    def epoch(self, record: dict):
        """Show an epoch's record (numbers by name) and hand it to the callback."""
        self._display.epoch(record)
        if self.callback:
            self.callback(record)

    def sizes(self, shares: list[float]):
        """Show the share of rows in each cluster."""
        self._display.sizes(shares)

    def note(self, text: str):
        """One line worth reading even when bars come and go."""
        self._display.note(text)

    def close(self, finished: bool = True):
        self._display.close(finished)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close(finished=exc[0] is None)


def describe(record: dict) -> str:
    """The numbers of an epoch in one line: ``epoch 3  recon 1.23  clusters_used 10``."""
    hidden = {"phase", "seconds"}
    parts = []
    for name, value in record.items():
        if name in hidden or value is None:
            continue
        parts.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
    return "  ".join(parts)


def _display(stream):
    if not stream.isatty():
        return _Plain(stream)
    from .panel import LivePanel  # a fit that shows nothing should not pay for rich

    return LivePanel(stream)


class _Silent:
    def phase(self, name, total_epochs, total_steps):
        pass

    def step(self, done_steps):
        pass

    def epoch(self, record):
        pass

    def sizes(self, shares):
        pass

    def note(self, text):
        pass

    def close(self, finished):
        pass


class _Plain:
    """A line per phase, then at most one every few seconds."""

    def __init__(self, stream):
        self.stream = stream
        self.name, self.total, self.last_record = "", None, ""
        self.shown = 0.0

    def phase(self, name, total_epochs, total_steps):
        self.name, self.total, self.last_record = name, total_steps, ""
        of = f": {total_epochs} epochs" if total_epochs else ""
        self._line(f"{name}{of}")

    def step(self, done_steps):
        if time.monotonic() - self.shown < PLAIN_SECONDS:
            return
        of = f"/{self.total} steps" if self.total else " steps"
        self._line(f"{self.name}: {done_steps}{of}  {self.last_record}".rstrip())

    def epoch(self, record):
        self.last_record = describe(record)
        if time.monotonic() - self.shown >= PLAIN_SECONDS:
            self._line(f"{self.name}: {self.last_record}")

    def sizes(self, shares):
        pass

    def note(self, text):
        self._line(text)

    def close(self, finished):
        pass

    def _line(self, text):
        self.shown = time.monotonic()
        print(text, file=self.stream, flush=True)
