"""CueGAN: the GAN whose classifier finds a precise feature."""

from .method import CueGAN

__all__ = ["CueGAN"]
