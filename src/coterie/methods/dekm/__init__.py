"""DEKM: k-means in turns with the embedding, along the axes of the within-cluster scatter."""

from .method import DEKM, STRATEGIES, DEKMObjective

__all__ = ["DEKM", "STRATEGIES", "DEKMObjective"]
