"""Moves that the published values of the facts allow; start at ``longest``."""
