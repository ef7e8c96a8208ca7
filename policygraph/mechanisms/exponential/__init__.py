"""A whole table drawn at random; start at ``mechanism``."""
