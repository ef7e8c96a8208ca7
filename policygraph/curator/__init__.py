"""Sees records or randomness: counting, noise, the ledger."""
