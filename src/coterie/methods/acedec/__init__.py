"""ACe/DeC: a cluster space and a shared space."""

from .method import ACeDeC

__all__ = ["ACeDeC"]
