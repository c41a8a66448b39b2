"""`coterie.report`, `coterie.compare` and `coterie.select_k`, as a Python user calls them."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import coterie
from conftest import quick
from coterie.reporting import maps


@pytest.fixture(autouse=True)
def quick_map(monkeypatch):
    monkeypatch.setattr(maps, "tsne_map", lambda *args, **kwargs: None)


def test_a_report_of_a_model_and_its_rows(blobs, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = blobs
    model = quick("kmeans").fit(X)
    path = coterie.report(model, X, tmp_path / "deep" / "page.html")
    assert path == tmp_path / "deep" / "page.html"
    assert "120 rows in 3 clusters" in path.read_text() and "coterie.load(" not in path.read_text()
    with pytest.raises(ValueError, match="overwrite=True"):
        coterie.report(model, X, path)
    frame = pd.DataFrame(X, columns=list("abcdef"), index=[f"r{i}" for i in range(120)])
    named = quick("kmeans").fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the frame was given: nothing is missing
        text = coterie.report(named, frame, path, labels=y, overwrite=True).read_text()
    assert "evaluation only" in text and "r17" in text
    assert re.search(r"(high|low) [a-f]\b", text)
    with pytest.raises(ValueError, match="is a folder"):
        coterie.report(model, X, tmp_path)


def test_models_are_compared_on_common_ground_first(blobs, tmp_path):
    X, y = blobs
    models = [quick("kmeans").fit(X), quick("kmeans", random_state=1).fit(X), quick("gmm").fit(X)]
    text = coterie.compare(models, X, tmp_path / "c.html", labels=y).read_text()
    assert "2 methods on data" in text and "kmeans, seed 1" in text
    assert text.index('id="fair"') < text.index('id="agreement"') < text.index('id="maps"')
    assert text.index('id="maps"') < text.index('id="free"')
    assert "neighbours kept" in text and "silhouette on the data" in text
    named = {"few": models[0], "more": models[1:]}
    assert "more, seed 1" in coterie.compare(named, X, tmp_path / "d.html").read_text()
    with pytest.raises(ValueError, match="120 rows, but X has 60"):
        coterie.compare(models, X[:60], tmp_path / "e.html")


def test_select_k_answers_from_python(blobs):
    found = coterie.select_k(blobs[0], range(2, 7), method="kmeans", n_init=2)
    assert found.answer == 3 and found.verdict().startswith("3 clusters")
    assert list(found.curves) == ["stability", "silhouette", "merge"]
    with pytest.raises(ValueError, match="at least two numbers"):
        coterie.select_k(blobs[0], [4], method="kmeans")
    with pytest.raises(ValueError, match="sees 96 of the 120 rows"):
        coterie.select_k(blobs[0], [2, 100], method="kmeans")


def test_the_public_names_stay_functions_whatever_was_imported(blobs):
    import coterie.number_of_clusters
    import coterie.reporting.page

    for name in ("report", "compare", "select_k"):
        assert callable(getattr(coterie, name)) and name in coterie.__all__


def test_counts_meet_k_means_in_logarithms():
    """One k-means for terminal, run.toml and page: on what the method saw."""
    from coterie.common_ground import kmeans_baseline

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    rates = np.where(np.arange(300) // 150 == y[:, None], 1.2, 0.4)
    X = rng.poisson(rates).astype(np.float32)
    X[:, 0] = rng.poisson(3000 * rng.random(120))  # a gene that is loud, and says nothing
    X = sp.csr_matrix(X)
    assert coterie.metrics.ari(y, quick("kmeans", 2).fit(X).labels_) < 0.5
    model = quick("feature_kmeans", 2, kind="counts").fit(X)
    beside = kmeans_baseline(quick("dec", 2).fit(X), X, model.labels_)
    assert beside.model.key == "feature_kmeans" and beside.model.kind_ == "counts"
    assert coterie.metrics.ari(y, beside.labels) > 0.9
    assert kmeans_baseline(model, X, model.labels_).model.kind == "counts"


@pytest.mark.parametrize("form", ["array", "sizes", "pillow", "paths", "names"])
def test_images_behind_an_encoder_are_shown_as_images(form, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    from PIL import Image

    from encoders.models import onnx_means

    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    sides = [6 + (form != "array") * (i % 3) for i in range(24)]
    arrays = [rng.integers(0, 60, (side, 8, 3), dtype=np.uint8) for side in sides]
    for i, array in enumerate(arrays):
        array[..., i % 2] += 180
        Image.fromarray(array).save(tmp_path / f"p{i}.png")
    paths = [tmp_path / f"p{i}.png" for i in range(24)]
    X = {
        "array": lambda: np.stack(arrays),
        "sizes": lambda: arrays,
        "pillow": lambda: [Image.open(path) for path in paths],
        "paths": lambda: paths,
        "names": lambda: [str(path) for path in paths],
    }[form]()
    model = coterie.KMeans(2, random_state=0, encoder=str(onnx_means(tmp_path / "m.onnx"))).fit(X)
    page = coterie.report(model, X, tmp_path / "r.html").read_text()
    assert page.count("data:image") > 20 and "feature 0" not in page
    assert "24 pictures in 2 clusters" in page
    assert ("p3.png" in page) == (form in ("paths", "names"))
    assert coterie.compare([model, model], X, tmp_path / "c.html").is_file()


def test_columns_before_an_encoder_are_shown(blobs, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(blobs[0], columns=[f"c{i}" for i in range(6)])
    model = coterie.KMeans(3, random_state=0, encoder=lambda rows: np.asarray(rows)[:, :3])
    page = coterie.report(model.fit(frame), frame, tmp_path / "r.html").read_text()
    assert "high c" in page or "low c" in page
