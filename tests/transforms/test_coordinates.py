"""Orthonormal coordinates of tables against the interaction blocks that they stand for."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.estimation.cubes.cells import all_sums
from policygraph.transforms.cuboids.blocks import project, split
from policygraph.transforms.cuboids.coordinates import TableCoordinates
from policygraph.transforms.cuboids.lattice import Family, Lattice


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(st.integers(0, 15), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=80, deadline=None)
def test_coordinates_are_those_of_the_blocks(shape, masks, seed):
    lattice, rng = Lattice(pg.Domain({f"a{i}": n for i, n in enumerate(shape)})), np.random.default_rng(seed)
    family = Family(lattice, [mask & lattice.base for mask in masks])
    coordinates, listed = TableCoordinates(family), family.masks.tolist()
    true = all_sums(lattice, rng.normal(size=shape), lattice.base, listed)
    vector = coordinates.of_cells(coordinates.flat(true))
    made = coordinates.tables(vector)
    assert all(np.allclose(made[mask], true[mask]) for mask in listed)
    assert np.allclose(coordinates.cells(vector), coordinates.flat(true))
    # The map to cells and the sums over tables are transposed to each other, and lengths of blocks are kept.
    pushed = {mask: rng.normal(size=lattice.shape(mask)) for mask in coordinates.largest}
    pulled = coordinates.pulled(coordinates.flat(pushed))
    products = sum(float((pushed[mask] * true[mask]).sum()) for mask in coordinates.largest)
    assert np.isclose(float(vector @ pulled), products)
    split(family, pushed)
    for at, mask in enumerate(listed):
        mine = coordinates.block == at
        assert np.isclose(np.square(vector[mine]).sum(), np.square(project(true[mask])).sum())
        assert np.isclose(np.square(pulled[mine]).sum(), np.square(pushed[mask]).sum())
