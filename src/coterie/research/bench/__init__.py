"""The ledger of runs, what one run costs, statistics over seeds, and the published figures."""
