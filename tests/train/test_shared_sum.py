"""Gradients of the processes of one machine are added up in memory that they share."""

import errno
import os

import pytest
import torch
from test_ranks import Rank, Ranks

from coterie.runtime import shared_sum
from coterie.runtime.processes import World, current
from coterie.runtime.shared_sum import SharedSum


class Told(Rank):
    """A rank that can also be told what the leader knows."""

    @property
    def leader(self):
        return self.rank == 0

    def broadcast(self, tensors):
        for t in tensors:
            t.copy_(self.sum(t if self.leader else torch.zeros_like(t)))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_sum, "FOLDER", tmp_path)
    return tmp_path


def world():
    return Told(current().ranks, current().rank)


@pytest.mark.parametrize("size", [2, 3])
def test_every_process_gets_the_sum_in_the_order_of_the_ranks(size, folder):
    g = torch.Generator().manual_seed(0)
    steps = [torch.randn(size, n, generator=g) for n in (7, 12, 1, 12)]  # fewer numbers than slots

    def work():
        found, mine = SharedSum.open(world(), 12), []
        for step in steps:
            part = step[current().rank]
            mine.append(found([part[:1], part[1:].view(1, -1)]).clone())
        return mine

    for mine in Ranks(size).run(work):
        for total, step in zip(mine, steps, strict=True):
            expected = step[0]
            for other in step[1:]:
                expected = expected + other
            assert torch.equal(total, expected)
    assert not any(folder.iterdir())  # the file lost its name before it was used


def test_whoever_sees_another_machine_makes_all_use_messages(folder, monkeypatch):
    find = shared_sum._find
    elsewhere = lambda *a: None if current().rank == 2 else find(*a)  # noqa: E731
    monkeypatch.setattr(shared_sum, "_find", elsewhere)
    assert Ranks(3).run(lambda: SharedSum.open(world(), 5)) == [None, None, None]
    assert not any(folder.iterdir())


def test_a_file_of_the_same_name_is_not_taken_for_the_leaders(folder):
    (folder / "coterie-x").write_bytes(b"\x01" + bytes(59))
    assert shared_sum._find(b"coterie-x 2\0\0", 15) is None
    assert shared_sum._find(b"coterie-y 1\0\0", 15) is None
    assert shared_sum._find(b"coterie-x 1\0\0", 15) is not None


@pytest.mark.parametrize("rank", [0, 1])
def test_whoever_cannot_map_the_file_makes_all_use_messages(rank, folder, monkeypatch):
    true_map = torch.from_file

    def refused(*args, **options):
        if current().rank == rank:
            raise RuntimeError("unable to mmap 60 bytes")
        return true_map(*args, **options)

    monkeypatch.setattr(torch, "from_file", refused)
    assert Ranks().run(lambda: SharedSum.open(world(), 5)) == [None, None]
    assert not any(folder.iterdir())


@pytest.mark.parametrize("lacks", ["folder", "space"])
def test_without_shared_memory_there_are_messages(lacks, folder, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    if lacks == "folder":
        monkeypatch.setattr(shared_sum, "FOLDER", folder / "none")
    else:
        monkeypatch.setattr(os, "posix_fallocate", full)
    assert Ranks().run(lambda: SharedSum.open(world(), 5)) == [None, None]
    assert not any(folder.iterdir())


def test_memory_is_asked_for_once_and_again_for_more(monkeypatch):
    asked = []

    def opened(world, numel):
        asked.append(numel)
        return lambda parts: 2 * torch.cat([p.reshape(-1) for p in parts])

    monkeypatch.setattr(SharedSum, "open", opened)
    two = World(0, 2)
    for shape in ((3, 2), (2,), (3, 2), (9,)):
        p = torch.nn.Parameter(torch.ones(shape))
        p.grad = torch.full(shape, 1.5)
        two.sum_gradients([p])
        assert torch.equal(p.grad, torch.full(shape, 3.0))
    assert asked == [6, 9]


def test_gradients_that_are_clipped_are_not_those_of_all(monkeypatch):
    memory = torch.tensor([3.0, 4.0])
    monkeypatch.setattr(SharedSum, "open", lambda *args: lambda parts: memory)
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    World(0, 2).sum_gradients([p], change=True)
    torch.nn.utils.clip_grad_norm_([p], 1.0)
    assert memory.tolist() == [3, 4] and p.grad.norm() < 1.01
