"""Random words: owns :class:`Rng`, the secure one and the seeded one.

An rng hands out independent uniform 64-bit words.  Everything random in the package is a function of them,
so a release is exactly as unpredictable as its rng, and says which one it used.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.release.release import Randomness, Release

if TYPE_CHECKING:
    from policygraph.mechanisms.base import Calibrated


GATE = "policygraph.curator.gate"
"""By name: the gate is built on this module."""
_BUFFER = 1 << 12
_ZEROS = memoryview(bytes(1 << 19))
_PIECE = len(_ZEROS) // 8

Words = npt.NDArray[np.uint64]


class Rng(ABC):
    """Where random words come from.

    Notes
    -----
    ``private`` is true only if nobody can predict or repeat the words.  A release made with a rng that is
    not private must say so.  A subclass must return independent uniform words: the samplers are exact for
    those and for nothing else.
    """

    private: bool

    @abstractmethod
    def words(self, n: int) -> Words:
        """Return ``n`` fresh words; the array may be read-only."""

    @abstractmethod
    def describe(self) -> str:
        """Say in one sentence what the words are, for the record of a release."""

    @property
    def randomness(self) -> Randomness:
        """What a release says about these words."""
        return Randomness(self.private, self.describe())

    def run(self, ready: Calibrated, data: Any, /) -> Release:
        """Run a calibrated mechanism on data with these words, through the gate."""
        made: Release = import_module(GATE).run_given(ready, data, self)
        return made


class _CipherRng(Rng):
    """The key stream of AES-256 in counter mode, handed out in order and never twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cipher: Any = None
        self._left = 0
        self._buffer: Words = np.empty(0, np.uint64)

    @abstractmethod
    def _new_key(self) -> tuple[bytes, int]:
        """Return a key and the number of words after which it is to be replaced."""

    def words(self, n: int) -> Words:
        if n < 0:
            raise InputError(f"n={n}: expected a number of words >= 0.", code="noise.words", n=n)
        with self._lock:
            self._before()
            ready = self._buffer
            if n <= ready.size:
                self._buffer = ready[n:]
                return ready[:n]
            missing = n - ready.size
            fresh = self._fresh(max(missing, _BUFFER))
            self._buffer = fresh[missing:]
            return np.concatenate([ready, fresh[:missing]]) if ready.size else fresh[:missing]

    def _before(self) -> None:
        """Hook run under the lock before words are handed out."""

    def _fresh(self, n: int) -> Words:
        if n <= _PIECE:
            return self._piece(n)
        result = np.empty(n, np.uint64)
        for start in range(0, n, _PIECE):
            stop = min(n, start + _PIECE)
            result[start:stop] = self._piece(stop - start)
        return result

    def _piece(self, n: int) -> Words:
        if self._left < n:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

            key, self._left = self._new_key()
            self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._left -= n
        # A fixed byte order makes a seeded stream the same on every machine.
        return np.frombuffer(self._cipher.update(_ZEROS[: 8 * n]), "<u8").astype(np.uint64, copy=False)


class SecureRng(_CipherRng):
    """Words that nobody can predict or repeat.

    Notes
    -----
    A 256-bit key from the operating system is expanded by AES in counter mode and replaced after 2**24 words
    (128 MiB).  One lock keeps two threads from receiving the same words.  A forked child drops key and
    buffer before its first word, by a fork hook and, for forks that bypass Python, by comparing process
    numbers.  Copying or pickling is refused, since a copy would repeat the stream.  Not covered: a virtual
    machine that is snapshot and resumed twice repeats words until the next key.

    Examples
    --------
    >>> rng = SecureRng()
    >>> rng.private, rng.words(3).shape
    (True, (3,))
    """

    private = True
    DESCRIPTION = "AES-256-CTR key stream, key from the operating system, replaced every 2**24 words"

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()
        _SECURE.add(self)

    def describe(self) -> str:
        """Say in one sentence what the words are, for the record of a release."""
        return self.DESCRIPTION

    def _new_key(self) -> tuple[bytes, int]:
        return os.urandom(32), 1 << 24

    def _before(self) -> None:
        if os.getpid() != self._pid:
            self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._cipher = None
        self._left = 0
        self._buffer = np.empty(0, np.uint64)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "A SecureRng cannot be copied or pickled: the copy would repeat its words. Make a new one."
        )


class KeyedRng(_CipherRng):
    """The words of one stored key: unpredictable to whoever does not have it, the same again for whoever has.

    Parameters
    ----------
    key
        32 bytes that came from a secure rng.
    origin
        Where the key came from, for the record of a release.

    Raises
    ------
    InputError
        If the key is not 32 bytes, or a forked process goes on drawing: it would repeat the words of its parent.

    Notes
    -----
    For a release whose charge keeps its key until the release is stored: the same request after a crash draws the same noise. Each
    2**24 words come from a key of their own, a digest of the stored one and their number.

    Examples
    --------
    >>> a, b = KeyedRng(bytes(32)), KeyedRng(bytes(32))
    >>> bool((a.words(5) == b.words(5)).all()), a.private
    (True, True)
    """

    private = True

    def __init__(self, key: bytes, origin: str | None = None) -> None:
        super().__init__()
        if not isinstance(key, bytes) or len(key) != 32:
            raise InputError("expected a key of 32 bytes.", code="noise.key")
        self._key, self._origin, self._count, self._pid = key, origin, 0, os.getpid()

    def describe(self) -> str:
        """Say in one sentence what the words are, for the record of a release."""
        return self._origin or SecureRng.DESCRIPTION

    def _new_key(self) -> tuple[bytes, int]:
        self._count += 1
        part = b"policygraph keyed source 1 " + self._key + self._count.to_bytes(8, "big")
        return sha256(part).digest(), 1 << 24

    def _before(self) -> None:
        if os.getpid() != self._pid:
            raise InputError(
                "a forked process cannot go on with the noise of its parent. Make the release in one process.",
                code="noise.forked",
            )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("A KeyedRng cannot be copied or pickled: the copy would repeat its words.")


class SeededRng(_CipherRng):
    """Words that anybody with the seed can repeat: for tests and papers, NOT PRIVATE.

    Parameters
    ----------
    seed
        An integer, a text or bytes; equal seeds give equal words on every platform.

    Raises
    ------
    InputError
        If the seed is of another type.

    Notes
    -----
    The words do not depend on how the requests are cut: 3 words and then 5 are the same as 8 at once.

    Examples
    --------
    >>> a, b = SeededRng(7), SeededRng(7)
    >>> bool((a.words(8)[3:] == [b.words(3), b.words(5)][1]).all())
    True
    >>> a.describe()
    'NOT PRIVATE: seeded stream, seed 7'
    """

    private = False

    def __init__(self, seed: int | str | bytes) -> None:
        super().__init__()
        if isinstance(seed, bool) or not isinstance(seed, (int, str, bytes)):
            raise InputError(
                f"seed={seed!r}: expected an integer, a text or bytes.", code="noise.seed", seed=seed
            )
        self.seed = seed

    def describe(self) -> str:
        """Say in one sentence what the words are, for the record of a release."""
        return f"NOT PRIVATE: seeded stream, seed {self.seed!r}"

    def _new_key(self) -> tuple[bytes, int]:
        kind = type(self.seed).__name__
        body = self.seed if isinstance(self.seed, bytes) else str(self.seed).encode()
        return sha256(b"policygraph seeded source 1 " + kind.encode() + b" " + body).digest(), 1 << 62


_SECURE: weakref.WeakSet[SecureRng] = weakref.WeakSet()
_DEFAULT: list[SecureRng] = []


def default_rng() -> SecureRng:
    """Return the one secure rng that a process shares when none is named.

    Examples
    --------
    >>> default_rng() is default_rng(), default_rng().private
    (True, True)
    """
    if not _DEFAULT:
        _DEFAULT.append(SecureRng())
    return _DEFAULT[0]


def fetch(rng: Rng, n: int) -> Words:
    """Take words from any rng, checked: one word that numpy spreads over an array would be one noise for all.

    Raises
    ------
    InputError
        If the rng does not return a row of ``n`` unsigned 64-bit words.

    Examples
    --------
    >>> fetch(SeededRng(1), 2).dtype
    dtype('uint64')
    """
    words = rng.words(n)
    if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.shape != (n,):
        raise InputError(
            f"{type(rng).__name__}.words({n}) returned {type(words).__name__} of shape {np.shape(words)}: "
            "expected a row of that many unsigned 64-bit words. Correct its words method.",
            code="noise.words",
            n=n,
        )
    return words


def _after_fork() -> None:
    for rng in list(_SECURE):
        # The parent may have been forked while another thread held the lock.
        rng._lock = threading.Lock()
        rng._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
