"""Noise on the edges of the policy graph; start at ``mechanism``."""
