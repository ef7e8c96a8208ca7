"""Marginals by prefixes and ranges: residuals in bases that are fitted to how each attribute is asked; start at ``mechanism``."""
