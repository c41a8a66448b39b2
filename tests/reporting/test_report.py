"""What the report says and draws, checked without a browser."""

import base64
import html
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

import fakes
from conftest import quick
from coterie import reporting
from coterie.reporting import (
    all_cards,
    cluster_cards,
    cluster_stats,
    comparison,
    encode,
    maps,
    row_pictures,
    sentences,
)
from coterie.reporting.page import breakable
from fakes import ATTACK


@pytest.fixture(autouse=True)
def quick_map(monkeypatch):
    """t-SNE takes seconds; its own test is below."""
    monkeypatch.setattr(maps, "tsne_map", lambda *args, **kwargs: None)


def made(dataset, k, cls=fakes.FakeModel):
    return cls(k).fit(dataset.X)


def page(path):
    text = path.read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return text, json.loads(found[1])


def cluster_facts(z, labels, k=None, proba=None):
    class Model:
        n_clusters = k or labels.max() + 1
        labels_ = labels

        def transform(self, X):
            return X

    if proba is not None:
        Model.predict_proba = lambda self, X: proba
    dataset = fakes.Dataset(X=z, ids=range(len(z)), kind="vector", name="blobs")
    return cluster_stats.gather(Model(), dataset)


def blobs(centers, n=200, seed=0):
    rng = np.random.default_rng(seed)
    z = np.concatenate([c + rng.normal(size=(n, len(c))) for c in np.asarray(centers, float)])
    return z.astype(np.float32), np.repeat(np.arange(len(centers)), n)


def test_separate_groups_raise_no_doubt():
    f = cluster_facts(*blobs([[0, 0], [20, 0], [0, 20]]))
    assert sentences.warnings(f) == []
    assert sentences.warnings(f, notes=["cut short"])[0]["text"] == "Cut short."
    assert [f.verdict(j) for j in range(3)] == ["clear"] * 3
    assert sentences.headline(f) == "600 rows in 3 clusters"


def test_one_crowd_cut_in_two_is_noticed():
    z, labels = blobs([[0, 0], [30, 0]], n=400)
    labels = np.where((labels == 0) & (z[:, 1] > 0), 2, labels)
    f = cluster_facts(z, labels)
    assert any("no gap to cluster 2" in r for r in f.reasons[0])
    assert f.reasons[1] == []


def test_empty_collapsed_and_equal_groups_are_named():
    z, labels = blobs([[0, 0], [30, 0]], n=300)
    labels[300:] = 0
    labels[-4:] = 1
    f = cluster_facts(z, labels, k=4)
    text = " ".join(w["text"] for w in sentences.warnings(f))
    assert "Clusters 2 and 3 got no row at all." in text
    assert "collapsed" in text and "small: 4 rows" in text
    same = cluster_facts(np.zeros((40, 2), np.float32), np.arange(40) % 2)
    assert any("same centre" in w["text"] for w in sentences.warnings(same))


def test_torn_members_name_the_rival():
    z, labels = blobs([[0, 0], [20, 0], [0, 20]])
    proba = np.full((600, 3), 0.0)
    proba[np.arange(600), labels] = 1.0
    proba[:100] = [0.5, 0.05, 0.45]
    f = cluster_facts(z, labels, proba=proba)
    assert f.reasons[0] == [
        "50\u00a0% of its members could belong to another cluster, mostly cluster 2"
    ]
    assert f.rival[0] == 2 and f.rivalry[0] == pytest.approx(0.9)


def test_flat_assignments_are_said_to_be_flat():
    z, labels = blobs([[0, 0], [20, 0], [0, 20]])
    proba = np.full((600, 3), 0.33)
    f = cluster_facts(z, labels, proba=proba)
    assert any("almost equal" in w["text"] for w in sentences.warnings(f))


def test_members_do_not_overlap():
    z, labels = blobs([[0, 0], [4, 0]], n=30)
    d = np.stack([np.linalg.norm(z - c, axis=1) for c in ([0, 0], [4, 0])], 1)
    f = cluster_facts(z, labels, proba=np.exp(-d) / np.exp(-d).sum(1, keepdims=True))
    picked = cluster_cards.members(f, 0, 12, 6, 6)
    rows = [row for part in picked.values() for row in part]
    assert len(rows) == len(set(rows)) == 24 and all(labels[rows] == 0)
    centre = z[labels == 0].mean(0)
    typical = np.linalg.norm(z[picked["typical"]] - centre, axis=1).max()
    others = np.setdiff1d(np.flatnonzero(labels == 0), picked["typical"])
    assert typical <= np.linalg.norm(z[others] - centre, axis=1).min()


def test_effect_size_by_hand_and_sparse_equals_dense():
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.5)
    labels = np.arange(60) % 3
    X[labels == 1, 2] += 3
    d = cluster_cards.effect_sizes(X, labels, 4)
    a, b = X[labels == 1, 2], X[labels != 1, 2]
    pooled = np.sqrt((len(a) * a.var() + len(b) * b.var()) / 60)
    assert d[1, 2] == pytest.approx((a.mean() - b.mean()) / pooled)
    assert np.all(d[3] == 0)
    np.testing.assert_allclose(
        cluster_cards.effect_sizes(sp.csr_matrix(X), labels, 4), d, atol=1e-9
    )


def test_a_column_that_splits_cleanly_is_as_far_apart_as_can_be():
    labels = np.arange(30) % 2
    X = np.stack([labels, 1 - labels, np.full(30, 7), np.arange(30)], 1).astype(float)
    np.testing.assert_array_equal(
        cluster_cards.effect_sizes(X, labels, 2)[:, :3], [[-20, 20, 0], [20, -20, 0]]
    )
    card = cluster_cards.feature_card(
        X, labels, list("abcd"), cluster_cards.effect_sizes(X, labels, 2), 1
    )
    assert "a" in str(card) and "b" in str(card)


def test_rule_finds_the_box():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(800, 3))
    labels = ((X[:, 0] > 0.6) & (X[:, 2] <= 0.4)).astype(int)
    rule = cluster_cards.rule(
        X, labels, ["a", "b", "c"], cluster_cards.effect_sizes(X, labels, 2), 1
    )
    assert {(n, s) for n, s, _ in rule["tests"]} == {("a", ">"), ("c", "≤")}
    assert rule["covers"] > 0.95 and rule["precision"] > 0.95


def test_top_terms_find_each_topic():
    data = fakes.texts()
    terms = cluster_cards.top_terms(data.texts, data.labels, 5)
    for j, topic in enumerate(fakes.WORDS):
        assert {w for w, _ in terms[j]} <= set(fakes.WORDS[topic])
    assert terms[4] == []
    assert cluster_cards.top_terms(["the", "of"], np.array([0, 1]), 2) == [[], []]


def test_page_of_images(tmp_path):
    data = fakes.images()
    model = made(data, 10, fakes.FakeSpaces)
    path = reporting.write(tmp_path, model, data, labels=data.labels)
    assert path == tmp_path / "report.html" and list(tmp_path.iterdir()) == [path]
    text, packed = page(path)
    for part in (
        "doubts",
        "map-section",
        "clusters",
        "between",
        "spaces",
        "trust",
        "training",
        "evaluation",
        "use",
    ):
        assert f'id="{part}"' in text
    assert text.count("<article") == 10
    assert len(packed["paths"]) == 45
    labels = np.frombuffer(base64.b64decode(packed["labels"]), np.uint8)
    np.testing.assert_array_equal(labels, model.labels_)
    assert "evaluation only" in text and "recon" in text and "kl (train)" in text
    assert all("alt=" in img for img in re.findall(r"<img[^>]*>", text))


def test_page_loads_nothing_and_has_no_inline_style(tmp_path):
    data = fakes.images()
    text, _ = page(reporting.write(tmp_path, made(data, 10), data))
    assert "default-src 'none'" in html.unescape(text)
    links = re.findall(r'<[^<>]+ (?:src|href)="([^"]*)"', text)
    assert links and all(link.startswith(("data:image/", "#")) for link in links)
    assert "url(" not in text and "@import" not in text
    body = text[text.index("<body>") :]
    assert not re.search(r"<[^>]+ (style|on\w+)=", body[: body.index('id="data"')])
    assert 'id="evaluation"' not in text


@pytest.mark.parametrize("make, k", [(fakes.images, 10), (fakes.texts, 4), (fakes.table, 3)])
def test_user_text_is_escaped(tmp_path, make, k):
    data = make(attack=True)
    model = made(data, k)
    text, _ = page(reporting.write(tmp_path, model, data, labels=data.labels))
    assert ATTACK not in text
    assert text.count("<script") == 2


def test_same_seed_same_bytes(tmp_path):
    data = fakes.table()
    model = made(data, 3)
    a = reporting.write(tmp_path / "run", model, data, out=tmp_path / "a.html").read_bytes()
    assert reporting.write(tmp_path / "run", model, data, out=tmp_path / "b.html").read_bytes() == a


def test_many_groups_fold_and_empty_groups_have_cards(tmp_path):
    z, labels = blobs(np.random.default_rng(1).normal(size=(60, 5)) * 20, n=10)
    model = fakes.FakeModel(60).fit(z)
    model.labels_ = np.where(labels == 7, 8, labels)
    data = fakes.Dataset(X=z, ids=range(len(z)), kind="vector", name="many")
    text, _ = page(reporting.write(tmp_path, model, data))
    assert text.count("<details") == 60
    assert "Cluster 7 got no row at all" in text


def test_only_the_own_classes_get_the_names_of_the_data_set(tmp_path):
    data = fakes.table()
    model = made(data, 3)
    assert "Grignolino" in reporting.write(tmp_path, model, data, labels=data.labels).read_text()
    other = np.arange(len(data)) % 3
    assert "Grignolino" not in reporting.write(tmp_path, model, data, labels=other).read_text()


def test_wrong_number_of_labels_is_refused(tmp_path):
    data = fakes.table()
    with pytest.raises(ValueError, match=r"\(5,\).*178 rows"):
        reporting.write(tmp_path, made(data, 3), data, labels=np.zeros(5))


def test_sprites_keep_the_budget_and_the_order():
    rng = np.random.default_rng(0)
    X = np.zeros((3000, 20, 20), np.uint8)
    X[np.arange(3000), rng.integers(0, 20, 3000)] = 255  # noise-like, hard to pack
    canvas = row_pictures.Canvas(X)
    whole = row_pictures.sprites(X, canvas)
    assert whole["step"] == 1 and (whole["width"], whole["height"]) == (20, 20)
    raw = base64.b64decode(whole["sheets"][0].split(",")[1])
    sheet = np.asarray(Image.open(io.BytesIO(raw)).convert("L"))
    row, c, s = 1234, whole["columns"], 20
    tile = sheet[row // c * s : row // c * s + s, row % c * s : row % c * s + s]
    np.testing.assert_array_equal(tile, X[row])
    tight = row_pictures.sprites(X, canvas, budget=20_000)
    assert sum(map(len, tight["sheets"])) < 26_000 and tight["step"] >= 1


@pytest.mark.parametrize("shape", [(100, 60, 3), (30, 90), (8, 8)])
def test_hover_pictures_have_the_shape_of_the_rows_and_no_bars(shape):
    X = np.full((50, *shape), 255, np.uint8)
    found = row_pictures.sprites(X, row_pictures.Canvas(X))
    tile, row = np.array([found["height"], found["width"]]), np.array(shape[:2])
    np.testing.assert_allclose(tile / tile.max(), row / row.max(), atol=0.02)
    raw = base64.b64decode(found["sheets"][0].split(",")[1])
    sheet = np.asarray(Image.open(io.BytesIO(raw)).convert("L"))
    assert sheet[: tile[0], : 20 * tile[1]].min() > 250  # twenty tiles side by side, all white


def test_colour_and_float_pictures():
    rng = np.random.default_rng(0)
    color = row_pictures.Canvas(rng.random((4, 9, 7, 3)))
    assert color.is_color and color.draw(rng.random((2, 9, 7, 3)))[0].mode == "RGB"
    one = row_pictures.Canvas(np.zeros((4, 6, 6, 1), np.uint8))
    assert one.draw(np.full((1, 6, 6, 1), 255, np.float32))[0].getpixel((0, 0)) == 255
    wide = row_pictures.Canvas(rng.normal(size=(4, 200, 100)))
    assert wide.draw(rng.normal(size=(1, 200, 100)))[0].size == (48, 96)


def test_dark_rows_are_drawn_dark_whatever_lies_beside_them():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.random((5, 6, 6)), 255 * rng.random((5, 6, 6))])
    for canvas in (row_pictures.Canvas(X), row_pictures.Canvas(X.astype(np.uint8))):
        assert canvas.pixels(X[:5]).max() <= 1  # alone, or with bright ones
        np.testing.assert_array_equal(canvas.pixels(X[:5]), canvas.pixels(X)[:5])


def test_maps_are_placed_and_packed():
    z, labels = blobs([[0, 0, 0], [30, 0, 0]], n=50)
    xy = maps.pca_map(z)
    assert abs(xy[labels == 0, 0].mean() - xy[labels == 1, 0].mean()) > 20
    grid = maps.quantize([[0, 0], [2, 1]])
    assert grid.tolist() == [[0, 49151], [65535, 16384]]
    assert maps.quantize([[1, 1], [1, 1]]).tolist() == [[32768, 32768]] * 2
    assert encode.pack_ids(range(3)) is None and encode.pack_ids(["0", "2"]) == ["0", "2"]


def test_nearest_rows_are_the_models_own_or_those_of_the_embedding():
    z = np.array([[0.0], [1.0], [3.0], [7.0], [15.0], [31.0], [63.0]], np.float32)
    found = maps.nearest_rows(None, z)
    assert found.dtype == np.uint32 and found[0].tolist() == [1, 2, 3, 4, 5]
    assert found[6].tolist() == [5, 4, 3, 2, 1]
    own = np.tile(np.arange(7, dtype=np.int32)[::-1], (7, 1))[:, :6]
    assert maps.nearest_rows(own, z)[0].tolist() == [6, 5, 4, 3, 2]
    assert maps.nearest_rows(own + 100, z)[0].tolist() == [1, 2, 3, 4, 5]  # of other rows
    assert maps.nearest_rows(own, z[:1]) is None and maps.nearest_rows(own, z, most=3) is None


def test_tsne_keeps_islands_apart_and_repeats(monkeypatch):
    pytest.importorskip("openTSNE")
    monkeypatch.undo()
    z, labels = blobs([[0, 0, 0], [40, 0, 0], [0, 40, 0]], n=60)
    a, b = (maps.tsne_map(z, seed=1, rows=90) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    centre = np.stack([a[labels == j].mean(0) for j in range(3)])
    nearest = np.linalg.norm(a[:, None] - centre, axis=2).argmin(1)
    assert (nearest == labels).mean() > 0.98


def test_tsne_of_few_rows_and_of_rows_on_a_line(monkeypatch):
    pytest.importorskip("openTSNE")
    monkeypatch.undo()
    z = np.random.default_rng(0).normal(size=(40, 60)).astype(np.float32)
    assert maps.tsne_map(z).shape == (40, 2)  # fewer rows than the 50 directions that are kept
    assert maps.tsne_map(z[:, :1]) is None


def results(attack=False):
    data = fakes.table()
    z = fakes.FakeModel(3).fit(data.X).transform(data.X)
    out = []
    for method in ("dekm", ATTACK if attack else "idec"):
        for seed in range(2):
            labels = np.random.default_rng(seed).permutation(3)[data.labels]
            out.append(
                {
                    "name": "wine", "method": method, "seed": seed, "params": {"k": 3},
                    "scores": {"acc": 0.5 + seed / 10}, "label_free": {"silhouette": 0.3},
                    "seconds": {"train": 2.0}, "labels": labels, "embedding": z,
                }
            )  # fmt: skip
    return out


def test_comparison_page(tmp_path):
    text, packed = page(reporting.write_comparison(results(attack=True), tmp_path / "c.html"))
    assert ATTACK not in text and text.count("<script") == 2
    assert len(packed["maps"]) == 4
    assert "evaluation only" in text and "0.550" in text
    with pytest.raises(ValueError, match="0 results"):
        reporting.write_comparison([], tmp_path / "d.html")
    other = results()
    other[0]["labels"] = other[0]["labels"][:5]
    with pytest.raises(ValueError, match="same data"):
        reporting.write_comparison(other, tmp_path / "d.html")


def test_matching_renames_groups():
    reference = np.array([0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(
        comparison.match(np.array([2, 2, 0, 0, 1, 1]), reference), reference
    )


def test_raw_kmeans_points_at_a_merger():
    z, truth = blobs([[0, 0], [9, 0], [0, 9]], n=100)
    merged = np.minimum(truth, 1)
    f = cluster_facts(z, merged)
    assert cluster_stats.raw_parts(f, truth) == {1: (0.5, 0.5)}
    assert "Look first at cluster 1" in sentences.first_look(cluster_stats.raw_parts(f, truth))
    assert sentences.first_look({}) == ""


def test_a_second_opinion_is_shown_where_two_results_disagree(tmp_path):
    z = blobs([[0, 0], [20, 0], [0, 20]])[0]
    dataset = fakes.Dataset(X=z, ids=range(len(z)), kind="vector", name="blobs")
    model = made(dataset, 3)
    model.chosen_, model.second_, model.agreement_ = "merged", "direct", 0.95
    model.candidates_ = {"merged": model.labels_, "direct": np.arange(len(z)) % 3}
    text, _ = page(reporting.write(tmp_path, model, dataset))
    assert "A second opinion" not in text
    model.agreement_ = 0.2
    text, _ = page(reporting.write(tmp_path, model, dataset))
    assert "A second opinion" in text and "clusters of about equal size" in text
    assert "agreement is 0.20" in text and text.count("<th>A") == 3


def test_a_rule_asks_each_thing_once(monkeypatch):
    tests = [("a", ">", 2.5), ("a", ">", 6.5), ("b", "≤", 4.0), ("b", "≤", 3.0), ("b", ">", 1.0)]
    found = cluster_cards.tightest(tests)
    assert found == [("a", ">", 6.5), ("b", "≤", 3.0), ("b", ">", 1.0)]
    # none of the low rows belong, half of the middle, all of the high: the tree cuts above twice
    X = np.repeat([0.0, 3.0, 8.0], [300, 40, 40])[:, None]
    labels = np.r_[np.zeros(300), np.arange(40) % 2, np.ones(40)].astype(int)
    asked = []
    real = cluster_cards.tightest
    monkeypatch.setattr(cluster_cards, "tightest", lambda t: asked.extend(t) or real(t))
    rule = cluster_cards.rule(X, labels, ["a"], cluster_cards.effect_sizes(X, labels, 2), 1)
    assert [(c, sign) for c, sign, _ in asked] == [(0, ">"), (0, ">")]
    assert rule["tests"] == [("a", ">", pytest.approx(5.5, abs=0.2))]


def test_two_columns_of_one_name_and_two_bounds_that_are_near(tmp_path):
    tests = [("dose", ">", 2.501), ("dose", "≤", 2.504), ("dose", "≤", 7.0)]
    assert all_cards.numbers([v for _, _, v in tests]) == ["2.501", "2.504", "7"]
    assert all_cards.numbers([2.5, 6.5]) == ["2.50", "6.50"]
    # both columns are asked though they share a name
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(800, 2))
    labels = ((X[:, 0] > 0.6) & (X[:, 1] > 0.4)).astype(int)
    d = cluster_cards.effect_sizes(X, labels, 2)
    assert len(cluster_cards.rule(X, labels, ["a", "a"], d, 1)["tests"]) == 2


@pytest.mark.parametrize(("n", "k"), [(40, 1), (3, 1), (3, 2), (3, 3), (2, 2)])
def test_pages_of_one_group_and_of_few_rows(tmp_path, n, k):
    X = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    dataset = fakes.Dataset(X=X, ids=range(n), kind="vector", name="few")
    text, packed = page(reporting.write(tmp_path, quick("kmeans", k).fit(X), dataset))
    assert packed["n"] == n and text.count("<article") == k
    assert "nan" not in re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert "less than a quarter" not in text  # of three rows a cluster has a third at least


def test_numbers_keep_their_percent_sign_and_empty_groups_are_small(tmp_path):
    assert cluster_stats.percent(0.5) == "50\u00a0%" and " " not in cluster_stats.percent(0.0004)
    z = blobs([[0, 0], [30, 0]], n=30)[0]
    dataset = fakes.Dataset(X=z, ids=range(60), kind="vector", name="blobs")
    model = made(dataset, 2)
    model.n_clusters = 3
    text, _ = page(reporting.write(tmp_path, model, dataset))
    assert text.count('class="card bare"') == 1 and text.count('class="card"') == 2
    assert not re.search(r"\d %", re.sub(r"<(style|script).*?</\1>", "", text, flags=re.S))


def test_long_names_break_at_their_signs_and_are_never_cut_to_nothing():
    assert str(breakable("a_b<i>")) == "a_<wbr>b&lt;i&gt;"
    assert str(breakable("MeanCellVolume & ENSG0.1")) == (
        "Mean<wbr>Cell<wbr>Volume &amp; ENSG0.<wbr>1"
    )
    assert cluster_cards.clip("high " + "x" * 80, 60) == "high " + "x" * 55 + " …"
    assert cluster_cards.clip("one two three", 10) == "one two …"
