"""Finished runs: their identity, the SQLite file that holds them, and the exports."""
