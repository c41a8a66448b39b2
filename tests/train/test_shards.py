"""Per-row tensors that processes share: sums over parts, rows of others, what is sent ahead."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_ranks import Ranks

from coterie.math.kmeans import kmeans
from coterie.runtime.processes import (
    current,
    row_count,
    row_mean,
    row_variance,
    rows_at,
    sum_parts,
)
from coterie.runtime.progress import Progress
from coterie.train import shards
from coterie.train.engine import Engine
from coterie.train.head import Head
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling
from coterie.train.shards import Ahead


def own(whole):
    return whole[slice(*current().span(len(whole)))]


def test_statistics_of_parts_are_those_of_all_rows():
    x = torch.randn(11, 3, generator=torch.Generator().manual_seed(0)) * 3 + 100

    def found():
        part = own(x)
        return row_count(part), row_mean(part), row_variance(part), sum_parts(part.sum(0))

    alone = found()  # one process: torch's own bits
    assert alone[0] == 11 and torch.equal(alone[1], x.mean(0)) and torch.equal(alone[2], x.var(0))
    for n, mean, variance, total in Ranks(3).run(found):
        assert n == 11
        torch.testing.assert_close(mean, x.mean(0))
        torch.testing.assert_close(variance, x.var(0))
        torch.testing.assert_close(total, x.sum(0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_rows_of_others_come_as_they_are(dtype):
    x = (1000 * torch.randn(10, 2, generator=torch.Generator().manual_seed(0))).to(dtype)
    index = torch.tensor([9, 0, 4, 5, 4])
    for found in Ranks(3).run(lambda: rows_at(current(), own(x), index, 10)):
        assert found.dtype == dtype and torch.equal(found, x[index])
    assert torch.equal(rows_at(current(), x, index, 10), x[index])


@pytest.mark.parametrize("sample", [None, 100])
def test_kmeans_on_parts_equals_kmeans_on_all_rows(sample):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(4, 6)) * 4)[rng.integers(0, 4, 301)] + rng.normal(size=(301, 6))
    x = torch.from_numpy(x.astype(np.float32))
    given = {"n_init": 3, "sample": sample}
    alone = kmeans(x, 7, rng=np.random.default_rng(1), **given)
    work = lambda: kmeans(own(x), 7, rng=np.random.default_rng(1), part=True, **given)  # noqa: E731
    both = Ranks().run(work)
    assert torch.equal(torch.cat([found.labels for found in both]), alone.labels)
    for found in both:
        torch.testing.assert_close(found.centers, alone.centers, rtol=1e-4, atol=1e-5)
        assert found.inertia == pytest.approx(alone.inertia, rel=1e-5)
    with pytest.raises(ValueError, match="301 rows but k=302"):  # of all processes
        Ranks().run(lambda: kmeans(own(x), 302, rng=np.random.default_rng(1), part=True))


def test_a_batch_sees_the_rows_of_its_part_whoever_holds_them(monkeypatch):
    """Three processes, a window of a few batches, an update in between."""
    n, size, batch = 20, 3, 6
    monkeypatch.setattr(shards, "AHEAD_BYTES", 2 * batch * 20)  # 12 and 8 bytes a row: two batches
    target = torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    order = torch.randperm(n, generator=torch.Generator().manual_seed(1), dtype=torch.int32)

    def work():
        world, sent = SimpleNamespace(**vars(current())), []
        world.span, world.share = current().span, lambda t: t.tensor_split(size)[world.rank]
        world.sum = lambda t: sent.append(len(t)) or current().sum(t)
        head = Head(rows={"target": own(target), "labels": own(torch.arange(n))})
        rows = SimpleNamespace(n=n)
        engine = SimpleNamespace(world=world, head=head, rows=rows, device=torch.device("cpu"))
        ahead, seen = Ahead(engine), []
        for first in (0, 6, 12):
            ahead.turn_to(order, first, min(first + batch, n))
            mine = world.share(order[first : first + batch].long())
            seen.append(torch.equal(ahead.head.target, target[mine]))
            seen.append(torch.equal(ahead.head.labels, mine))
            if first == 6:
                head.target.mul_(0)
                ahead.forget()
                ahead.turn_to(order, first, first + batch)
                seen.append(not ahead.head.target.any())
                head.target.copy_(own(target))
                ahead.forget()
        return seen, sent

    for seen, sent in Ranks(size).run(work):
        assert all(seen) and len(seen) == 7
        assert sent == [12, 12, 12, 12, 8, 8]  # both tensors: two batches, two again, the rest


def test_fewer_rows_than_processes_are_refused(blobs):
    X = blobs[0][:2].astype(np.float32)
    rows = Rows(X, fit_scaling(X, "none"))
    world = SimpleNamespace(size=3, rank=0)
    with pytest.raises(ValueError, match="2 rows for 3 processes; start fewer"):
        Engine(rows, torch.nn.Identity(), None, seed=0, world=world, progress=Progress(0, None))


def test_per_row_tensors_go_when_the_training_is_over():
    head = Head(
        {"centers": torch.ones(2)}, rows={"target": torch.ones(3)}, whole={"z": torch.ones(3)}
    )
    head.drop_rows()
    assert list(head.tensors()) == ["param.centers", "whole.z"] and "target" not in head
