"""Every method on an accelerator: the stand-in of tests/stand_in.py, which any machine has."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import coterie
from conftest import KEYS, deep_keys, quick
from coterie.runtime import device as devices
from coterie.runtime import processes
from coterie.train.engine import Engine
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling

stand_in = pytest.importorskip(
    "stand_in", reason="torch is too old for a device in Python", exc_type=ImportError
)


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def accelerator():
    with stand_in.plugged_in() as device:
        yield device


def same(a, b, X):
    """Two models say the same of X, bit by bit."""
    for say in ("predict", "predict_proba", "transform", "score_samples"):
        assert np.array_equal(getattr(a, say)(X), getattr(b, say)(X)), say


@pytest.fixture
def waits(monkeypatch):
    """What made the host wait inside of training steps."""
    seen, true_step = [], Engine._one_step

    def step(self, index):
        with stand_in.transfers() as found:
            true_step(self, index)
        seen.extend((self.phase.name, self.step, name) for name in found)

    monkeypatch.setattr(Engine, "_one_step", step)
    return seen


@pytest.mark.parametrize("key", KEYS)
def test_labels_are_those_of_the_cpu(key, digit_images, tmp_path, accelerator, waits):
    """Fit, predict, save and load, on the device and back; no step waits for a number."""
    X = digit_images[0][:90]
    here = quick(key, device="cpu").fit(X)
    there = quick(key).fit(X)
    assert there.device_ == accelerator and there.settings_.device == "standin:0"
    tensors = [*there.network_.state_dict().values(), *there.head_.tensors().values()]
    assert {t.device for t in tensors} == {accelerator}
    assert waits == []
    assert np.array_equal(here.labels_, there.labels_)
    same(here, there, X)
    there.save(tmp_path / "there")
    same(here, coterie.load(tmp_path / "there", device="cpu"), X)
    here.save(tmp_path / "here")
    loaded = coterie.load(tmp_path / "here", device=accelerator)
    assert loaded.device_ == accelerator
    same(here, loaded, X)
    loaded.save(tmp_path / "again")


@pytest.mark.parametrize("key", deep_keys())
def test_a_fit_that_was_stopped_goes_on_there(key, blobs, tmp_path, accelerator, monkeypatch):
    X, true_save = blobs[0][:70], Engine._save
    params = {"batch_size": 32, "checkpoint_seconds": 0.0, "checkpoint_dir": tmp_path}
    whole = quick(key, batch_size=32, device="cpu").fit(X)
    count = [0]

    def save_and_stop(self, extra):
        true_save(self, extra)
        count[0] += 1
        if count[0] == 4:
            raise Killed

    monkeypatch.setattr(Engine, "_save", save_and_stop)
    with pytest.raises(Killed):
        quick(key, **params).fit(X)
    monkeypatch.setattr(Engine, "_save", true_save)
    same(whole, quick(key, **params).fit(X), X)


@pytest.mark.parametrize("key", KEYS)
def test_sparse_rows(key, accelerator, waits):
    """Sparse rows stay on the host; the device gets what is stored of a batch."""
    X = sp.random(80, 30, density=0.2, format="csr", random_state=0, dtype=np.float32)
    changes = {"net": "mlp"} if "net" in quick(key).get_params() else {}
    there = quick(key, **changes).fit(X)
    assert there.device_ == accelerator and waits == []
    here = quick(key, device="cpu", **changes).fit(X)
    # products of filled and of sparse rows round differently
    np.testing.assert_allclose(there.transform(X), here.transform(X), rtol=1e-3, atol=1e-3)


SETTINGS = [
    ("dec", {"augment": "affine"}),
    ("dec", {"pretrain": "denoise", "clip": 1.0, "optimizer": "sgd"}),
    ("idec", {"pretrain": "layerwise", "net": "mlp"}),
    (
        "dkm",
        {
            "init": "random",
            "inverse_temperature": None,
            "levels": 2,
            "epochs_per_level": 1,
            "membership": "fuzzy",
        },
    ),
    ("dkm", {"distance": "cosine", "augment": "affine"}),
    ("dekm", {"strategy": "all_raw", "recon_weight": 1.0, "normalize": True, "decoder_epochs": 1}),
    ("acedec", {"start": "random", "objective": "dekm"}),
    ("acedec", {"objective": "idec", "augment": "affine", "held_variance": 3.0}),
    ("cm", {"init": "random", "selection": "loss"}),
    ("cnet", {"init": "random", "module_start": "random", "match_code": False, "restarts": 2}),
    ("cuegan", {"prior": "learned", "augment": "affine", "brightness": 0.1, "share_trunk": True}),
    ("kith", {"kind": "text"}),
    ("kith", {"kind": "counts"}),
    ("kith", {"sizes": "free", "moved": False}),
]


@pytest.mark.parametrize(("key", "changes"), [s for s in SETTINGS if s[0] in KEYS])
def test_settings_that_take_other_ways(key, changes, digit_images, accelerator, waits):
    X = digit_images[0][:90]
    if changes.get("kind") in ("text", "counts"):
        X = X.reshape(90, -1)
    there = quick(key, **changes).fit(X)
    assert there.device_ == accelerator and waits == []
    same(quick(key, device="cpu", **changes).fit(X), there, X)


def test_what_is_made_of_a_model_is_numpy(digit_images, accelerator):
    X = digit_images[0][:90]
    for key in ("idec", "cm", "cnet", "acedec", "cuegan"):
        if key not in KEYS:
            continue
        here, there = (quick(key, device=d).fit(X) for d in ("cpu", "auto"))
        made = {"cluster_centers_": lambda m: getattr(m, "cluster_centers_", np.zeros(0))}
        made["sample"] = lambda m: m.sample(1, 2) if hasattr(m, "sample") else np.zeros(0)
        for name, args in {"reconstruct": (X,), "interpolate": (0, 1), "traverse": (0,)}.items():
            if hasattr(here, name):
                made[name] = lambda m, name=name, args=args: getattr(m, name)(*args)
        for name, make in made.items():
            assert np.array_equal(make(here), make(there)), (key, name)


def test_rows_that_do_not_fit_stay_on_the_host(digit_images):
    X = digit_images[0][:90]
    here = quick("dec", device="cpu").fit(X)
    with stand_in.plugged_in(free=1000) as device:
        rows = Rows(X, fit_scaling(X, "auto"), device)
        assert rows._tensor.device.type == "cpu"
        index = torch.tensor([3, 1])
        assert rows.take(index).device == device and rows.slice(0, 4).device == device
        same(here, quick("dec").fit(X), X)
    with stand_in.plugged_in() as device:
        assert Rows(X, fit_scaling(X, "auto"), device)._tensor.device == device


@pytest.mark.parametrize("key", KEYS)
def test_devices_without_float64(key, blobs, monkeypatch):
    """Apple's: long sums are made in float32 there, and small matrices taken apart on the host."""
    monkeypatch.setattr(devices, "NARROW", {"standin"})
    with stand_in.plugged_in(narrow=True) as device:
        model = quick(key).fit(blobs[0])
        assert model.device_ == device and len(np.unique(model.predict(blobs[0]))) > 1
        assert model.score_samples(blobs[0]).shape == (120,)


def test_a_number_of_clusters_is_found_there(blobs, accelerator):
    if "kith" in KEYS:
        here, there = (quick("kith", "auto", device=d).fit(blobs[0]) for d in ("cpu", accelerator))
        assert here.n_clusters_ == there.n_clusters_
        assert np.array_equal(here.tree_, there.tree_)
        assert np.array_equal(here.labels_at(2), there.labels_at(2))


def test_rows_of_a_file_are_sent_batch_by_batch(digit_images, tmp_path, accelerator):
    np.save(tmp_path / "x.npy", digit_images[0][:90])
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    here = quick("dec", device="cpu").fit(X)
    same(here, quick("dec").fit(X), X)


def test_an_absent_device_is_told_with_what_is_there(blobs, accelerator):
    assert devices.pick_device("auto") == accelerator == devices.pick_device("standin")
    assert devices.pick_device(torch.device("cpu")) == torch.device("cpu")
    with pytest.raises(ValueError, match=r"'cuda' is not available.*'cpu', 'standin:0'"):
        quick("dec", device="cuda").fit(blobs[0])
    with pytest.raises(ValueError, match="'standin:1' is not available"):
        quick("dec", device="standin:1").fit(blobs[0])
    with pytest.raises(ValueError, match="device='gpu' is no device"):
        quick("dec", device="gpu").fit(blobs[0])


def test_without_an_accelerator_auto_is_the_cpu():
    assert devices.pick_device("auto") == torch.device("cpu")
    with pytest.raises(ValueError, match=r"this machine has: 'cpu'$"):
        devices.pick_device("standin")


@pytest.mark.parametrize(
    ("asked", "processes", "found"),
    [("auto", 2, "cuda:1"), ("cuda", 2, "cuda:1"), ("cuda:0", 2, "cuda:0"), ("auto", 3, "cpu")],
)
def test_each_process_takes_a_gpu_of_its_own(asked, processes, found, monkeypatch):
    monkeypatch.setattr(devices, "_accelerator", lambda: ("cuda", 2))
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert devices.pick_device(asked, processes) == torch.device(found)
    with pytest.raises(ValueError, match="devices=3 processes, but there are 2 cuda devices"):
        devices.pick_device("cuda", 3)


def test_gpus_talk_by_nccl_and_hosts_by_gloo(monkeypatch):
    assert processes._strategy("cuda")._process_group_backend == "cpu:gloo,cuda:nccl"
    assert processes._strategy("cpu")._process_group_backend == "gloo"
    asked = {}

    class Fabric:
        global_rank, world_size = 0, 2

        def __init__(self, **settings):
            asked.update(settings)

        def launch(self):
            pass

    monkeypatch.setattr("lightning_fabric.Fabric", Fabric)
    monkeypatch.setattr(devices, "_accelerator", lambda: ("cuda", 2))
    assert processes.join(2).size == 2
    assert asked["accelerator"] == "cuda" and asked["devices"] == 2


def test_processes_share_the_work_on_cpus_and_gpus_only(accelerator):
    assert devices.pick_device("auto", 2) == torch.device("cpu")
    with pytest.raises(ValueError, match=r"devices=2.*not on 'standin'"):
        devices.pick_device("standin", 2)


def test_the_stand_in_is_strict(accelerator):
    """What fails on a GPU fails here; a test on it could not fail otherwise."""
    there, here = torch.ones(3, 3).to(accelerator), torch.ones(3, 3)
    for mixed in (lambda: there + here, lambda: here @ there, lambda: here[there.long()]):
        with pytest.raises(RuntimeError, match="on the CPU"):
            mixed()
    with pytest.raises(RuntimeError, match="generator"):
        there.uniform_(generator=torch.Generator())
    with pytest.raises(RuntimeError):
        there.numpy()
    for waits in (
        lambda: there.sum().item(),
        lambda: there.cpu(),
        lambda: there.tolist(),
        lambda: bool(there.any()),
        lambda: there[there > 0],
        lambda: torch.nonzero(there),
        lambda: here.copy_(there),
    ):
        with stand_in.transfers() as seen:
            waits()
        assert len(seen) == 1
    with stand_in.transfers() as seen:
        (there @ there + 1).softmax(1)[torch.tensor([0, 2]).to(accelerator)].sum()
    assert seen == []
