"""What Kith says about its choice, in words."""

from .judge import Verdict
from .stability import Stability

# the order is part of saved models: append
NAMES = ("direct", "merged", "kmeans", "mixture", "spectral", "linkage", "consensus", "embedding")
DISAGREE = 0.6  # adjusted Rand index of winner and second below which the result says so
SAID = {
    "direct": "equal sizes (a direct head)",
    "merged": "free sizes (a merged head)",
    "kmeans": "k-means on the features",
    "mixture": "a mixture of Gaussians on the features",
    "spectral": "spectral clustering of the graph",
    "linkage": "linkage along the shortest links",
    "consensus": "a consensus of all heads",
    "embedding": "k-means on the embedding",
}
INSTEAD = {  # how a user gets the candidate in place of the winner
    "direct": "sizes='equal'",
    "merged": "sizes='free'",
    "kmeans": "method feature_kmeans",
    "mixture": "method feature_gmm",
    "spectral": "method spectral",
}


def told(said: Verdict, alike: dict[str, float], stable: Stability) -> list[str]:
    """Notes of a fit: what was chosen and why, how the others differ, and whether it reappears."""
    winner = said.winner
    others = sorted((name for name in alike if name != winner), key=lambda n: -alike[n])
    shown = ", ".join(f"{name} {alike[name]:.2f}" for name in others)
    notes = [
        f"chosen: {SAID[winner]}; {said.why}; agreement of the others with it (adjusted Rand "
        f"index): {shown}; {stable}"
    ]
    second = said.second
    if alike[second] < DISAGREE:
        way = f"; {INSTEAD[second]} gives the other" if second in INSTEAD else ""
        notes.append(
            f"{SAID[winner]} and {SAID[second]} lead to different clusters (adjusted Rand index "
            f"{alike[second]:.2f}); chosen: {winner}; candidates_ has all{way}"
        )
    return notes
