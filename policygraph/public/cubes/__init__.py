"""Data cubes before any data: start at ``lattice``, then ``choose``."""
