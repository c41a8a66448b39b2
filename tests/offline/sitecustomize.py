"""Imported by every Python process that has this folder on PYTHONPATH."""

import refuse_network  # noqa: F401
