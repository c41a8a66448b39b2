"""Why this result and not another, and whether its clusters come back."""

from .sections import CANDIDATES
from .sentences import CHOSEN

SHAKY = 0.5  # share of refits below which a cluster is named


def section(model):
    """The candidates of a fit with their agreement, and how often clusters reappear, or None."""
    alike = getattr(model, "agreements_", None)
    if not alike:
        return None
    stable, cuts = model.stability_, model.cuts_
    why = next((n for n in getattr(model, "notes_", ()) if n.startswith(CHOSEN)), "")
    rows = [
        {
            "name": CANDIDATES[name],
            "taken": name == model.chosen_,
            "alike": f"{alike[name]:.2f}",
            "cut": f"{100 * cuts[name]:.1f} %",
        }
        for name in sorted(alike, key=lambda name: (name != model.chosen_, -alike[name]))
    ]
    return {
        "why": "; ".join(why.partition(": ")[2].split("; ")[:2]),
        "rows": rows,
        "refits": stable.refits,
        "overall": f"{stable.overall:.2f}",
        "clusters": [
            {"j": j, "count": int(count), "shaky": bool(count < SHAKY * stable.refits)}
            for j, count in enumerate(stable.reappears)
        ],
    }
