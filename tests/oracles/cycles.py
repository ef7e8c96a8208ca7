"""Arcs with values, as columns of a matrix: what ``policygraph/moves/arcs.py`` bounds the minimal moves of."""

from itertools import product


def valued_arcs(c, most=1):
    """Columns of all arcs between c vertices with values up to ``most``, up to sign: a row of values, then a row for each vertex."""
    columns = set()
    for value, tail, head in product(range(-most, most + 1), range(c), range(c)):
        column = [value] + [0] * c
        column[1 + tail] -= 1
        column[1 + head] += 1
        if next((entry for entry in column if entry), 0) > 0:
            columns.add(tuple(column))
    return sorted(columns)
