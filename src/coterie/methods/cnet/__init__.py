"""C-Net: the Clustering Module on the embedding of an autoencoder that is trained with it."""

from .method import CMObjective, CNet

__all__ = ["CMObjective", "CNet"]
