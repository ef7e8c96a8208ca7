"""Noise in blocks, each from a key of its own, so that any machine can draw any block and draws the same. Owns :func:`block_rng`.

``docs/explanation/proofs/noise-in-blocks.md`` says why blocks are as independent as one stream.
"""

from __future__ import annotations

import hashlib
import hmac

from policygraph.curator.noise.rng import KeyedRng

BLOCK = 1 << 20
"""Draws in a block. A part of the stream: another number would give other noise."""


def block_rng(master: bytes, number: int) -> KeyedRng:
    """The words of one block.

    Parameters
    ----------
    master
        32 bytes that came from a secure rng, and serve nothing else.
    number
        Number of the block, from 0.

    Examples
    --------
    >>> one, same, other = (block_rng(bytes(32), number).words(4).tolist() for number in (7, 7, 8))
    >>> one == same, one == other
    (True, False)
    """
    text = b"policygraph block 1 " + number.to_bytes(8, "big")
    return KeyedRng(hmac.new(master, text, hashlib.sha256).digest())
