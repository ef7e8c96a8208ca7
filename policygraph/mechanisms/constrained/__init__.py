"""Noise that keeps the public facts by itself; start at ``mechanism``."""
