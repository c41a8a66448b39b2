"""The laboratory: the ledger of benchmark runs, and the papers' tables and figures."""
