"""Communities of a network from noisy counts of edges. Owns :func:`first_communities` and :func:`refined_communities`.

Post-processing: sees released counts and public or released degrees.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def largest_nodes(degrees: Any, count: int) -> Ints:
    """Positions of the nodes of largest degree, the largest first; the earlier one of two that are alike.

    Examples
    --------
    >>> largest_nodes([1, 5, 2, 5], 2).tolist()
    [1, 3]
    """
    found: Ints = np.argsort(-np.asarray(degrees, dtype=np.float64), kind="stable")[:count]
    return found


def first_communities(centres: Ints, noisy: Any, nodes: int, *, clip: bool) -> Ints:
    """Put each node to the centre that it is most likely joined to.

    Parameters
    ----------
    centres
        Positions of the centres.
    noisy
        Noisy counts of edges to each centre, a row for each other node in node order.
    nodes
        How many nodes there are.
    clip
        Whether the noise is Laplace noise: then all numbers from one on speak for an edge alike, and so do those up to zero against it.

    Returns
    -------
    ndarray
        The community of each node by number, in node order.

    Examples
    --------
    >>> first_communities(np.array([0, 3]), [[1, 0], [0, 2]], 4, clip=True).tolist()
    [0, 0, 1, 1]
    """
    values = np.asarray(noisy, dtype=np.float64).reshape(-1, len(centres))
    if clip:
        values = np.clip(values, 0, 1)
    found = np.zeros(nodes, dtype=np.int64)
    found[np.setdiff1d(np.arange(nodes), centres)] = values.argmax(axis=1)
    found[centres] = np.arange(len(centres))
    return found


def refined_communities(communities: Ints, noisy: Any, degrees: Any) -> Ints:
    """Move each node to the community to which it has most edges beyond what degrees alone would give.

    Parameters
    ----------
    communities
        The community of each node by number.
    noisy
        Noisy counts of the edges of each node to each community, a row for each node.
    degrees
        Degrees, public or estimated.

    Examples
    --------
    >>> refined_communities(np.array([0, 0, 0, 1]), [[2, 0], [2, 0], [2, 1], [1, 2]], [2, 2, 3, 1]).tolist()
    [0, 0, 1, 1]

    Notes
    -----
    The community that raises modularity most, all others held: Newman and Girvan's, with noisy numbers in place of the true ones.
    """
    values: Floats = np.asarray(noisy, dtype=np.float64).reshape(len(communities), -1)
    degree: Floats = np.maximum(np.asarray(degrees, dtype=np.float64), 0)
    sums = np.bincount(communities, degree, values.shape[1])
    found: Ints = (values - np.outer(degree, sums / max(float(degree.sum()), 1.0))).argmax(axis=1)
    return found
