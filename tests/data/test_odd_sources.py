"""Sources that lie: archives, pipes among texts, sides without numbers, halves of characters."""

import io
import json
import os
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image

from coterie.data import DataError, limits, load
from coterie.storage.products import labels_csv


@pytest.mark.parametrize("place", ["pipe", "zero"])
def test_a_pipe_or_device_among_texts_does_not_hang(place, tmp_path):
    for i in range(6):
        (tmp_path / f"{i}.txt").write_text("moon orbit rocket" if i % 2 else "butter onion")
    if place == "pipe":
        os.mkfifo(tmp_path / "p.txt")
    else:
        (tmp_path / "p.txt").symlink_to("/dev/zero")
    with pytest.raises(DataError, match=r"p\.txt is not a regular file"):
        load(tmp_path)


def zipped(path, members):
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        warnings.simplefilter("ignore")  # of names that stand there twice
        for name, content in members:
            file.writestr(name, content)
    return path


def picture(level):
    out = io.BytesIO()
    Image.fromarray(np.full((8, 8), level, np.uint8)).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("twin", ["a.png", "/a.png", "./a.png"])
def test_a_zip_with_two_pictures_of_one_name_is_refused(twin, tmp_path):
    members = [("a.png", picture(0)), (twin, picture(9)), ("b.png", picture(99))]
    with pytest.raises(DataError, match=r"holds a\.png twice"):
        load(zipped(tmp_path / "x.zip", members))


def test_a_zip_bomb_is_told_with_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "ROOM", 1 << 20)
    members = [("a.png", picture(0)), ("b.bmp", bytes(9 << 20))]
    with pytest.raises(DataError, match="COTERIE_MAX_UNPACKED=94"):
        load(zipped(tmp_path / "x.zip", members))


def test_nothing_leaves_the_folder_that_a_zip_is_unpacked_into(tmp_path):
    members = [(f"{up}evil{i}.png", picture(i)) for i, up in enumerate(("/", "C:/", "../../"))]
    found = load(zipped(tmp_path / "x.zip", members))
    assert len(found) == 2 and [p.name for p in tmp_path.iterdir()] == ["x.zip"]


@pytest.mark.parametrize("shape", [(12, 2**31 - 1), (12, 2**62), (2**40, 30)])
def test_a_sparse_matrix_whose_sides_need_far_more_room_than_its_file(shape, tmp_path):
    ones, pointers = np.ones(12, np.float32), np.arange(13)
    parts = {"format": np.array(b"csr"), "shape": np.array(shape), "data": ones}
    np.savez(tmp_path / "x.npz", indices=np.arange(12), indptr=pointers, **parts)
    with pytest.raises(DataError, match="COTERIE_MAX_UNPACKED"):
        load(tmp_path / "x.npz")


def test_ids_with_half_a_character_are_written(tmp_path):
    lines = [json.dumps({"text": f"moon orbit {i}", "id": f"\ud83d{i}"}) for i in range(6)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    told = []
    data = load(tmp_path / "x.jsonl", notice=told.append)
    assert data.ids[2] == "�2" and "6 ids hold half a character" in told[0]
    labels_csv(data.ids, np.zeros(6))  # raised at the end of the fit
    name = os.fsdecode(b"caf\xe9.png")  # a name of a file may be any bytes, and stays
    assert load(frame_of(name), id_column="id", notice=told.append).ids == [name, "b"]


def frame_of(name):
    import pandas as pd

    return pd.DataFrame({"id": [name, "b"], "x": [1.0, 2.0], "y": [0.0, 3.0]})
