"""An accelerator that every machine has: its tensors lie in the memory of the CPU.

torch sees another device ("standin"), so that code which forgets to move a tensor, mixes devices,
draws with a generator of the wrong one or asks for `.numpy()` without `.cpu()` fails here as it
would on a GPU. Kernels are those of the CPU and results are equal to its, bit by bit.

Whatever makes the host wait for a number of the device is counted (`transfers`): copies to the
host, `.item()`, a tensor as a condition, and operations whose result has a size that only the
values tell.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils import _pytree as tree
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

NAME = "standin"
# the host has to know a number before it can go on
WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "bincount")
WAITS += ("_unique2", "unique_dim", "unique_consecutive", "repeat_interleave", "_assert_async")
aten = torch.ops.aten


class Module(_DummyBackendModule):
    """What torch asks of a device: is there one, and how much memory is free."""

    present = False  # tests that do not ask for it do not meet it
    narrow = False  # no float64, as on Apple's devices
    free = 1 << 40

    def is_available(self) -> bool:
        return self.present

    def device_count(self) -> int:
        return int(self.present)

    def mem_get_info(self, device=None) -> tuple[int, int]:
        return self.free, 1 << 40


class Counter:
    """Transfers to the host: how many, and by which operations."""

    def __init__(self):
        self.lock, self.seen = threading.Lock(), []

    def add(self, name: str) -> None:
        with self.lock:  # backward passes run in a thread of their own
            self.seen.append(name)


module, counter = Module(), Counter()
_setup_privateuseone_for_python_backend(NAME, backend_module=module)


class OnDevice(torch.Tensor):
    """A tensor of the device; `raw` holds its values."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> "OnDevice":
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            raw.size(),
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=torch.device(NAME, 0),
        )
        made.raw = raw
        return made

    def __repr__(self, **_) -> str:
        return f"OnDevice({self.raw!r})"

    def tolist(self) -> list:  # torch has none for subclasses; a GPU's tensor has one
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, dict(kwargs or {}))


def _run(func, args, kwargs):
    name = func._schema.name.removeprefix("aten::")
    if func is aten._to_copy.default:
        return _to_copy(func, args[0], kwargs)
    if name == "copy_":
        if not isinstance(args[0], OnDevice):
            counter.add(name)
        _raw(args[0]).copy_(_raw(args[1]))
        return args[0]
    _check(name, args, kwargs)
    mask = name in ("index", "index_put", "index_put_") and _has_mask(args[1])
    if mask or name in WAITS:
        counter.add(name)
    if "device" in kwargs:
        kwargs["device"] = torch.device("cpu")
    args, kwargs, given = *tree.tree_map(_raw, (args, kwargs)), args
    made = func(*args, **kwargs)
    if name == "_local_scalar_dense" or not isinstance(made, (torch.Tensor, tuple, list)):
        return made
    # in place: the very tensor that was given, not another one around the same values
    written = [
        mine
        for mine, argument in zip(given, func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    by_raw = {id(_raw(t)): t for t in tree.tree_leaves(written) if isinstance(t, OnDevice)}

    def wrap(t):
        if not isinstance(t, torch.Tensor):
            return t
        if module.narrow and t.dtype == torch.float64:
            raise TypeError(f"{name}: {NAME} has no float64 here")
        if id(t) not in by_raw:
            return OnDevice(t)
        mine = by_raw[id(t)]
        if mine.shape == t.shape or name == "squeeze_":  # matmul's last step, on what it has made
            return mine if mine.shape == t.shape else OnDevice(t)
        raise NotImplementedError(f"{name}: a tensor of {NAME} cannot get another shape in place")

    return tree.tree_map(wrap, made)


def _to_copy(func, source, kwargs):
    device = kwargs.pop("device", None)
    made = func(_raw(source), **kwargs)
    if device is None or torch.device(device).type == NAME:
        if module.narrow and made.dtype == torch.float64:
            raise TypeError(f"to: {NAME} has no float64 here")
        return OnDevice(made)
    counter.add("to_host")
    return made


def _check(name: str, args, kwargs) -> None:
    leaves = tree.tree_leaves((args, kwargs))
    # as on a GPU: a single number of the host may take part, an array may not
    host = [
        t for t in leaves if isinstance(t, torch.Tensor) and not isinstance(t, OnDevice) and t.dim()
    ]
    if host:
        shapes = [tuple(t.shape) for t in host]
        raise RuntimeError(f"{name}: tensors on {NAME} and, of shapes {shapes}, on the CPU")
    if any(isinstance(x, torch.Generator) for x in leaves):
        raise RuntimeError(f"{name}: a tensor on {NAME} and a generator on the CPU")


def _has_mask(indices) -> bool:
    return any(t is not None and t.dtype in (torch.bool, torch.uint8) for t in indices)


def _raw(x):
    return x.raw if isinstance(x, OnDevice) else x


def _copy_from(source, target, non_blocking=False):
    if not isinstance(target, OnDevice):
        counter.add("copy_")
    _raw(target).copy_(_raw(source))
    return target


library = torch.library.Library("aten", "IMPL", "PrivateUse1")
library.impl(
    "empty.memory_format",
    lambda size, *, dtype=None, **_: OnDevice(torch.empty(size, dtype=dtype)),
)
library.impl(
    "empty_strided",
    lambda size, stride, *, dtype=None, **_: OnDevice(
        torch.empty_strided(size, stride, dtype=dtype)
    ),
)
library.impl("_copy_from", _copy_from)
# torch makes these of an empty tensor that grows, which ours cannot
library.impl("eye", lambda n, *, dtype=None, **_: OnDevice(torch.eye(n, dtype=dtype)))
library.impl(
    "linspace",
    lambda start, end, steps, *, dtype=None, **_: OnDevice(
        torch.linspace(start, end, steps, dtype=dtype)
    ),
)


@contextmanager
def plugged_in(free: int = 1 << 40, narrow: bool = False) -> Iterator[torch.device]:
    """The device is there for the time of a test, with so many bytes free."""
    module.present, module.free, module.narrow = True, free, narrow
    try:
        yield torch.device(NAME, 0)
    finally:
        module.present = module.narrow = False


@contextmanager
def transfers() -> Iterator[list[str]]:
    """The names of the operations inside that made the host wait."""
    before, counter.seen = counter.seen, []
    try:
        yield counter.seen
    finally:
        counter.seen = before
