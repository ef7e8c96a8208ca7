"""Random generators: unpredictable where they claim it, repeatable where they say so, never handed out twice."""

import copy
import hashlib
import pickle
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.stats import chi2

from policygraph.curator.noise import discrete_gaussian, discrete_laplace, rare
from policygraph.curator.noise import rng as rng_module
from policygraph.curator.noise.rng import KeyedRng, SecureRng, SeededRng, default_rng
from policygraph.distributions.integers import GaussianTail, LaplaceTail
from policygraph.errors import InputError
from policygraph.release.release import Randomness

PINNED_INT = [8410223040561220951, 55816690767156883, 3163255552202695599]
PINNED_TEXT = [11327489402124697450]


def test_seeded_words_are_the_same_on_every_platform():
    assert SeededRng(7).words(3).tolist() == PINNED_INT
    assert SeededRng("7").words(1).tolist() == PINNED_TEXT


def test_seeds_of_different_kind_or_value_differ():
    firsts = {int(SeededRng(s).words(1)[0]) for s in (0, 1, -1, "", "0", "1", b"", b"0", b"1")}
    assert len(firsts) == 9


@pytest.mark.parametrize("cuts", [[3, 5], [1] * 40, [4096, 1, 4095, 5000], [0, 70000, 3, 200000]])
def test_seeded_words_do_not_depend_on_the_cuts(cuts):
    source = SeededRng(3)
    pieces = np.concatenate([source.words(n) for n in cuts])
    assert (pieces == SeededRng(3).words(sum(cuts))).all()


def test_words_never_repeat_within_or_across_secure_sources():
    a, b = SecureRng(), SecureRng()
    seen = np.concatenate([s.words(n) for n in (1, 10, 5000, 70000, 7) for s in (a, b)])
    assert np.unique(seen).size == seen.size


def test_every_bit_is_fair_and_neighbours_are_independent():
    words = SeededRng("fair").words(1 << 18)
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64)
    ones = bits.sum(0)
    statistic = float((((ones - bits.shape[0] / 2) ** 2) / (bits.shape[0] / 4)).sum())
    assert 1e-4 < chi2.sf(statistic, 64) < 1 - 1e-4
    pairs = np.bincount(
        (words >> np.uint64(60)).astype(int)[:-1] * 16 + (words[1:] >> np.uint64(60)).astype(int)
    )
    expected = (words.size - 1) / 256
    assert 1e-4 < chi2.sf(float(((pairs - expected) ** 2 / expected).sum()), 255) < 1 - 1e-4


def test_secure_words_are_fair_too():
    words = SecureRng().words(1 << 18)
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).sum(0)
    statistic = float((((ones - words.size / 2) ** 2) / (words.size / 4)).sum())
    # The words are new in every run: a false alarm once in 10**9 runs.
    assert chi2.sf(statistic, 64) > 1e-9


FORKED = """
import os, sys
from policygraph.curator.noise import discrete_gaussian, discrete_laplace, rare
from policygraph.curator.noise.rng import SecureRng, default_rng
sources = [SecureRng(), default_rng() if sys.argv[1] == "hook" else SecureRng()]
for s in sources:
    s.words(5)
if sys.argv[1] == "pid":
    import policygraph.curator.noise.rng as module
    module._SECURE.clear()
r, w = os.pipe()
child = os.fork()
words = [int(x) for s in sources for x in [*s.words(4), *s.words(9000)]]
if child == 0:
    os.write(w, (" ".join(map(str, words[:1] + words[9004:9005] + words[-1:])) + " ").encode())
    own = set(words)
    os.write(w, str(len(own)).encode())
    os._exit(0)
os.waitpid(child, 0)
theirs = os.read(r, 10000).decode().split()
assert int(theirs.pop()) == len(words)
assert len(theirs) == 3 and not set(map(int, theirs)) & set(words), "repeated"
print("fresh")
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
@pytest.mark.parametrize("guard", ["hook", "pid"])
def test_a_forked_child_does_not_repeat_its_parent(guard):
    done = subprocess.run([sys.executable, "-c", FORKED, guard], capture_output=True, text=True)
    assert done.stdout == "fresh\n", done.stderr


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
def test_the_fork_test_would_see_a_repeated_stream():
    broken = FORKED.replace("sources = [", "SecureRng._forget = lambda self: None\nsources = [")
    done = subprocess.run([sys.executable, "-c", broken, "hook"], capture_output=True, text=True)
    assert "repeated" in done.stderr


def test_threads_never_share_words():
    source, found = SecureRng(), []

    def work():
        found.append(np.concatenate([source.words(n) for n in [1, 7, 300] * 100]))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    everything = np.concatenate(found)
    assert np.unique(everything).size == everything.size == 6 * 308 * 100


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_secure_source_cannot_be_copied(duplicate):
    with pytest.raises(TypeError, match="repeat"):
        duplicate(SecureRng())


def test_the_key_is_replaced_regularly():
    source = SecureRng()
    source.words(1)
    first = source._cipher
    source._left = 5000
    source.words(4096)
    source.words(4096)
    assert source._cipher is not first
    assert source._left > 1 << 23


def test_sources_say_what_they_are():
    assert SecureRng().private
    assert default_rng().private
    assert not SeededRng(1).private
    assert "NOT PRIVATE" in SeededRng(1).describe()
    assert "NOT PRIVATE" not in SecureRng().describe()


@pytest.mark.parametrize("wrong", [np.zeros(1, np.uint64), np.zeros(100, np.int64), [0] * 100])
def test_a_source_that_returns_something_else_is_refused(wrong):
    class Broken(SeededRng):
        def words(self, n):
            return wrong

    for draw, scale in ((discrete_laplace, 1000), (discrete_gaussian, 10**6)):
        with pytest.raises(InputError, match="Correct its words method"):
            draw(scale, 100, Broken(1))


def test_bad_requests_are_refused():
    with pytest.raises(InputError, match="seed"):
        SeededRng(1.5)
    with pytest.raises(InputError, match="seed"):
        SeededRng(True)
    with pytest.raises(InputError, match="words"):
        SecureRng().words(-1)


def test_a_source_that_wakes_up_in_another_process_takes_a_new_key(monkeypatch):
    secure, keyed = SecureRng(), KeyedRng(b"k" * 32, "a key of the ledger")
    before = secure.words(4).tolist()
    keyed.words(1)
    monkeypatch.setattr(rng_module.os, "getpid", lambda: -1)
    assert set(secure.words(4).tolist()).isdisjoint(before)
    with pytest.raises(InputError, match="forked"):
        keyed.words(1)


def test_after_a_fork_every_secure_source_forgets_its_words():
    secure = SecureRng()
    before = secure.words(3).tolist()
    rng_module._after_fork()
    assert set(secure.words(3).tolist()).isdisjoint(before)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_keyed_source_cannot_be_copied(duplicate):
    with pytest.raises(TypeError, match="cannot be copied"):
        duplicate(KeyedRng(b"k" * 32, "a key of the ledger"))


@pytest.mark.parametrize("key", [b"short", "k" * 32, b"k" * 33])
def test_a_key_has_32_bytes(key):
    with pytest.raises(InputError, match="32 bytes"):
        KeyedRng(key, "a key of the ledger")


def key_stream(key, n):
    """AES-256 in counter mode, as the words are said to be."""
    made = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * n))
    return np.frombuffer(made, "<u8").tolist()


def test_stored_keys_and_seeds_give_the_same_words_in_every_version():
    """A charge that waits with its key must be completed with the noise that was drawn for it."""
    key = bytes(range(32))
    derived = hashlib.sha256(b"policygraph keyed source 1 " + key + (1).to_bytes(8, "big")).digest()
    assert KeyedRng(key).words(9).tolist() == key_stream(derived, 9)
    for seed, kind, body in ((7, b"int", b"7"), ("7", b"str", b"7"), (b"7", b"bytes", b"7")):
        derived = hashlib.sha256(b"policygraph seeded source 1 " + kind + b" " + body).digest()
        assert SeededRng(seed).words(9).tolist() == key_stream(derived, 9)


def test_a_stored_key_takes_a_new_one_before_its_words_are_used_up():
    rng = KeyedRng(bytes(32))
    first, left = rng._new_key()
    second, _ = rng._new_key()
    assert (left, rng._count) == (1 << 24, 2)
    assert (
        second
        == hashlib.sha256(b"policygraph keyed source 1 " + bytes(32) + (2).to_bytes(8, "big")).digest()
        != first
    )
    assert SecureRng()._new_key()[1] == 1 << 24


def test_what_a_release_says_of_a_stored_key():
    assert KeyedRng(bytes(32)).describe() == SecureRng.DESCRIPTION
    assert KeyedRng(bytes(32), "NOT PRIVATE: seeded").describe() == "NOT PRIVATE: seeded"
    assert SeededRng(1).randomness == Randomness(False, "NOT PRIVATE: seeded stream, seed 1")


def test_words_after_everything_was_forgotten_are_words(monkeypatch):
    rng = SecureRng()
    before = rng.words(10).tolist()
    rng._forget()
    after = rng.words(10)
    assert after.dtype == np.uint64
    assert set(after.tolist()).isdisjoint(before)
    monkeypatch.setattr(rng_module, "_DEFAULT", [])
    assert isinstance(rng_module.default_rng(), SecureRng)
    assert rng_module.default_rng() is rng_module.default_rng()


def test_rare_noise_comes_from_the_given_words_alone():
    """A release that is completed after a crash draws the same noise: nothing may come from elsewhere."""
    for tail in (LaplaceTail(Fraction(2), 9), GaussianTail(Fraction(4), 6)):
        first, again, other = (rare.draw_passing(tail, (50, 400), SeededRng(seed)) for seed in (1, 1, 2))
        assert len(first[0]) > 10
        assert [part.tolist() for part in first] == [part.tolist() for part in again]
        assert [part.tolist() for part in first] != [part.tolist() for part in other]
        assert first[1].min() >= tail.start
        assert first[1].max() > tail.start


def test_uniform_positions_below_large_sizes_have_all_their_bits():
    drawn = rare._below(1 << 60, 1000, SeededRng(1))
    assert drawn.dtype == np.int64
    assert drawn.tolist() == [word >> 4 for word in SeededRng(1).words(1000).tolist()]
    assert rare._below(1, 5, SeededRng(1)).tolist() == [0] * 5
    thirds = np.bincount(rare._below(3, 30_000, SeededRng(1)), minlength=3)
    assert thirds.sum() == 30_000
    assert abs(thirds - 10_000).max() < 400


def test_numbers_of_rare_noises_in_many_blocks_add_up(monkeypatch):
    """More blocks than are drawn at once, none of them twice and none left out."""
    monkeypatch.setattr(rare, "_PER_BLOCK", 2.0**-10)
    tail = LaplaceTail(Fraction(1), 12)
    chance = 2.0**tail.log2_chance
    cells = 5 * (1 << 20) * max(1, int(2.0**-10 / chance))
    drawn, expected = rare.draw_count(tail, cells, SeededRng(1)), cells * chance
    assert cells * chance > 1000
    assert abs(drawn - expected) < 6 * expected**0.5
