"""Two valued cycles taken apart again: the lemma behind ``cycle_bound``, by trying every pair.

An arc is (from, to, value) with a value of -1, 0 or 1. The lemma: if simple cycles P of value p > 0 and Q of value -q < 0 on c vertices have p + q >= c + 2, then their arcs
can be put together to other simple cycles, one of which has value 0 or whose absolute values have a smaller sum than p + q.
"""

from itertools import permutations, product


def decompositions(arcs):
    """Yield, for every way to split arcs into simple cycles, the values of the cycles."""
    if not arcs:
        yield []
        return
    (start, first, value), rest = arcs[0], arcs[1:]

    def walks(vertex, visited, used, total):
        if vertex == start:
            yield used, total
            return
        for index, (tail, head, more) in enumerate(rest):
            if tail == vertex and index not in used and (head == start or head not in visited):
                yield from walks(head, visited | {head}, used | {index}, total + more)

    for used, total in walks(first, frozenset([start, first]), frozenset(), value):
        for others in decompositions([arc for index, arc in enumerate(rest) if index not in used]):
            yield [total, *others]


def can_be_improved(positive, negative):
    """Whether the arcs of two cycles can be put together as the lemma says."""
    before = sum(value for *_, value in positive) - sum(value for *_, value in negative)
    return any(
        sum(map(abs, values)) < before or (0 in values and len(values) > 1)
        for values in decompositions([*positive, *negative])
    )


def values_of(length, total):
    """Yield the values of so many arcs that have this sum."""
    return (values for values in product((1, 0, -1), repeat=length) if sum(values) == total)


def pairs(c, reach):
    """Yield all pairs of cycles on c vertices with p + q = reach, up to names of the vertices."""
    for one, two in product(range(1, c + 1), repeat=2):
        for p in range(max(1, reach - two), min(one, reach - 1) + 1):
            for values in values_of(one, p):
                positive = [(i, (i + 1) % one, value) for i, value in enumerate(values)]
                for vertices in permutations(range(c), two):
                    # Start with the smallest vertex, and name those outside the first cycle in the order in which they are met.
                    outside = [vertex for vertex in vertices if vertex >= one]
                    if vertices[0] != min(vertices) or outside != list(range(one, one + len(outside))):
                        continue
                    for others in values_of(two, reach - p):
                        negative = [
                            (vertices[i], vertices[(i + 1) % two], -value) for i, value in enumerate(others)
                        ]
                        yield positive, negative


def valued_arcs(c):
    """Columns of all arcs between c vertices with values -1, 0 and 1, up to sign: a row of values, then a row for each vertex."""
    columns = set()
    for value, tail, head in product((-1, 0, 1), range(c), range(c)):
        column = [value] + [0] * c
        column[1 + tail] -= 1
        column[1 + head] += 1
        if next((entry for entry in column if entry), 0) > 0:
            columns.add(tuple(column))
    return sorted(columns)
