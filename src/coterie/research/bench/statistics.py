"""Which results are as good as the best one: the rules by which the papers print in bold."""

import math
import statistics

LEVEL = 0.05


def describe(values: list[float]) -> dict[str, float]:
    """Mean, standard deviation (n - 1; 0 for one run), lowest, highest, median."""
    return {
        "mean": statistics.fmean(values),
        "std": statistics.stdev(values) if len(values) > 1 else 0.0,
        "min": min(values),
        "max": max(values),
        "median": statistics.median(values),
    }


def t_test(a: list[float], b: list[float]) -> float:
    """p of Student's two-sided t-test for two independent samples of equal variance.

    With fewer than two values on a side nothing can be said (NaN). Without any spread, samples
    with the same mean agree (1) and others do not (0).
    """
    n, m = len(a), len(b)
    if min(n, m) < 2:
        return math.nan
    gap = statistics.fmean(a) - statistics.fmean(b)
    inside = (n - 1) * statistics.variance(a) + (m - 1) * statistics.variance(b)
    if inside == 0:
        return 1.0 if gap == 0 else 0.0
    from scipy.stats import t

    error = math.sqrt(inside / (n + m - 2) * (1 / n + 1 / m))
    return float(2 * t.sf(abs(gap) / error, n + m - 2))


def as_good_as_best(samples: dict, level: float = LEVEL) -> set:
    """The names with the highest mean, and those that do not differ from it (p > level).

    A sample of one run is not tested: it is only here when its mean is the highest.
    """
    samples = {name: values for name, values in samples.items() if values}
    if not samples:
        return set()
    means = {name: statistics.fmean(values) for name, values in samples.items()}
    top = max(means.values())
    best = next(name for name, mean in means.items() if mean == top)
    return {
        name
        for name, values in samples.items()
        if means[name] == top or t_test(values, samples[best]) > level
    }


def half_width(values: list[float], level: float = LEVEL) -> float:
    """Half of the confidence interval of a mean (Student's t); 0 for one value."""
    if len(values) < 2:
        return 0.0
    from scipy.stats import t

    error = statistics.stdev(values) / math.sqrt(len(values))
    return float(t.ppf(1 - level / 2, len(values) - 1) * error)
