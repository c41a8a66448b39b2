"""Rows are embedded once: by content, over calls and processes, across a kill."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from coterie.encoders import embed as module
from coterie.encoders.base import Encoder
from coterie.encoders.embed import embed, row_keys
from coterie.encoders.store import Store


class Counting(Encoder):
    """Sums of a row, and a count of the rows that it was asked for."""

    reference, digest, batch_rows = "counting", "a" * 64, 4

    def __init__(self):
        self.asked = 0

    def embed(self, batch, settings):
        self.asked += len(batch)
        flat = np.stack([np.asarray(row, np.float32).ravel() for row in batch])
        return np.stack([flat.sum(1), flat[:, 0] + 1], 1)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def rows(n=30, seed=0):
    return np.random.default_rng(seed).integers(0, 9, (n, 3, 4), dtype=np.uint8)


def test_known_rows_are_not_embedded_again():
    X, encoder = rows(), Counting()
    first = embed(encoder, X, {})
    assert encoder.asked == 30
    assert np.array_equal(embed(encoder, X, {}), first) and encoder.asked == 30
    assert np.array_equal(embed(encoder, X[[7, 3, 7]], {}), first[[7, 3, 7]])
    assert encoder.asked == 30
    more = np.concatenate([X, rows(4, seed=1)])
    embed(encoder, more, {})
    assert encoder.asked <= 30 + 8  # the batches that hold new rows
    embed(encoder, X, {"size": 3})  # other settings are another question
    assert encoder.asked >= 64


def test_equal_rows_are_embedded_once():
    encoder = Counting()
    X = np.repeat(rows(3), 20, 0)
    found = embed(encoder, X, {})
    assert encoder.asked == 3
    assert np.array_equal(found, np.repeat(found[::20], 20, 0))


def test_keys_tell_type_and_shape_apart():
    forms = [
        np.zeros((1, 4), np.uint8),
        np.zeros((1, 2, 2), np.uint8),
        np.zeros((1, 1), np.float32),
        np.zeros((1, 4), np.int8),
        [""],
        ["0"],
    ]
    assert len({row_keys(form)[0] for form in forms}) == len(forms)


def test_without_a_digest_nothing_is_kept(cache):
    encoder = Counting()
    encoder.kept = False
    embed(encoder, rows(), {})
    embed(encoder, rows(), {})
    assert encoder.asked == 60 and not cache.exists()


def test_damaged_shards_are_not_believed(cache):
    X, encoder = rows(), Counting()
    first = embed(encoder, X, {})
    shard = next(cache.rglob("*.safetensors"))
    content = bytearray(shard.read_bytes())
    content[-5] ^= 1
    shard.write_bytes(content)
    with pytest.warns(UserWarning, match="is damaged and is not used"):
        again = embed(encoder, X, {})
    assert np.array_equal(again, first) and encoder.asked == 60


def test_a_cache_that_cannot_be_written_is_told_once(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(module, "KEPT_SECONDS", 0)
    with pytest.warns(UserWarning, match="cannot be kept.*COTERIE_CACHE") as told:
        found = embed(Counting(), rows(), {})
    assert found.shape == (30, 2) and len(told) == 1


def test_a_store_gives_back_what_it_got(tmp_path):
    store = Store(tmp_path / "s")
    keys = row_keys([str(i) for i in range(50)])
    vectors = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    store.add(keys[:20], vectors[:20])
    store.add(keys[20:40], vectors[20:40])
    order = np.argsort(keys)
    known, found = store.find(keys[order])
    assert np.array_equal(known, order < 40)
    assert np.array_equal(found[known], vectors[order][known]) and not found[~known].any()
    assert store.find(np.sort(row_keys(["other"])))[1] is None


SLOW = """
import sys, time, numpy as np
sys.path.insert(0, sys.argv[1])
from encoders import test_embed as t
t.module.KEPT_SECONDS = 0
class Slow(t.Counting):
    def embed(self, batch, settings):
        time.sleep(float(sys.argv[3]))
        print(len(batch), flush=True)
        return super().embed(batch, settings)
np.save(sys.argv[2], t.embed(Slow(), t.rows(80), {}))
"""


def test_a_kill_in_the_middle_costs_what_was_not_kept(tmp_path, cache):
    tests = str(Path(__file__).parents[1])
    out = str(tmp_path / "z.npy")
    command = [sys.executable, "-c", SLOW, tests, out]
    first = subprocess.Popen([*command, "0.2"], env=os.environ | {"COTERIE_CACHE": str(cache)})
    deadline = time.monotonic() + 60
    while len(list(cache.rglob("*.safetensors"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    done = len(list(cache.rglob("*.safetensors")))
    assert 5 <= done < 20 and not Path(out).exists()
    env = os.environ | {"COTERIE_CACHE": str(cache)}
    second = subprocess.run([*command, "0"], env=env, check=True, capture_output=True, text=True)
    assert len(second.stdout.split()) == 20 - done  # batches of 4 out of 80 rows
    fresh = embed(_elsewhere(tmp_path), rows(80), {})
    assert np.array_equal(np.load(out), fresh)  # the same bits as without the kill


def _elsewhere(tmp_path):
    os.environ["COTERIE_CACHE"] = str(tmp_path / "other")  # the fixture restores it
    return Counting()
