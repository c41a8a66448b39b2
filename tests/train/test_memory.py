"""No tensor of rows x clusters x dimensions is ever made: the largest one of a fit says so."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from conftest import KEYS, quick
from coterie.data import chunks
from coterie.math.kmeans import CHUNK_VALUES, kmeans
from coterie.train import rows as rows_module
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling

N, K, D, BATCH = 1000, 150, 10, 240  # even a batch x k x d would be larger than two n x k


class Largest(TorchDispatchMode):
    """Numbers in the largest tensor that an operation returned."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor):
                self.numel = max(self.numel, t.numel())
        return out


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(K, D)) * 5)[rng.integers(0, K, N)] + rng.normal(size=(N, D))


@pytest.mark.parametrize(
    "key", [k for k in KEYS if k in ("dec", "idec", "dcn", "dkm", "dekm", "acedec", "cm", "cnet")]
)
def test_no_rows_by_clusters_by_dimensions(key, rows, monkeypatch):
    # the last look at the result compares all pairs of a bounded sample
    monkeypatch.setattr("coterie.estimator.deep.clusters_kept", lambda *rows: 1.0)
    own = (
        {"embedding_dim": D, "pretrain_epochs": 1, "n_init": 1} if key != "cm" else {"restarts": 1}
    )
    model = quick(key, K, batch_size=BATCH, epochs=1, **own)
    with Largest() as seen:
        model.fit(rows.astype(np.float32))
        model.predict(rows.astype(np.float32))
    assert N * K <= seen.numel < BATCH * K * D


def test_kmeans_with_a_thousand_clusters_holds_a_chunk_of_distances():
    z = torch.randn(20_000, 10, generator=torch.Generator().manual_seed(0))
    with Largest() as seen:
        kmeans(z, 1000, rng=np.random.default_rng(0), n_init=1, init="random", max_iter=2)
    assert seen.numel <= max(CHUNK_VALUES, z.numel())


def test_many_rows_of_a_large_map_are_read_piece_by_piece(tmp_path, monkeypatch):
    """Spread over the whole file, they would make all of its pages count as ours at once."""
    x = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    let_go = []
    monkeypatch.setattr(chunks, "release", lambda source: let_go.append(len(source)))
    monkeypatch.setattr(rows_module, "PAGED_BYTES", 100)
    rows = Rows(np.load(tmp_path / "x.npy", mmap_mode="r"), fit_scaling(x, "none"))
    index = torch.randperm(2000, generator=torch.Generator().manual_seed(0))[:600]
    np.testing.assert_array_equal(rows.take(index).numpy(), x[index.numpy()])
    assert len(let_go) == 3  # 256, 256, 88
    rows.take(index[:100])
    assert len(let_go) == 3
