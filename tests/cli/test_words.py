"""What errors, notices and help say: in the words of the place where they are read."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import coterie
from conftest import KEYS, quick
from coterie import registry
from coterie.cli import COMMANDS, main
from coterie.data import DataError

SOURCE = Path(coterie.__file__).parent
# rooms that speak to the command line, or to those who work on the project
OF_THE_COMMAND_LINE = ("cli", "research", "storage")


def messages():
    """Strings of the package that are no docstrings, with their place."""
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in OF_THE_COMMAND_LINE:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in docs else None
            if isinstance(text, str):
                yield f"{path.name}:{node.lineno}", text


def test_python_is_not_advised_to_use_flags():
    whole_commands = r"coterie \w+ --|pip install|`coterie"  # which anybody can type
    found = [
        (place, text)
        for place, text in messages()
        if re.search(r"(^|[ (])--[a-z]", text) and not re.search(whole_commands, text)
    ]
    assert found == []


def test_words_that_were_wrong_are_gone(capsys):
    wrong = ("methods want numbers", "rows that are no images", "chosen: direct")
    assert [(p, t) for p, t in messages() if any(w in t for w in wrong)] == []
    for command in COMMANDS:
        main([command, "--help"])
    for key in KEYS:
        main(["fit", "--method", key, "--help"])
    said = capsys.readouterr().out
    assert "usage" in said and not any(w in said for w in wrong)


def test_the_choice_of_kith_is_told_in_words(blobs):
    if "kith" not in KEYS:
        pytest.skip("of Kith")
    taken = [note for note in quick("kith").fit(blobs[0]).notes_ if note.startswith("chosen:")]
    names = registry.get("kith")(3).fit(blobs[0]).cuts_
    assert len(taken) == 1
    assert not any(taken[0].startswith(f"chosen: {name};") for name in names)


def pictures(folder: Path, count: int) -> list[str]:
    folder.mkdir(exist_ok=True)
    paths = [str(folder / f"{i}.png") for i in range(count)]
    for i, path in enumerate(paths):
        Image.fromarray(np.full((8, 6, 3), 250 * (i % 2), np.uint8)).save(path)
    return paths


def test_one_thing_is_not_called_many(tmp_path, capsys):
    model = quick("kmeans", 2).fit(np.eye(4, dtype=np.float32))
    with pytest.raises(ValueError, match="X is 1 text, but KMeans was fitted on numbers"):
        model.predict(["one"])
    pictures(tmp_path / "p", 4)
    (tmp_path / "p" / "note.md").write_text("beside them")
    assert main(["fit", str(tmp_path / "p"), "--method", "kmeans", "--clusters", "2",
                 "--out", str(tmp_path / "r"), "--quiet"]) == 0  # fmt: skip
    assert "left out 1 file of other types" in capsys.readouterr().err
    pytest.importorskip("onnxruntime")
    from encoders.models import onnx_means

    encoded = coterie.KMeans(2, encoder=str(onnx_means(tmp_path / "m.onnx")), random_state=0)
    with pytest.raises(ValueError, match=r"but X is 1 text; give images or their paths"):
        encoded.set_params(n_clusters=1).fit(["a text"])


def test_a_path_that_is_not_there_gets_advice_that_can_be_followed(tmp_path):
    paths = [Path(p) for p in pictures(tmp_path / "p", 6)]
    absent = tmp_path / "p" / "absent.png"
    with pytest.raises(DataError) as fitting:
        quick("kmeans", 2).fit([*paths, absent])
    assert "absent.png" in str(fitting.value) and "leave it out of the list" in str(fitting.value)
    model = quick("kmeans", 2).fit(paths)
    with pytest.raises(DataError) as caught:
        model.predict([paths[0], absent])
    assert "load_data(LIST, skip_bad=True, recipe=model.recipe_)" in str(caught.value)
    # the advice, followed
    with pytest.warns(UserWarning, match="left out 1 unreadable image"):
        rest = coterie.load_data([paths[0], absent], skip_bad=True, recipe=model.recipe_)
    assert list(rest.ids) == [str(paths[0])]
    assert model.predict(rest).tolist() == model.labels_[:1].tolist()


def test_an_encoder_of_images_takes_paths_and_names_a_missing_one(tmp_path):
    pytest.importorskip("onnxruntime")
    from encoders.models import onnx_means

    paths = pictures(tmp_path / "p", 6)
    model = coterie.KMeans(2, encoder=str(onnx_means(tmp_path / "m.onnx")), random_state=0)
    model.fit(paths)
    assert model.labels_.tolist() in ([0, 1] * 3, [1, 0] * 3)
    assert model.predict([Path(p) for p in paths]).tolist() == model.labels_.tolist()
    with pytest.raises(ValueError, match=r"cannot read image .*absent\.png.*out of the list"):
        model.predict([paths[0], str(tmp_path / "absent.png")])
    # upright as its tag says, as on the command line
    tall = Image.new("RGB", (6, 8))
    tall.paste((255, 0, 0), (0, 0, 6, 4))
    exif = Image.Exif()
    exif[0x0112] = 6
    tall.save(tmp_path / "turned.jpg", exif=exif, quality=95)
    from coterie.encoders.images import as_images

    turned = as_images([tmp_path / "turned.jpg"])[0]
    assert turned.shape == (6, 8, 3) and turned[:, -2:, 0].mean() > 200 > turned[:, :2, 0].mean()


@pytest.mark.parametrize("source", ["photos", "table", "texts"])
def test_nothing_is_said_twice_with_a_report(source, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("coterie.reporting.maps.tsne_map", lambda *a, **k: None)
    if source == "photos":
        data = tmp_path / "p"
        for i, path in enumerate(pictures(data, 12)):
            Image.open(path).resize((6 + i % 3, 8)).save(path)
        (data / "note.md").write_text("beside them")
    elif source == "table":
        data = tmp_path / "t.csv"
        data.write_text("\n".join(f"{i % 2}.5,{i % 3}.25" for i in range(30)))
    else:
        data = tmp_path / "t.txt"
        data.write_text("\n".join(["red dog", "blue bird", "the", "red bird dog"] * 6))
    words = ["fit", str(data), "--method", "kmeans", "--clusters", "7", "--report"]
    assert main([*words, "--out", str(tmp_path / "r")]) == 0
    told = capsys.readouterr()
    lines = [line for line in (told.err + told.out).splitlines() if "note" in line]
    assert lines and len(lines) == len(set(lines))
    sentences = [part.split("note: ", 1)[-1].split(";")[0] for part in lines]
    assert len(sentences) == len(set(sentences))


def test_genes_of_cells_are_named_on_the_page(tmp_path, monkeypatch):
    anndata = pytest.importorskip("anndata")
    monkeypatch.setattr("coterie.reporting.maps.tsne_map", lambda *a, **k: None)
    y = np.repeat([0, 1], 30)
    rates = np.where(np.arange(40) // 20 == y[:, None], 4.0, 0.2)
    adata = anndata.AnnData(np.random.default_rng(0).poisson(rates).astype(np.float32))
    adata.var_names = [f"unc-{i}" for i in range(40)]
    model = quick("kmeans", 2).fit(adata)
    page = coterie.report(model, adata, tmp_path / "a.html").read_text()
    adata.write_h5ad(tmp_path / "c.h5ad")
    assert main(["fit", str(tmp_path / "c.h5ad"), "--method", "kmeans", "--clusters", "2",
                 "--out", str(tmp_path / "r"), "--report", "--quiet"]) == 0  # fmt: skip
    for text in (page, (tmp_path / "r" / "report.html").read_text()):
        assert re.search(r"high unc-<wbr>\d+", text) and not re.search(r"feature \d", text)
