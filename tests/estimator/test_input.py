"""What comes in: bad input gets a clear error with both numbers, odd but good input works."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conftest import quick
from coterie import DEC, KMeans, load_data
from coterie import load as load_model
from coterie.data.chunks import chunk_rows
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling

BAD = {
    "fewer rows than clusters": (np.ones((5, 3)), 8, r"n_samples=5 .* n_clusters=8; lower"),
    "no cluster": (np.ones((5, 3)), 0, "n_clusters=0.*at least 1"),
    "one row": (np.ones((1, 3)), 1, "1 sample"),
    "nan": (np.array([[1, np.nan], [2, 3], [4, 5]]), 2, "NaN"),
    "infinity": (np.array([[1, np.inf], [2, 3], [4, 5]]), 2, "infinity"),
    "beyond float32": (np.array([[1, 1e39], [2, 3], [4, 5]]), 2, "beyond 1.8e19.*divide"),
    "strings": (np.array([["a", "b"], ["c", "d"]]), 2, "could not convert|[Nn]umeric"),
    "one dimension": (np.arange(5.0), 2, "Reshape your data|2D"),
    "five dimensions": (np.ones((4, 2, 2, 2, 2)), 2, "dim 5"),
}


@pytest.mark.parametrize("key", ["kmeans", "dec"])
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(key, case):
    X, k, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        quick(key, k).fit(X)


def test_ragged_images_are_refused():
    images = [np.ones((8, 8)), np.ones((8, 9))]
    with pytest.raises(ValueError, match=r"inhomogeneous|same shape|sequence"):
        quick("kmeans", 2).fit(images)


def test_other_shapes_at_predict_name_both(digit_images):
    model = quick("kmeans").fit(digit_images[0][:50])
    with pytest.raises(ValueError, match=r"\(8, 7\).*\(8, 8\)"):
        model.predict(np.ones((3, 8, 7)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((3, 8, 8), np.nan))
    with pytest.raises(ValueError, match=r"beyond 1\.8e19"):
        model.predict(np.full((3, 8, 8), 1e39))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lr": 0}, r"DEC\(lr=0\): must be more than 0"),
        ({"init": "magic"}, r"init='magic'\): choose one of 'pretrained', 'random'"),
        ({"net": "transformer"}, "choose 'auto', 'mlp', 'conv'"),
        ({"batch_size": "many"}, "must be a whole number, not str"),
        ({"batch_size": 32.0}, "must be a whole number, not float"),
        ({"n_clusters": 2.5}, r"DEC\(n_clusters=2.5\): must be a whole number, not float"),
        ({"n_clusters": None}, "must be a whole number, not NoneType"),
        ({"hidden": 512}, "must be a tuple of numbers or None, not int"),
        ({"hidden": (0,)}, r"hidden=\(0,\)\): must be at least 1"),
        ({"hidden": ("a", "b")}, "each entry must be a whole number"),
        ({"hidden": (8.5,)}, "each entry must be a whole number"),
        ({"lr": float("nan")}, r"lr=nan\): must be finite"),
        ({"time_budget": float("inf")}, r"time_budget=inf\): must be finite"),
        ({"batch_size": True}, "must be a whole number, not bool"),
        ({"optimizer": "adamw"}, "choose one of 'adam', 'sgd'"),
        ({"pretrain_epochs": "2"}, "must be a number or None, not str"),
        ({"random_state": 1.5}, "random_state=1.5: must be a whole number"),
        ({"augment": "affine"}, "turns images"),
        ({"net": "conv"}, "needs images"),
    ],
)
def test_bad_parameters(params, message, blobs):
    with pytest.raises((ValueError, TypeError), match=message):
        quick("dec", **params).fit(blobs[0])


@settings(max_examples=30, deadline=None)
@given(
    shape=st.sampled_from([(12, 3), (9, 1), (10, 4, 4), (8, 4, 5, 3)]),
    dtype=st.sampled_from(["float16", "float32", "float64", "uint8", "int64", "int16", "bool"]),
    order=st.sampled_from(["C", "F", "strided", "reversed"]),
    readonly=st.booleans(),
    data=st.data(),
)
def test_any_array_of_numbers_works(shape, dtype, order, readonly, data):
    values = st.floats(-100, 100, width=16) if dtype.startswith("float") else None
    X = data.draw(hnp.arrays(dtype, shape, elements=values))
    if order == "F":
        X = np.asfortranarray(X)
    elif order == "strided":
        X = np.repeat(X, 2, axis=0)[::2]
    elif order == "reversed":
        X = X[::-1]
    X = X.copy() if readonly and order == "C" else X
    before = X.copy()
    if readonly:
        X.setflags(write=False)
    model = KMeans(2, random_state=0, n_init=1).fit(X)
    assert np.array_equal(X, before)
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.array_equal(model.predict(np.ascontiguousarray(X)), model.labels_)


def test_pixels_in_another_unit_are_told(digit_images, recwarn):
    pixels = digit_images[0][:50]
    fractions = pixels / np.float32(255)
    for fitted, other in ((pixels, fractions), (fractions, pixels)):
        model = quick("kmeans").fit(fitted)
        model.predict(fitted[:5])
        assert not recwarn
        with pytest.warns(UserWarning, match="new rows reach .* the fitted ones"):
            model.predict(other)


def test_row_order_does_not_matter_to_predict(blobs):
    model = quick("dec").fit(blobs[0])
    order = np.random.default_rng(0).permutation(len(blobs[0]))
    assert np.array_equal(model.predict(blobs[0][order]), model.labels_[order])


def test_frames_keep_their_columns(blobs):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(blobs[0], columns=list("abcdef"))
    model = quick("kmeans").fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("abcdeg".replace("g", "f"))[::-1]])
    tensor = torch.from_numpy(blobs[0])
    assert np.array_equal(quick("kmeans").fit(tensor).labels_, model.labels_)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_that_are_no_numbers_are_named(library):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2, 3], "b": [4, 5, 6], "flag": [True, False, True]})
    columns = {
        "word": ["x", "y", "x"],
        "when": pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"]),
        "group": pd.Series([1, 2, 1]).astype("category"),
    }
    turn = pytest.importorskip("polars").from_pandas if library == "polars" else lambda f: f
    for name, values in columns.items():
        if (library, name) == ("polars", "group"):
            continue  # polars reads it as plain numbers
        with pytest.raises(
            ValueError, match=rf"1 of 4 columns that are not numbers: {name}\. Turn"
        ):
            KMeans(2).fit(turn(frame.assign(**{name: values})))
    assert len(KMeans(2).fit(turn(frame)).labels_) == 3
    if library == "pandas":
        assert len(KMeans(2).fit(frame.astype(object)).labels_) == 3


def test_channels_first_is_turned_with_a_warning():
    images = torch.rand(60, 3, 16, 16)
    with pytest.warns(UserWarning, match=r"channels moved .* \(60, 16, 16, 3\)"):
        model = KMeans(2, n_init=1, random_state=0).fit(images)
    assert (model.input_shape_, model.row_shape_) == ((16, 16, 3), (3, 16, 16))
    turned = images.permute(0, 2, 3, 1)
    assert np.array_equal(model.predict(turned), model.labels_)
    assert np.array_equal(KMeans(2, n_init=1, random_state=0).fit(turned).labels_, model.labels_)


def test_what_load_data_returns_can_be_fitted():
    data = load_data("digits")
    model = KMeans(10, n_init=1, random_state=0).fit(data)
    assert np.array_equal(model.labels_, model.predict(data.X))
    assert np.array_equal(model.predict(data), model.labels_)


def test_memory_maps_are_streamed_and_give_the_same_answer(blobs, tmp_path):
    np.save(tmp_path / "x.npy", blobs[0])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert Rows(mapped, fit_scaling(mapped, "auto")).streamed
    for key in ("kmeans", "dec"):
        a, b = quick(key).fit(mapped), quick(key).fit(blobs[0])
        assert np.array_equal(a.labels_, b.labels_)
        assert np.array_equal(a.predict(mapped), a.labels_)


def test_sampled_variance_is_that_of_the_scaled_rows(blobs, tmp_path):
    X = 3 * blobs[0]
    np.save(tmp_path / "x.npy", X)
    for source in (X, np.load(tmp_path / "x.npy", mmap_mode="r")):
        rows = Rows(source, fit_scaling(source, "none"))
        assert rows.sampled_variance() == pytest.approx(X.var(0).sum(), rel=1e-4)


def test_scaling_choices():
    rng = np.random.default_rng(0)
    same_unit = rng.normal(50, [10, 20, 30], (200, 3))
    mixed = rng.normal(0, [1, 5000, 0.01], (200, 3))
    assert fit_scaling(same_unit, "auto").choice == "global"
    assert fit_scaling(mixed, "auto").choice == "standard"
    scaled = fit_scaling(mixed, "auto").apply(mixed)
    np.testing.assert_allclose(scaled.std(0), 1, rtol=1e-3)
    images = rng.integers(0, 256, (10, 8, 8), dtype=np.uint8)
    scaled = fit_scaling(images, "auto").apply(images)
    assert scaled.min() >= 0 and 0.9 < scaled.max() <= 1
    for x in (images, mixed):
        found = fit_scaling(x, "symmetric")
        assert (found.apply(x).min(), found.apply(x).max()) == pytest.approx((-1, 1))
        np.testing.assert_allclose(found.undo(found.apply(x)), x, atol=1e-2)
    with pytest.raises(ValueError, match="symmetric"):
        fit_scaling(sp.csr_matrix(images.reshape(10, -1)), "symmetric")
    np.testing.assert_allclose(
        fit_scaling(mixed, "auto").undo(fit_scaling(mixed, "auto").apply(mixed)),
        mixed,
        rtol=1e-3,
        atol=1e-3,
    )


def test_statistics_of_large_rows_take_few_at_a_time():
    images = np.zeros((256, 128, 128, 3), np.uint8)  # 12.6 MB, 100 MB as float64
    assert chunk_rows((3000, 4000, 3)) == 1
    tracemalloc.start()
    fit_scaling(images, "auto")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * images.nbytes


def test_small_numbers_that_share_a_bound_do_not_share_a_unit(blobs):
    noise = np.random.default_rng(0).uniform(-0.9, 0.9, (len(blobs[0]), 1))
    small = 1e-4 * blobs[0] / np.abs(blobs[0]).max()
    assert fit_scaling(np.hstack([small, noise]), "auto").choice == "standard"
    assert fit_scaling(small / np.abs(small).max(), "auto").choice == "global"
    assert fit_scaling(np.zeros((4, 3)), "auto").choice == "global"


@pytest.mark.parametrize("key", ["kith", "feature_kmeans", "kmeans"])
def test_the_unit_of_a_table_does_not_matter(key, blobs):
    one, tiny = (quick(key, 3).fit(unit * blobs[0]) for unit in (1.0, 1e-9))
    assert len(np.unique(tiny.labels_)) == len(np.unique(one.labels_)) > 1
    assert (one.labels_ == tiny.labels_).mean() > 0.95


def test_entries_in_two_halves_are_one_number():
    rng = np.random.default_rng(0)
    whole = sp.csr_matrix((rng.random((60, 8)) * (rng.random((60, 8)) < 0.4)).astype(np.float32))
    indices = np.repeat(whole.indices, 2)
    halves = sp.csr_matrix((np.repeat(whole.data / 2, 2), indices, 2 * whole.indptr), whole.shape)
    one, two = (quick("dec", 3).fit(X) for X in (whole, halves))
    np.testing.assert_array_equal(one.predict_proba(whole), two.predict_proba(halves))
    assert halves.nnz == 2 * whole.nnz  # the user's matrix is as it was


def test_bfloat16_is_read(blobs):
    X = torch.from_numpy(blobs[0]).bfloat16()
    model = quick("kmeans", 3).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.predict(X.float().numpy()))


@pytest.mark.parametrize("key", ["spectral", "leiden", "umap_gmm", "kmeans"])
def test_a_parameter_set_after_the_fit_leaves_the_model_alone(key, blobs):
    model = quick(key, 3).fit(blobs[0])
    before = model.predict_proba(blobs[0])
    np.testing.assert_array_equal(model.set_params(n_clusters=2).predict_proba(blobs[0]), before)


def test_a_table_in_mixed_units_is_not_ruled_by_its_largest_column():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 300)
    X = np.c_[y + rng.normal(0, 0.1, 300), rng.normal(0, 5000, 300)]
    labels = KMeans(2, random_state=0).fit_predict(X)
    assert max(np.mean(labels == y), np.mean(labels != y)) > 0.95


@pytest.mark.parametrize("kind", ["array", "map", "frame", "csv", "parquet"])
def test_columns_far_from_zero_keep_their_content(kind, tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 5000)  # more rows than a CSV file is read in at once
    X = np.c_[1.7e9 + 60 * y + rng.normal(0, 5, len(y)), rng.normal(0, 5, len(y))]
    frame = pd.DataFrame(X, columns=["when", "noise"])
    np.save(tmp_path / "x.npy", X)
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    source = {
        "array": X,
        "map": np.load(tmp_path / "x.npy", mmap_mode="r"),
        "frame": load_data(frame),
        "csv": load_data(tmp_path / "x.csv"),
        "parquet": load_data(tmp_path / "x.parquet"),
    }[kind]
    model = KMeans(2, random_state=0).fit(source)
    assert max(np.mean(model.labels_ == y), np.mean(model.labels_ != y)) > 0.99
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert np.array_equal(again.predict(source), model.labels_)
    if isinstance(source, np.ndarray):
        return
    # one row alone has no range that could tell: its type is that of the fitted rows
    row = {"frame": frame[:1], "csv": tmp_path / "1.csv", "parquet": tmp_path / "1.parquet"}[kind]
    frame[:1].to_csv(tmp_path / "1.csv", index=False)
    frame[:1].to_parquet(tmp_path / "1.parquet")
    assert np.array_equal(load_data(row, recipe=source.recipe).X, X[:1])


def test_tables_stay_float32_where_it_is_enough(tmp_path):
    pd = pytest.importorskip("pandas")
    # the first 4096 rows of sorted times lie close together, all of them do not
    when = np.r_[1e9 + np.arange(4990.0), np.linspace(2e9, 3e9, 10)]
    frame = pd.DataFrame({"when": when, "constant": 1.0})
    frame.to_csv(tmp_path / "x.csv", index=False)
    for source in (frame, tmp_path / "x.csv"):
        assert load_data(source).X.dtype == np.float32
    assert fit_scaling(load_data(frame).X, "auto").shift.dtype == np.float32


def test_parameters_appear_once_everywhere():
    assert DEC(5).get_params()["n_clusters"] == 5
    assert DEC(5, lr=0.1).set_params(lr=0.2).lr == 0.2
    assert "lr=0.1" in repr(DEC(5, lr=0.1))
