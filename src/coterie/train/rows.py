"""Rows: what the engine sees of the data, n float32 rows of one shape, in memory or streamed.

Dense arrays are scaled once and kept as a float32 tensor, on the device if they leave enough of its
memory to the work. Memory maps and sparse matrices stay where they are; a batch is cut, scaled,
sent to the device and, unless the caller can do with less, densified when it is asked for.
"""

import hashlib
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from ..data.chunks import CHUNK_BYTES, chunk_rows, pick, release
from ..math.graph import neighbours
from ..math.merge import joint, neighbours_kept, one_hot
from ..nets.sparse import dense
from ..runtime.device import CPU, has_room, to_numpy
from ..runtime.rng import numpy_rng
from .scaling import Scaling

# bytes of a memory map whose pages are kept, and rows of a larger one that are read at once
PAGED_BYTES, PAGED_ROWS = 4 * CHUNK_BYTES, 256
ENCODE_ROWS = 4096  # rows per forward pass without gradient
NEAR_ROWS, NEAREST = 1000, 5  # rows that are compared with all others, and near ones of each
VARIANCE_ROWS, VARIANCE_VALUES = 5000, 2**25  # what the total variance is measured on, at most


@dataclass
class Precomputed:
    """Rows whose features need not be computed again."""

    features: torch.Tensor  # (b, m)


def send(t: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor on the device; the host does not wait until it has arrived."""
    if device.type == "cuda" and t.device.type == "cpu":
        return t.pin_memory().to(device, non_blocking=True)
    return t.to(device)


class Rows:
    """A row source: `take(index)` for batches, `slice(start, stop)` for full passes.

    What they give is on `device`, wherever the rows are.
    """

    def __init__(self, source: Any, scaling: Scaling, device: torch.device = CPU):
        self.source, self.scaling, self.device = source, scaling, device
        self.n = source.shape[0]
        self.shape = channels_first_shape(source.shape[1:])
        self.streamed = sp.issparse(source) or isinstance(source, np.memmap)
        self._tensor = None if self.streamed else self._to_tensor(source)
        if self._tensor is not None and has_room(self._tensor.nbytes, device):
            self._tensor = self._tensor.to(device)
        self.csr: Any = self._scaled_csr() if sp.issparse(source) else None
        self.features: Any = None  # (n, m), set by a method that computes them once for a fit
        self.unembedded: Any = None  # what an encoder that is trained too makes these rows of
        self._held: Any = None  # a network and its codes of all rows
        self._read = 0

    def take(self, index: torch.Tensor) -> torch.Tensor:  # (b,) -> (b, *shape)
        if self._tensor is not None:
            return send(self._tensor[index.to(self._tensor.device)], self.device)
        index = index.cpu()
        if self.csr is not None and self.device != CPU:
            return dense(self.csr[index.numpy()], self.device)
        # sorted reads touch the file in order; the rows come back in the order asked for
        order = torch.argsort(index)
        take = pick if len(index) > PAGED_ROWS and self._is_paged else operator.getitem
        rows = self._to_tensor(take(self.source, index[order].numpy()))
        out = torch.empty_like(rows)
        out[order] = rows
        # a fault on one page brings its neighbours along, up to two megabytes on Linux
        self._forget_pages(max(rows.nbytes, len(index) << 21))
        return send(out, self.device)

    def slice(self, start: int, stop: int) -> torch.Tensor:  # rows start..stop-1
        if self._tensor is not None:
            return send(self._tensor[start:stop], self.device)
        if self.csr is not None and self.device != CPU:
            return dense(self.csr[start:stop], self.device)
        rows = self._to_tensor(self.source[start:stop])
        self._forget_pages(rows.nbytes)
        return send(rows, self.device)

    def fed_to(self, network: Any, index: Any) -> Any:  # positions or a slice
        """Rows as a network takes them: features that are known already, CSR where both sides are
        made for it, else a tensor. An encoder that is trained with the network comes first."""
        if self.unembedded is not None and network.fine_tuned.is_awake:
            return network.fine_tuned(send(self.unembedded[index], self.device))
        if self.features is not None and getattr(network, "takes_features", False):
            known = index.to(self.features.device) if isinstance(index, torch.Tensor) else index
            return Precomputed(self.features[known])
        if self.csr is not None and getattr(network, "takes_sparse", False):
            return self.csr[to_numpy(index) if isinstance(index, torch.Tensor) else index]
        if isinstance(index, slice):
            return self.slice(index.start, index.stop)
        return self.take(index)

    @torch.no_grad()  # not inference mode: what comes out may enter autograd later
    def through(
        self, network: Any, start: int = 0, stop: int | None = None, then: Any = None
    ) -> torch.Tensor:
        """`then(network.encode(rows))` for rows start..stop-1, in blocks; memory for the answer.

        The blocks are written into one tensor: kept apart, between the large ones that come and
        go, they would cut the heap to pieces (2.4 GB in place of 1.1 GB on a file of 5 GB).
        """
        stop, out = self.n if stop is None else stop, torch.empty(0)
        for a, z in self.codes(network, start, stop):
            part = z if then is None else then(z)
            if a == start:
                out = part.new_empty(stop - start, *part.shape[1:])
            out[a - start : a - start + len(part)] = part
        return out

    def replace(self, source: Any) -> None:
        """Other values of the same rows, in the same scaling."""
        self.__init__(source, self.scaling, self.device)

    def codes(self, network: Any, start: int, stop: int) -> Iterator[tuple[int, torch.Tensor]]:
        """Codes of rows start..stop-1 in blocks, each with the position of its first row."""
        held = self._held[1] if self._held is not None and self._held[0] is network else None
        step = min(ENCODE_ROWS, self.chunk)
        if self.unembedded is not None:  # layers of an encoder take more memory than its vectors
            step = min(step, self.unembedded.step)
        for a in range(start, stop, step):
            part = slice(a, min(a + step, stop))
            yield a, network.encode(self.fed_to(network, part)) if held is None else held[part]

    @torch.no_grad()
    def hold_codes(self, network: Any) -> None:
        """Encode once for the passes to come; codes that are as wide as the rows are not kept."""
        if network.encode(self.fed_to(network, slice(0, 1)))[0].numel() < math.prod(self.shape):
            self._held = network, self.through(network)

    @property
    def chunk(self) -> int:
        """Rows per block of a full pass."""
        return chunk_rows(self.shape)

    def sampled_variance(self) -> float:
        """Sum of the variances of all features after scaling, from evenly spread rows."""
        most = max(100, min(VARIANCE_ROWS, VARIANCE_VALUES // math.prod(self.shape)))
        some = np.linspace(0, self.n - 1, min(most, self.n)).round().astype(np.int64)
        return float(self.take(torch.from_numpy(some)).flatten(1).var(0, correction=0).sum())

    def fingerprint(self) -> str:
        """Digest of the rows: all of them in memory, 64 evenly spaced blocks when streamed."""
        digest = hashlib.blake2b(repr((self.n, self.shape)).encode(), digest_size=12)
        starts = range(0, self.n, self.chunk)
        if self.streamed and len(starts) > 64:
            starts = [int(s) for s in np.linspace(0, self.n - self.chunk, 64)]
        for start in starts:
            digest.update(
                np.ascontiguousarray(to_numpy(self.slice(start, start + self.chunk))).data
            )
        return digest.hexdigest()

    def _to_tensor(self, block: Any) -> torch.Tensor:
        block = block.toarray() if sp.issparse(block) else np.asarray(block)
        x = torch.from_numpy(np.ascontiguousarray(self.scaling.apply(block)))
        if x.ndim == 3:
            return x.unsqueeze(1)  # grey images get their channel
        return x.permute(0, 3, 1, 2).contiguous() if x.ndim == 4 else x

    def _scaled_csr(self) -> sp.csr_matrix:
        # scaling of a sparse matrix has no shift and one factor: zeros stay where they are
        data = self.source.data.astype(np.float32) * np.float32(self.scaling.factor)
        return sp.csr_matrix((data, self.source.indices, self.source.indptr), self.source.shape)

    def _forget_pages(self, nbytes: int) -> None:
        # pages of a memory map count as ours until we let them go; the file cache keeps them
        self._read += nbytes
        if self._read > PAGED_BYTES and self._is_paged:
            self._read = 0
            release(self.source)

    @property
    def _is_paged(self) -> bool:
        return isinstance(self.source, np.memmap) and self.source.nbytes > PAGED_BYTES


def clusters_kept(rows: Rows, labels: np.ndarray, seed: int) -> float:
    """Share of a row's nearest rows in its own cluster beyond chance; see `neighbours_kept`.

    From evenly spread rows; nan where they are too few, or all in one cluster.
    """
    most = min(NEAR_ROWS, VARIANCE_VALUES // math.prod(rows.shape))
    if min(rows.n, most) <= 10 * NEAREST:
        return math.nan
    some = torch.linspace(0, rows.n - 1, min(rows.n, most)).round().long()
    near = neighbours(rows.take(some).flatten(1), NEAREST, numpy_rng(seed, "kept")).cpu()
    names = torch.from_numpy(labels)[some]
    return neighbours_kept(joint(one_hot(names, int(names.max()) + 1), near))


def channels_first_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) == 2:
        return (1, *shape)
    return (shape[2], shape[0], shape[1]) if len(shape) == 3 else tuple(shape)
