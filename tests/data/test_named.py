"""Named data sets and generators."""

import numpy as np
import pytest

import made_up
from coterie.data import DataError, available, describe, load
from coterie.data.sets import named, objects, stored, toys
from coterie.data.sets.variants import VARIANTS, uniformity
from made_up import USPS_CLASSES

SLOW = ("artifact-mnist", "objects")


def is_as_described(name):
    data, line = load(name), describe(name)
    assert data.X.shape == (line["rows"], *line["shape"])
    assert data.kind == line["kind"] and len(data.label_names) == line["classes"]
    assert len(np.unique(data.labels)) == line["classes"] and data.labels.dtype == np.int64
    assert data.recipe.shape == list(line["shape"]) and data.recipe.dtype == data.X.dtype.name
    if data.kind == "image" and data.X.dtype != np.uint8:
        assert data.X.min() >= 0 and data.X.max() == 1
    again = load(name, recipe=data.recipe)
    assert again.fingerprint() == data.fingerprint()


@pytest.mark.parametrize("name", [n for n in named.CATALOGUE if n not in SLOW])
def test_every_set_is_what_the_catalogue_says(name, made_up_sets):
    made_up_sets(name)
    is_as_described(name)


@pytest.mark.data
@pytest.mark.parametrize("name", stored.STORED)
def test_the_real_sets_are_what_the_catalogue_says(name, real_sets):
    real_sets(name)
    is_as_described(name)


def test_digits_are_divided_by_16_and_raw_rows_too():
    from sklearn.datasets import load_digits

    data = load("digits")
    np.testing.assert_array_equal(data.X, load_digits().images.astype(np.float32) / 16)
    np.testing.assert_array_equal(load(load_digits().images, recipe=data.recipe).X, data.X)


def test_raw_counts_are_read_like_the_fitted_ones(made_up_sets):
    folder = made_up_sets("worm_neuron_cells")
    data = load("worm_neuron_cells")
    raw = stored.read("worm_neuron_cells", folder).values
    np.testing.assert_array_equal(load(raw[:50], recipe=data.recipe).X, data.X[:50])
    with pytest.raises(DataError, match="2500 genes"):
        load(raw[:5, :100], recipe=data.recipe)


def test_other_sizes_and_other_labels(made_up_sets):
    made_up_sets("orl_faces", "gtsrb_test")
    said = []
    faces = load("orl", image_size=32, notice=said.append)
    assert faces.X.shape == (400, 32, 32) and faces.X.dtype == np.uint8 and said
    signs = load("gtsrb_test", label_column="superclass")
    assert len(np.unique(signs.labels)) == 6
    with pytest.raises(DataError, match="superclass"):
        load("gtsrb_test", label_column="super")


def test_usps_variants_have_the_published_sizes():
    published = {1500: 0.985, 1200: 0.991, 900: 0.998, 800: 0.999, 700: 1.0}
    for cap, index in published.items():
        assert round(uniformity(VARIANTS[f"usps{cap}"].sizes), 3) == index
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), USPS_CLASSES))
    for variant in VARIANTS.values():
        rows = variant.rows(labels)
        assert (np.diff(rows) > 0).all()
        np.testing.assert_array_equal(np.bincount(labels[rows]), variant.sizes)
    falling = VARIANTS["usps_15to1"].sizes
    order = np.argsort(-np.array(USPS_CLASSES), kind="stable")
    want = np.rint(1500 * 15 ** (-np.arange(10) / 9))
    np.testing.assert_allclose(np.array(falling)[order], want, atol=1)


@pytest.mark.data
def test_usps_has_the_classes_that_its_variants_are_cut_from(real_sets):
    labels = stored.read("usps", real_sets("usps")).labels
    assert tuple(np.bincount(labels)) == USPS_CLASSES


def test_the_artefact_is_the_first_pixel_and_nothing_else():
    data, plain = load("artifact-digits"), load("digits")
    values = np.array([0.1, 0.5, 0.9], np.float32)
    np.testing.assert_array_equal(data.X[:, 0, 0], values[data.labels])
    rest = np.ones((8, 8), bool)
    rest[0, 0] = False
    np.testing.assert_array_equal(data.X[:, rest], plain.X[:, rest])
    assert np.bincount(data.labels).min() > 500


def test_names_aliases_and_suggestions(tmp_path, monkeypatch):
    assert named.canonical("20News") == "20newsgroups"
    assert named.canonical("Fashion-MNIST") == "fashion_mnist"
    assert named.canonical("SYNTH-07") == "synth-7"
    assert named.canonical("./digits") is None
    with pytest.raises(DataError, match="Did you mean 'optdigits'"):
        describe("optdigit")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    said = []
    assert len(load("digits", notice=said.append)) == 1797 and "./digits" in said[0]


def test_where_sets_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    where = {line["name"]: line["where"] for line in available()}
    assert where["digits"] == where["synth-25"] == "built in"
    assert where["mnist"] == "to fetch" and where["coil20"] == "not found"
    with pytest.raises(DataError, match=r"coil20 was not found in .*; name the folder.*data_dir="):
        load("coil20")
    with pytest.raises(DataError, match=r"mnist was not found .*`coterie datasets --fetch mnist`"):
        load("mnist_test")
    with pytest.raises(DataError, match="does not exist"):
        load("coil20", data_dir=tmp_path / "nowhere")
    (tmp_path / "wholesale").mkdir()
    (tmp_path / "wholesale" / "wholesale.npz").write_bytes(b"broken")
    with pytest.raises(DataError, match="damaged"):
        load("wholesale")
    np.savez(tmp_path / "wholesale" / "wholesale.npz", data=np.ones((3, 6)), target=[0, 1, 1])
    with pytest.raises(DataError, match=r"3 rows .* 440 were expected"):
        load("wholesale", data_dir=tmp_path)


def test_the_folder_that_is_named_first_is_looked_into_first(tmp_path, monkeypatch):
    given, variable, user = (tmp_path / name for name in ("given", "variable", "user"))
    monkeypatch.setattr(stored, "user_folder", lambda: user)
    for folder in (user, variable, given):
        folder.mkdir()
        made_up.write("wholesale", folder)
        if folder == variable:
            monkeypatch.setenv("COTERIE_DATA", str(variable))
        data_dir = given if folder == given else None
        assert describe("wholesale", data_dir)["where"] == str(folder / "wholesale")
    (given / "wholesale" / "wholesale.npz").unlink()
    assert describe("wholesale", given)["where"] == str(variable / "wholesale")


# generators ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw", [toys.blobs8, toys.cnet_toy, toys.synth, lambda seed: objects.objects(30, seed)]
)
def test_generators_follow_their_seed(draw):
    (X, y), (again, labels), (other, _) = draw(seed=3), draw(seed=3), draw(seed=4)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert not np.array_equal(X, other)


def test_blobs_stand_where_the_paper_puts_them():
    X, y = toys.blobs8(40_000)
    for k, center in enumerate(toys.BLOB_CENTERS):
        np.testing.assert_allclose(X[y == k].mean(0), center, atol=2e-3)
        np.testing.assert_allclose(X[y == k].std(0), 0.014, rtol=0.05)


def test_synth_adds_axes_without_clusters():
    X, y = toys.synth(3)
    assert X.shape == (12000, 5) and np.bincount(y).tolist() == [3000] * 4
    np.testing.assert_array_equal(toys.synth(1)[0], X[:, :3])
    assert load("synth-0").X.shape == (12000, 2)
    means = np.stack([X[y == k].mean(0) for k in range(4)])
    assert (np.abs(np.abs(means[:, :2]) - 2) < 0.05).all() and (np.abs(means[:, 2:]) < 0.2).all()


def test_toy_is_standardised():
    X, y = toys.cnet_toy()
    np.testing.assert_allclose(X.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(X.std(0), 1, atol=1e-5)
    assert len(X) == 2000 and len(np.unique(y)) == 5


def test_objects_differ_by_shape_and_not_only_by_light():
    from sklearn.cluster import KMeans
    from sklearn.metrics import normalized_mutual_info_score

    X, y = objects.objects(600)
    assert X.shape == (600, 64, 64) and X.dtype == np.uint8 and np.bincount(y).tolist() == [200] * 3
    for shape in range(3):
        assert X[y == shape].std(axis=0).max() > 20  # the light changes within a shape
    rows = X.reshape(600, -1) / np.float32(255)
    labels = KMeans(3, n_init=5, random_state=0).fit_predict(rows)
    assert normalized_mutual_info_score(y, labels) > 0.99


def test_coil_is_resized_once_to_the_fitted_size(made_up_sets):
    made_up_sets("coil20")
    fitted = load("coil20", image_size=64, notice=lambda m: None)
    again = load("coil20", recipe=fitted.recipe, notice=lambda m: None)
    assert again.fingerprint() == fitted.fingerprint()
