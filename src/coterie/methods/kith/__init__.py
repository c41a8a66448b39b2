"""Kith: rows and their neighbours belong together."""

from .method import Kith

__all__ = ["Kith"]
