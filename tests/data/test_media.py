"""Folders of images and files of text."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn.feature_extraction.text import TfidfVectorizer

from coterie.data import DataError, Recipe, load
from coterie.data import folders as folders_module
from coterie.data.text import SETTINGS


@pytest.fixture
def said():
    return []


def save(path, array, **kwargs):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(array)).save(path, **kwargs)


@pytest.fixture
def folder(tmp_path):
    """Nine grey 6x8 pictures in two subfolders, written in another order than they sort."""
    rng = np.random.default_rng(0)
    pictures = {f"{'ba'[i % 2]}/{i}.png": rng.integers(0, 256, (6, 8), np.uint8) for i in range(9)}
    for name, picture in pictures.items():
        save(tmp_path / "pics" / name, picture)
    return tmp_path / "pics", pictures


def test_folder_keeps_names_order_and_pixels(folder, said):
    path, pictures = folder
    (path / "notes.txt").write_text("not a picture")
    (path / ".hidden.png").write_bytes(b"")
    data = load(path, notice=said.append)
    assert data.ids == sorted(pictures) and data.kind == "image" and data.X.dtype == np.uint8
    for row, name in zip(data.X, data.ids):
        np.testing.assert_array_equal(row, pictures[name])
    assert len(said) == 1 and "left out 1 file of" in said[0]
    labelled = load(path, label_column="folder", notice=said.append)
    assert labelled.label_names == ["a", "b"]
    assert [labelled.label_names[c] for c in labelled.labels] == [n[0] for n in data.ids]


def test_mixed_sizes_and_colour(folder, said):
    path, pictures = folder
    save(path / "z" / "big.png", np.full((12, 16, 3), (200, 10, 10), np.uint8))
    data = load(path, notice=said.append)
    assert data.X.shape == (10, 6, 8, 3) and data.recipe.shape == [6, 8, 3]
    np.testing.assert_array_equal(data.X[-1], np.broadcast_to([200, 10, 10], (6, 8, 3)))
    np.testing.assert_array_equal(data.X[0, ..., 1], pictures[data.ids[0]])
    assert any("1 of 10 images resized to 6x8" in m for m in said)
    assert any("9 grey" in m for m in said)
    assert load(path, image_size="4x5", notice=said.append).X.shape == (10, 4, 5, 3)


def test_images_without_a_usual_size_get_one_in_the_middle(tmp_path, said):
    for i, (h, w) in enumerate([(10, 30), (10, 30), (20, 20), (24, 22), (30, 20), (40, 26)]):
        save(tmp_path / f"{i}.png", np.full((h, w), i, np.uint8))
    assert load(tmp_path, notice=said.append).X.shape == (6, 22, 24)
    assert "6 of 6 images resized to 22x24" in said[0]


def test_photographs_are_shrunk_unless_a_size_is_given(tmp_path, said, monkeypatch):
    for i in range(3):
        save(tmp_path / f"{i}.png", np.full((300, 400, 3), 80 * i, np.uint8))
    data = load(tmp_path, notice=said.append)
    assert data.X.shape == (3, 48, 64, 3) and (data.X[1] == 80).all()
    assert len(said) == 1 and "3 of 3 images resized to 48x64; image_size=" in said[0]
    assert load(tmp_path, image_size="300x400", notice=said.append).X.shape == (3, 300, 400, 3)
    assert len(said) == 1
    monkeypatch.setattr(folders_module, "_MOST_BYTES", 3 * 300 * 400 * 3 * 2)  # enough for bytes
    with pytest.raises(DataError, match=r"3 images of 300x400 need .* GB as float32"):
        load(tmp_path, image_size="300x400")


def test_new_images_are_brought_to_the_fitted_form(folder, tmp_path, said):
    path, _ = folder
    recipe = load(path).recipe
    recipe.save(tmp_path / "run")
    recipe = Recipe.load(tmp_path / "run")
    np.testing.assert_array_equal(load(path, recipe=recipe).X, load(path).X)
    save(tmp_path / "new" / "c.png", np.full((20, 30, 3), 90, np.uint8))
    data = load(tmp_path / "new", recipe=recipe, notice=said.append)
    assert data.X.shape == (1, 6, 8) and (data.X == 90).all() and len(said) == 2
    one = load(tmp_path / "new" / "c.png", recipe=recipe, notice=said.append)
    assert one.ids == ["c.png"]
    fractions = load(np.zeros((2, 6, 8), np.float32)).recipe
    read = load(path, recipe=fractions).X
    assert read.dtype == np.float32 and read.max() <= 1
    with pytest.raises(DataError, match="fitted on vector"):
        load(path, recipe=load(np.zeros((2, 3))).recipe)


def test_options_for_tables_do_not_apply_to_images(folder):
    for option in ("columns", "id_column", "text_column"):
        with pytest.raises(DataError, match=f"{option}.* does not apply to images"):
            load(folder[0], **{option: "a"})
    with pytest.raises(DataError, match=r"'species'.*label_column=\"folder\""):
        load(folder[0], label_column="species")


def test_an_unreadable_image_is_named_or_skipped(folder, said):
    path, pictures = folder
    (path / "a" / "broken.png").write_bytes(b"no image")
    whole = (path / "a" / "1.png").read_bytes()
    (path / "a" / "cut.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"a/broken\.png.*skip_bad=True"):
        load(path)
    data = load(path, skip_bad=True, notice=said.append)
    assert data.ids == sorted(pictures)
    assert "2 unreadable" in said[0] and "a/broken.png" in said[0] and "a/cut.png" in said[0]
    np.testing.assert_array_equal(data.X[-1], pictures[data.ids[-1]])


def test_odd_kinds_of_pictures(tmp_path, said):
    deep = np.array([[0, 65535], [257, 514]], np.uint16)
    save(tmp_path / "1.png", deep)
    np.testing.assert_array_equal(load(tmp_path, notice=said.append).X[0], [[0, 255], [1, 2]])
    clear = np.zeros((2, 2, 4), np.uint8)  # black, but all of it transparent
    clear[0, 0] = (10, 20, 30, 255)
    save(tmp_path / "2.png", clear)
    X = load(tmp_path, notice=said.append).X
    assert X[1, 0, 0].tolist() == [10, 20, 30] and (X[1, 1] == 255).all()
    turned = Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    exif = turned.getexif()
    exif[0x0112] = 6
    (tmp_path / "t").mkdir()
    turned.save(tmp_path / "t" / "3.png", exif=exif)
    assert load(tmp_path / "t").X.shape == (1, 3, 2)
    save(tmp_path / "f" / "4.tif", np.zeros((2, 2), np.float32))
    with pytest.raises(DataError, match="floating-point"):
        load(tmp_path / "f")


def test_empty_folder_and_bad_size(tmp_path, folder):
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="no images"):
        load(tmp_path / "none")
    for size in ("big", 0, (3, 4, 5)):
        with pytest.raises(DataError, match="image_size"):
            load(folder[0], image_size=size)


# text ---------------------------------------------------------------------------------------

DOCS = ["Red apples and green apples", "the Pear, a red pear", "green tea", "apples, pears, tea"]


def test_txt_is_sklearns_tfidf_and_survives_saving(tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(DOCS) + "\n")
    data = load(tmp_path / "t.txt")
    want = TfidfVectorizer(dtype=np.float32, **SETTINGS).fit(DOCS)
    np.testing.assert_allclose(data.X.toarray(), want.transform(DOCS).toarray(), rtol=1e-6)
    assert data.texts == DOCS and data.ids == range(4) and data.X.dtype == np.float32
    data.recipe.save(tmp_path / "run")
    recipe = Recipe.load(tmp_path / "run")
    new = ["green pear unheard", "apples apples apples red"]
    np.testing.assert_allclose(
        load(new, recipe=recipe).X.toarray(), want.transform(new).toarray(), rtol=1e-6
    )
    again = load(tmp_path / "t.txt", recipe=recipe)
    assert again.fingerprint() == data.fingerprint()  # to the last bit


def test_more_words_can_be_asked_for():
    rng = np.random.default_rng(0)
    texts = [
        f"sun once{i} " + " ".join(f"w{j}" for j in rng.integers(2500, size=60)) for i in range(300)
    ]
    usual, wide = load(texts), load(texts, words=5000)
    assert usual.X.shape[1] == 2000 < wide.X.shape[1] <= 2500
    assert "sun" not in wide.recipe.vocabulary and "once7" not in wide.recipe.vocabulary
    assert "sun" in usual.recipe.vocabulary
    again = load(texts[:3], recipe=wide.recipe)
    assert (wide.X[:3] != again.X).nnz == 0
    alike = load(["one and the same text"] * 120, words=5000)
    assert alike.X.nnz
    with pytest.raises(DataError, match="words=0"):
        load(texts, words=0)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text("aábcdeé xyz\n", min_size=3, max_size=60), min_size=2, max_size=12))
def test_a_document_alone_gets_the_row_that_it_has_among_others(texts):
    texts = [f"word{i % 3} {text}" for i, text in enumerate(texts)]
    data = load(texts)
    for i in (0, len(texts) - 1):
        alone = load([texts[i]], recipe=data.recipe, notice=lambda m: None).X
        assert (alone != data.X[[i]]).nnz == 0


def test_empty_lines_leave_and_silent_documents_are_told(tmp_path, said):
    (tmp_path / "t.txt").write_text("red apple\n\n  \ngreen apple\nof the\n")
    data = load(tmp_path / "t.txt", notice=said.append)
    assert data.ids == ["0", "3", "4"]
    assert "2 empty lines" in said[0] and "1 of 3 documents" in said[1]


@pytest.mark.parametrize("packed", [False, True])
def test_jsonl(tmp_path, packed):
    lines = "".join(
        json.dumps({"id": f"d{i}", "text": t, "topic": "xy"[i % 2], "n": 1}) + "\n"
        for i, t in enumerate(DOCS)
    )
    path = tmp_path / ("t.jsonl.gz" if packed else "t.jsonl")
    path.write_bytes(gzip.compress(lines.encode()) if packed else lines.encode())
    data = load(path, label_column="topic")
    assert data.ids == ["d0", "d1", "d2", "d3"] and data.name == "t"
    assert data.label_names == ["x", "y"] and data.labels.tolist() == [0, 1, 0, 1]
    assert (
        load(path, text_column="topic", notice=lambda m: None, recipe=data.recipe).texts[1] == "y"
    )
    with pytest.raises(DataError, match="Did you mean 'topic'"):
        load(path, label_column="topics")


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ('{"text": "a b"}\n{oops\n', "line 2 is not JSON"),
        ('["a"]\n', "line 1: a JSON object"),
        ('{"txt": "red apple"}\n', "Did you mean 'txt'"),
        ('{"text": 3}\n', "object 1: 'text' is int"),
        ('{"text": "of the"}\n', "no words"),
    ],
)
def test_broken_jsonl(tmp_path, content, message):
    (tmp_path / "t.jsonl").write_text(content)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "t.jsonl")


def test_ready_embeddings(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    lines = [json.dumps({"text": t, "embedding": v.tolist()}) for t, v in zip(DOCS, vectors)]
    (tmp_path / "e.jsonl").write_text("\n".join(lines))
    data = load(tmp_path / "e.jsonl", embeddings=True)
    np.testing.assert_array_equal(data.X, vectors)
    assert data.kind == "vector" and data.texts == DOCS
    again = load(tmp_path / "e.jsonl", recipe=data.recipe)
    assert again.fingerprint() == data.fingerprint()
    keyed = [json.dumps({"doc": f"d{i}", **json.loads(line)}) for i, line in enumerate(lines)]
    (tmp_path / "e.jsonl").write_text("\n".join(keyed))
    recipe = load(tmp_path / "e.jsonl", embeddings=True, id_column="doc").recipe
    assert load(tmp_path / "e.jsonl", recipe=recipe).ids == ["d0", "d1", "d2", "d3"]


def test_text_column_of_a_table_and_text_for_the_wrong_model(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"n": range(4), "body": DOCS})
    data = load(frame, text_column="body", id_column="n")
    assert data.kind == "text" and data.ids == ["0", "1", "2", "3"]
    assert load(frame, recipe=data.recipe).fingerprint() == data.fingerprint()
    with pytest.raises(DataError, match="fitted on vector"):
        load(DOCS, recipe=load(np.zeros((3, 2))).recipe)
