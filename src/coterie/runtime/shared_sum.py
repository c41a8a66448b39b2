"""Sums over the processes of one machine through memory that they share.

Loopback TCP copies a message several times. Here each process writes its numbers into a slot of its
own, adds up one part of all slots, and reads the parts of the others. The order of a sum is that of
the ranks, so every process gets the same bits. Whoever waits does so in a collective operation,
which fails when a process has died.
"""

import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

import torch

FOLDER = Path("/dev/shm")  # memory in the form of files, never that of another machine
NAME_BYTES = 64  # of the file, in the message that tells it


class SharedSum:
    """Sums of up to `numel` float32 numbers; `open` gives None where processes share no memory."""

    def __init__(self, world: Any, memory: torch.Tensor, numel: int):
        self.world, self.numel = world, numel
        *self.slots, self.result = memory.split(numel)

    @classmethod
    def open(cls, world: Any, numel: int) -> "SharedSum | None":
        """All processes map a file of the leader's, which then has no name any more."""
        size = numel * (world.size + 1)
        name, memory = torch.zeros(NAME_BYTES, dtype=torch.uint8), None
        made = _create(4 * size) if world.leader else None
        try:
            if made and (memory := _map(made, size)) is not None:
                memory[:1].view(torch.int32)[0] = word = secrets.randbits(31)
                told = f"{made.name} {word}".encode()
                name[: len(told)] = torch.frombuffer(bytearray(told), dtype=torch.uint8)
            world.broadcast([name])
            if not world.leader:
                memory = _find(bytes(name.tolist()), size)
            seen = int(world.sum(torch.tensor(int(memory is not None))))
        finally:
            if made:
                made.unlink()
        return cls(world, memory, numel) if memory is not None and seen == world.size else None

    def __call__(self, parts: list[torch.Tensor]) -> torch.Tensor:
        """The sum of all processes' numbers, one after another, in memory that the next call
        overwrites and nobody may write to."""
        numel = sum(part.numel() for part in parts)
        torch.cat([part.reshape(-1) for part in parts], out=self.slots[self.world.rank][:numel])
        self._wait()  # all slots are full, and nobody reads the last result any more
        mine = slice(*self.world.span(numel))
        first, *others = (slot[mine] for slot in self.slots)
        total = torch.add(first, others[0], out=self.result[mine])
        for other in others[1:]:
            total += other
        self._wait()  # the result is complete, and slots may be filled again
        return self.result[:numel]

    def _wait(self) -> None:
        self.world.sum(torch.zeros(1))


def _create(nbytes: int) -> Path | None:
    try:
        handle, path = tempfile.mkstemp(prefix="coterie-", dir=FOLDER)
    except OSError:
        return None
    try:
        os.posix_fallocate(handle, 0, nbytes)  # an error here and no crash when it is written to
    except OSError:
        Path(path).unlink()
        return None
    finally:
        os.close(handle)
    return Path(path)


def _find(told: bytes, size: int) -> torch.Tensor | None:
    """The leader's file, if this process sees it: same name, same word."""
    if not told[0]:
        return None
    name, word = told.rstrip(b"\0").decode().split()
    if not (FOLDER / name).is_file():
        return None
    memory = _map(FOLDER / name, size)
    return memory if memory is not None and int(memory[:1].view(torch.int32)) == int(word) else None


def _map(path: Path, size: int) -> torch.Tensor | None:
    try:
        return torch.from_file(str(path), shared=True, size=size, dtype=torch.float32)
    except RuntimeError:  # another user's file, or no address space left
        return None
