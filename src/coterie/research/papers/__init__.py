"""Every table and figure of the five papers: what they need, what the ledger holds, how they look.

A paper's protocol is data (one TOML file each); the code here reads it, plans the runs that are
missing, and draws tables and figures from the ledger.
"""

from .protocol import PAPERS, Item, Paper, find, read, read_all

__all__ = ["PAPERS", "Item", "Paper", "find", "read", "read_all"]
