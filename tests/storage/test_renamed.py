"""Files that call a parameter by an earlier name are read with today's."""

import dataclasses

import numpy as np
import pytest

import coterie
from coterie import registry
from coterie.cli.config import stored_params
from coterie.estimator import saving
from coterie.research.bench.ledger import KEYS, Ledger
from coterie.storage import runs
from coterie.storage.renamed import RENAMED, current_names
from coterie.storage.run import FORMAT, write_run_toml
from coterie.storage.tensors import Checkpoint, StateError

OLD = {
    "cm": {"n_clusters": 3, "n_init": 4, "lr": 0.01},
    "cnet": {"n_clusters": 3, "n_init": 2, "centers_init": 7, "lr": 0.01},
    "pca_kmeans": {"n_clusters": 3, "n_init": 4, "variance": 0.7},
}
NEW = {
    "cm": {"n_clusters": 3, "restarts": 4, "lr": 0.01},
    "cnet": {"n_clusters": 3, "restarts": 2, "n_init": 7, "lr": 0.01},
    "pca_kmeans": {"n_clusters": 3, "n_init": 4, "explained_variance": 0.7},
}


def by_old_names(method, params):
    old_name = {new: old for old, new in RENAMED[method].items()}
    return {old_name.get(name, name): value for name, value in params.items()}


@pytest.mark.parametrize("method", RENAMED)
def test_old_names_become_todays_and_todays_stay(method):
    assert current_names(method, OLD[method]) == NEW[method]
    assert current_names(method, NEW[method]) == NEW[method]
    assert by_old_names(method, NEW[method]) == OLD[method]
    known = {f.name for f in dataclasses.fields(registry.get(method))}
    assert set(RENAMED[method].values()) <= known


def test_other_methods_are_left_alone():
    assert current_names("dec", {"n_init": 3}) == {"n_init": 3}
    assert current_names(None, {"n_init": 3}) == {"n_init": 3}


@pytest.mark.parametrize("method", RENAMED)
def test_a_model_of_an_earlier_version_loads(method, blobs, tmp_path, monkeypatch):
    save_model = saving.save_model

    def as_before(folder, tensors, about, overwrite):
        about["params"] = by_old_names(method, about["params"])
        fields = about["fitted"]["settings"]["fields"]
        about["fitted"]["settings"]["fields"] = by_old_names(method, fields)
        save_model(folder, tensors, about, overwrite)

    monkeypatch.setattr(saving, "save_model", as_before)
    cls = registry.get(method)
    given = {"cm": {"restarts": 2}, "cnet": {"restarts": 2, "n_init": 3}}
    settings = cls.tiny | given.get(method, {"explained_variance": 0.6})
    model = cls(3, random_state=0, **settings).fit(blobs[0])
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    written = (tmp_path / "m" / "model.json").read_text()
    assert '"restarts"' not in written and '"explained_variance"' not in written
    assert again.get_params() == model.get_params()
    assert dict(again.settings_.fields) == dict(model.settings_.fields)
    assert np.array_equal(again.predict(blobs[0]), model.labels_)


@pytest.mark.parametrize("method", RENAMED)
def test_a_run_of_an_earlier_version_is_read(method, tmp_path):
    meta = {"method": method, "params": OLD[method], "settings": OLD[method] | {"rows": 9}}
    write_run_toml(tmp_path, meta, coterie_run=FORMAT, status="done")
    found = runs.peek(tmp_path)
    assert found["params"] == NEW[method] and found["settings"] == NEW[method] | {"rows": 9}
    began = stored_params(registry.get(method), found)
    assert NEW[method].items() <= ({"n_clusters": 3} | began).items()


@pytest.mark.parametrize("method", RENAMED)
def test_a_line_of_an_earlier_version_is_the_same_run(method, tmp_path):
    ledger = Ledger(tmp_path / "l.jsonl")
    line = dict.fromkeys(KEYS) | {"method": method, "seed": 0, "params": OLD[method]}
    ledger.append(line)
    assert ledger.read()[0]["params"] == NEW[method]
    assert ledger.find(line | {"params": NEW[method]})
    other = NEW[method] | {"n_init": 9, "restarts": 9}
    assert ledger.find(line | {"params": other}) is None


def test_a_checkpoint_of_an_earlier_version_goes_on(tmp_path):
    Checkpoint(tmp_path, {"method": "cnet", **OLD["cnet"]}).save({}, {"step": 5})
    assert Checkpoint(tmp_path, {"method": "cnet", **NEW["cnet"]}).load()[1]["step"] == 5
    with pytest.raises(StateError, match="restarts was 2, now 9"):
        Checkpoint(tmp_path, {"method": "cnet", **NEW["cnet"], "restarts": 9}).load()


def test_the_constructor_knows_the_old_name():
    with pytest.raises(TypeError, match="CM has no parameter 'n_init'; did you mean restarts"):
        registry.get("cm")(3, n_init=4)
    with pytest.raises(TypeError, match="no parameter 'centers_init'; did you mean n_init"):
        registry.get("cnet")(3, centers_init=4)


@pytest.mark.parametrize("name", ["n_init", "restarts", "variance"])
def test_a_name_means_the_same_in_every_method(name):
    fields = [f for key in registry.METHODS for f in dataclasses.fields(registry.get(key))]
    meanings = {f.metadata["help"] for f in fields if f.name == name}
    assert len(meanings) == 1, meanings
