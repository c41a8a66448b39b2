"""How many steps of a phase fit into the time that is left."""

import time

KEPT_BACK = 0.1  # share of a budget for what is no phase: labels of all rows, files


class Pace:
    """Steps and full-data updates of a phase, timed apart: an update comes once in many steps."""

    def __init__(self, step: int, spent: float = 0.0):  # `spent`: before the fit was resumed
        self.first, self.begin, self.spent = step, time.perf_counter(), spent
        self.updating, self.updates = 0.0, 0

    def update_took(self, seconds: float) -> None:
        self.updating += seconds
        self.updates += 1

    def due(self, step: int) -> bool:
        """Plan early, once the pace has settled, and now and then: other work comes and goes."""
        done = step - self.first
        return done in (8, 64) or (done > 0 and done % 512 == 0)

    def last_step(self, step: int, seconds: float, every: int) -> int:
        """The step at which the phase has taken `seconds`, counted from its begin."""
        done = step - self.first
        elapsed = time.perf_counter() - self.begin
        cost = (elapsed - self.updating) / done
        if self.updates:
            cost += self.updating / self.updates / every
        return step + int((seconds - self.spent - elapsed) / cost)
