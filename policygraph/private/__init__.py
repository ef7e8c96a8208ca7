"""Touches records: counting, noise, the ledger, mechanisms, audits."""
