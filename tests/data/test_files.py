"""Arrays, tables and frames in: order, ids, recipes, and errors that say where and what to do."""

import csv
import gzip
import os

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from coterie.data import DataError, Recipe, load
from coterie.data import arrays as arrays_module


@pytest.fixture
def said():
    return []


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 3)).astype(np.float32)


def write(path, rows, delimiter=","):
    with open(path, "w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def rows_of(table, header=("a", "b", "c"), names=None):
    names = names or [f"r{i}" for i in range(len(table))]
    return [("key", *header), *((n, *map(repr, map(float, row))) for n, row in zip(names, table))]


# arrays -------------------------------------------------------------------------------------


def test_an_array_is_neither_copied_nor_changed(table):
    before = table.copy()
    data = load(table)
    assert data.X is table
    assert (data.kind, len(data), data.ids) == ("vector", 30, range(30))
    np.testing.assert_array_equal(table, before)


@pytest.mark.parametrize(
    "shape, want",
    [((5, 4, 4), (5, 4, 4)), ((5, 4, 4, 1), (5, 4, 4)), ((5, 4, 4, 3), (5, 4, 4, 3))],
)
def test_images_stay_bytes(shape, want):
    data = load(np.zeros(shape, np.uint8))
    assert (data.X.shape, data.X.dtype, data.kind) == (want, np.uint8, "image")
    assert data.recipe.shape == list(want[1:])


def test_channels_first_is_turned_with_a_notice(said):
    images = torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8).float()
    data = load(images, notice=said.append)
    assert data.X.shape == (2, 8, 8, 3) and "channels" in said[0]
    assert data.X[1, 2, 3, 0] == images[1, 0, 2, 3]


def test_sparse_stays_sparse(table):
    data = load(sparse.coo_matrix(table))
    assert sparse.issparse(data.X) and data.X.format == "csr"
    np.testing.assert_array_equal(data.X.toarray(), table)


def test_a_large_npy_is_mapped(tmp_path, table, monkeypatch):
    np.save(tmp_path / "x.npy", table)
    assert not isinstance(load(tmp_path / "x.npy").X, np.memmap)
    monkeypatch.setattr(arrays_module, "MAPPED_ABOVE", 10)
    data = load(str(tmp_path / "x.npy"))
    assert isinstance(data.X, np.memmap) and not data.X.flags.writeable
    assert data.fingerprint() == load(table).fingerprint()


def test_npz_with_labels_single_and_sparse(tmp_path, table):
    np.savez(tmp_path / "a.npz", data=table, target=np.arange(30) % 2 * 5)
    np.savez(tmp_path / "b.npz", anything=table)
    sparse.save_npz(tmp_path / "c.npz", sparse.csr_matrix(table))
    labelled = load(tmp_path / "a.npz")
    assert labelled.label_names == ["0", "5"]
    np.testing.assert_array_equal(labelled.labels, np.arange(30) % 2)
    np.testing.assert_array_equal(load(tmp_path / "b.npz").X, table)
    np.testing.assert_array_equal(load(tmp_path / "c.npz").X.toarray(), table)
    np.savez(tmp_path / "d.npz", one=table, two=table)
    with pytest.raises(DataError, match="one, two"):
        load(tmp_path / "d.npz")


def test_pickled_arrays_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a readable"):
        load(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "bad, message",
    [
        (np.zeros(3), "reshape"),
        (np.zeros((0, 3)), "empty"),
        (np.zeros((2, 2, 2, 2, 2)), "5 dimensions"),
        (np.array([["a", "b"]]), "only numbers"),
        (np.zeros((2, 3), complex), "only numbers"),
        ([np.zeros((2, 2)), np.zeros((3, 3))], "different shapes"),
    ],
)
def test_unfit_arrays(bad, message):
    with pytest.raises(DataError, match=message):
        load(bad)


def test_missing_values_are_located(table):
    table[7, 2] = np.nan
    table[9, 0] = np.inf
    with pytest.raises(DataError, match=r"2 values .* row 7, column 2"):
        load(table)
    with pytest.raises(DataError, match="row 7, column 2"):
        load(sparse.csr_matrix(table))


def test_new_rows_must_have_the_fitted_shape(table):
    recipe = load(table).recipe
    assert load(table[:4], recipe=recipe).X.shape == (4, 3)
    with pytest.raises(DataError, match=r"\(2,\).*\(3,\)"):
        load(table[:, :2], recipe=recipe)
    pixels = load(np.zeros((3, 8, 8), np.uint8)).recipe
    with pytest.raises(DataError, match="uint8"):
        load(np.zeros((3, 8, 8), np.float32), recipe=pixels)


def test_bytes_are_brought_to_the_unit_of_the_fitted_pixels(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (20, 8, 8)).astype(np.uint8)
    for unit in (1, 255):
        recipe = load(pixels.astype(np.float32) / unit).recipe
        recipe.save(tmp_path / str(unit))
        again = load(pixels, recipe=Recipe.load(tmp_path / str(unit))).X
        np.testing.assert_array_equal(again, pixels.astype(np.float32) / unit)


def test_fingerprint_sees_shape_type_and_content(table):
    changed = table.copy()
    changed[20, 1] += 1
    variants = [table, changed, table.astype(np.float64), table.reshape(15, 6), table[:29]]
    variants += [sparse.csr_matrix(table), sparse.csr_matrix(changed)]
    assert len({load(X).fingerprint() for X in variants}) == len(variants)
    assert load(np.asfortranarray(table)).fingerprint() == load(table).fingerprint()


# tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending, delimiter", [(".csv", ","), (".tsv", "\t"), (".csv", ";")])
def test_csv_keeps_order_and_ids(tmp_path, table, ending, delimiter, said):
    path = write(tmp_path / f"t{ending}", rows_of(table), delimiter)
    data = load(path, id_column="key", notice=said.append)
    np.testing.assert_array_equal(data.X, table)
    assert data.X.dtype == np.float32 and data.kind == "table"
    assert data.columns == ["a", "b", "c"] and data.ids[:2] == ["r0", "r1"]
    assert bool(said) == (delimiter == ";")


def test_csv_without_header_gzip_bom_and_blank_lines(tmp_path, said):
    (tmp_path / "n.csv").write_bytes(b"\xef\xbb\xbf1.5,2\r\n\r\n3,4e1\r\n")
    data = load(tmp_path / "n.csv", notice=said.append)
    np.testing.assert_array_equal(data.X, [[1.5, 2], [3, 40]])
    assert data.columns == ["0", "1"] and len(said) == 1
    with gzip.open(tmp_path / "z.csv.gz", "wt") as file:
        file.write('"a, b",c\n"1",2\n')
    assert load(tmp_path / "z.csv.gz").columns == ["a, b", "c"]


def test_what_pandas_writes_is_understood(tmp_path, table, said):
    frame = pd.DataFrame(table, index=[f"i{i}" for i in range(30)])
    frame.to_csv(tmp_path / "p.csv")
    data = load(tmp_path / "p.csv", notice=said.append)
    assert data.ids[3] == "i3" and data.columns == ["0", "1", "2"]
    frame.to_csv(tmp_path / "q.csv", index=False)
    assert load(tmp_path / "q.csv", notice=said.append).X.shape == (30, 3)


def test_columns_drop_and_labels(tmp_path):
    rows = [("x", "y", "kind"), *((i, i * 2, "ba"[i % 2]) for i in range(6))]
    path = write(tmp_path / "t.csv", rows)
    data = load(path, label_column="kind")
    assert data.columns == ["x", "y"] and data.label_names == ["a", "b"]
    np.testing.assert_array_equal(data.labels, [1, 0, 1, 0, 1, 0])
    np.testing.assert_array_equal(load(path, columns=["y", "x"]).X[1], [2, 1])
    assert load(path, drop="kind,x").columns == ["y"]
    with pytest.raises(DataError, match="Did you mean 'kind'"):
        load(path, drop=["kinds"])
    with pytest.raises(DataError, match="no column is left"):
        load(path, drop=["x", "y", "kind"])


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "parquet"])
def test_a_category_and_a_gap_are_named(tmp_path, kind):
    frame = pd.DataFrame(
        {"ok": [1.0, 2, 3], "colour": ["red", "blue", "red"], "gap": [1.0, None, 2]}
    )
    if kind == "csv":
        source = tmp_path / "t.csv"
        frame.to_csv(source, index=False)
    elif kind == "parquet":
        source = tmp_path / "t.parquet"
        frame.to_parquet(source)
    else:
        source = frame if kind == "pandas" else pl.from_pandas(frame)
    with pytest.raises(DataError) as caught:
        load(source)
    text = str(caught.value)
    assert "'colour': 3 of 3 cells with text, first 'red' in row 1" in text
    assert "'gap': 1 of 3 cells missing" in text and "row 2" in text
    assert 'drop="colour,gap"' in text and "'ok'" not in text


def test_a_model_in_want_of_a_column_does_not_advise_to_drop_it(tmp_path):
    recipe = load(write(tmp_path / "a.csv", [["a", "b"], [1, 2], [3, 4]])).recipe
    gap = write(tmp_path / "b.csv", [["a", "b"], [1, ""], [3, 4]])
    for more, advised in (({}, True), ({"recipe": recipe}, False)):
        with pytest.raises(DataError, match="fill missing values") as refusal:
            load(gap, **more)
        assert ("drop=" in str(refusal.value)) == advised


def test_a_data_set_is_shown_in_one_line():
    shown = repr(load(["red apple", "green pear", "red pear"]))
    assert shown.startswith("<Dataset") and "3 rows" in shown and "apple" not in shown


def test_a_category_of_numbers_is_named():
    frame = pd.DataFrame({"a": range(4), "b": pd.Series([1, 2, 1, 2]).astype("category")})
    with pytest.raises(
        DataError, match=r"'b': 4 of 4 cells with text, first '1' in row 1\n.* turn"
    ):
        load(frame)


def test_one_bad_cell_is_named_by_row_line_and_column(tmp_path):
    rows = [("a", "b"), *((i, i) for i in range(9000)), (1, "1_000"), (1, "inf"), (1, "1e39")]
    with pytest.raises(DataError, match=r"'b'.* first '1_000' in row 9001 \(line 9002\)"):
        load(write(tmp_path / "t.csv", rows))


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 cells, but 2 columns"),
        ("a,a\n1,2\n", "'a' more than once"),
        ("a,b\n1,\n", "an empty cell in row 1"),
    ],
)
def test_broken_csv(tmp_path, content, message):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "content, columns, rows, told",
    [
        ("a;b\n1,5;2\n-,5;3e1\n", ["a", "b"], [[1.5, 2], [-0.5, 30]], "1,5 are read as 1.5"),
        ("1,5;2,5\n3,5;4,5\n", ["0", "1"], [[1.5, 2.5], [3.5, 4.5]], "split at ';'"),
        ('"a, b";c\n1;2\n', ["a, b", "c"], [[1, 2]], "split at ';'"),
        ("a, b;c\n1;2\n", ["a, b", "c"], [[1, 2]], "split at ';'"),
        ('"a\nb",c\n1,2\n', ["a\nb", "c"], [[1, 2]], None),
        ("   \na,b\n1,2\n", ["a", "b"], [[1, 2]], None),
        ("a,b,\n1,2,\n3,4,\n", ["a", "b"], [[1, 2], [3, 4]], "1 empty columns"),
        ("a,,b,,\n1,,2,,\n", ["a", "b"], [[1, 2]], "3 empty columns"),
        ("5,6,\n7,8,\n", ["0", "1"], [[5, 6], [7, 8]], "1 empty columns"),
        ("a,,b\n1,2,3\n", ["a", "", "b"], [[1, 2, 3]], None),
        ("0,1\n2,3\n", ["0", "1"], [[0, 1], [2, 3]], "first line is numbers"),
        ("0,1,2\n5,6,7\n", ["0", "1", "2"], [[5, 6, 7]], "a header"),
    ],
)
def test_common_csv_files(tmp_path, content, columns, rows, told, said):
    (tmp_path / "t.csv").write_text(content)
    data = load(tmp_path / "t.csv", notice=said.append)
    assert data.columns == columns and data.X.tolist() == rows
    assert any(told in message for message in said) if told else not said


def test_pandas_index_above_counted_columns(tmp_path, said):
    for width in (1, 2):
        pd.DataFrame(np.ones((2, width)), index=["x", "y"]).to_csv(tmp_path / "t.csv")
        data = load(tmp_path / "t.csv", notice=said.append)
        assert data.ids == ["x", "y"] and data.X.shape == (2, width)


def test_an_index_that_pandas_read_as_a_column(tmp_path, said):
    path = write(tmp_path / "t.csv", [("Unnamed: 0", "a"), ("7", "1"), ("3", "2")])
    data = load(path, notice=said.append)
    assert data.columns == ["a"] and data.ids == ["7", "3"] and len(said) == 1


def test_a_first_row_that_may_be_a_header_is_told_or_read(tmp_path, said):
    (tmp_path / "t.csv").write_text("0.30,0.43,Iris-a\n0.1,0.2,Iris-b\n")
    assert len(load(tmp_path / "t.csv", drop=["Iris-a"], notice=said.append)) == 1
    assert "taken as a header, though it holds 0.30" in said.pop() and not said
    (tmp_path / "t.csv").write_text("id,2019,2020\n1,2,3\n")
    assert load(tmp_path / "t.csv", notice=said.append).columns == ["id", "2019", "2020"]
    assert not said  # years are names
    (tmp_path / "t.csv").write_text("1.0,?,2.0\n3,4,5\n")
    with pytest.raises(DataError, match=r"column '1': 1 of 2 cells missing, first '\?' in row 1"):
        load(tmp_path / "t.csv", notice=said.append)


def test_names_with_commas_can_be_named(tmp_path):
    path = write(tmp_path / "t.csv", [("name, full", "b", "c c"), ("x", 1, "y"), ("z", 2, "w")])
    with pytest.raises(DataError) as told:
        load(path)
    assert r'''drop="\"name, full\",c c"''' in str(told.value)
    assert load(path, drop='"name, full",c c').columns == ["b"]
    assert load(path, columns="b").columns == ["b"]


def test_long_texts_in_csv(tmp_path):
    limit = csv.field_size_limit()
    path = write(tmp_path / "t.csv", [("t",), ("red apple " * 20000,), ("green pear",)])
    assert len(load(path, text_column="t")) == 2
    assert csv.field_size_limit() == limit


def test_decimal_commas_elsewhere_get_the_way_out(tmp_path):
    with pytest.raises(
        DataError, match=r"first '1,5' in row 1(.|\n)*What to do: write decimal points"
    ):
        load(write(tmp_path / "t.csv", [("a", "b"), ("1,5", 2)]))
    with pytest.raises(DataError, match=r"'b': 1 of 1 cells with text(.|\n)*turn categories") as e:
        load(write(tmp_path / "t.csv", [("a", "b"), ("1,5", "red")], ";"))
    assert "'a'" not in str(e.value)


def test_not_utf8(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,\xff\n")
    with pytest.raises(DataError, match="UTF-8"):
        load(tmp_path / "t.csv")


def test_wrong_type_missing_file_and_permission(tmp_path, monkeypatch):
    (tmp_path / "t.xyz").write_text("1")
    with pytest.raises(DataError, match=r"cannot be read; use \.npy"):
        load(tmp_path / "t.xyz")
    with pytest.raises(DataError, match="Did you mean 'pendigits'"):
        load("pendigts")
    path = write(tmp_path / "t.csv", [("a",), (1,)])
    path.chmod(0)
    if os.access(path, os.R_OK):  # root reads everything
        import builtins

        real = builtins.open

        def refuse(file, *args, **kwargs):
            if str(file) == str(path):
                raise PermissionError(13, "Permission denied", str(file))
            return real(file, *args, **kwargs)

        monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(DataError, match=r"no permission to read .*t\.csv"):
        load(path)


def test_predict_finds_columns_in_any_order(tmp_path, table, said):
    recipe = load(write(tmp_path / "t.csv", rows_of(table)), id_column="key").recipe
    recipe.save(tmp_path / "run")
    recipe = Recipe.load(tmp_path / "run")
    frame = pd.DataFrame({"c": table[:, 2], "extra": "text", "b": table[:, 1], "a": table[:, 0]})
    for source in (frame, pl.from_pandas(frame)):
        data = load(source, recipe=recipe)
        np.testing.assert_array_equal(data.X, table)
        assert data.columns == ["a", "b", "c"] and data.ids == range(30)
    np.testing.assert_array_equal(load(table, recipe=recipe).X, table)
    with pytest.raises(DataError, match=r"lacks 1 of the 3 columns.*: b\."):
        load(frame.drop(columns="b"), recipe=recipe)
    bare = write(tmp_path / "bare.csv", table.astype(float).tolist())
    np.testing.assert_array_equal(load(bare, recipe=recipe, notice=said.append).X, table)


def test_a_header_is_no_trouble_for_a_model_without_one(tmp_path, table, said):
    bare = write(tmp_path / "bare.csv", table.astype(float).tolist())
    load(bare, notice=said.append).recipe.save(tmp_path / "run")
    recipe = Recipe.load(tmp_path / "run")
    full = write(tmp_path / "t.csv", [row[1:] for row in rows_of(table)])
    np.testing.assert_array_equal(load(full, recipe=recipe, notice=said.append).X, table)
    assert "the fitted data named no columns" in said[-1]
    with pytest.raises(DataError, match="has 4 columns, the model was fitted on 3"):
        load(write(tmp_path / "t.csv", rows_of(table)), recipe=recipe)


@pytest.mark.parametrize("how", [{"drop": ["0"]}, {"drop": ["3"]}, {"columns": ["1", "2"]}])
def test_a_table_without_a_header_finds_its_columns_again(tmp_path, how):
    whole = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    path = write(tmp_path / "bare.csv", whole.astype(float).tolist())
    first = load(path, **how)
    first.recipe.save(tmp_path / "run")
    recipe = Recipe.load(tmp_path / "run")
    np.testing.assert_array_equal(load(path, recipe=recipe).X, first.X)
    rest = write(tmp_path / "rest.csv", first.X.astype(float).tolist())  # the others are gone
    np.testing.assert_array_equal(load(rest, recipe=recipe).X, first.X)
    more = write(tmp_path / "more.csv", np.c_[whole, whole[:, 0]].astype(float).tolist())
    with pytest.raises(DataError, match=r"has 5 columns, the model was fitted on \d.*drop="):
        load(more, recipe=recipe)
    left_out = [c for c in "01234" if c not in first.columns]
    np.testing.assert_array_equal(load(more, recipe=recipe, drop=left_out).X, first.X)


def test_a_table_for_a_text_model_asks_for_the_column(tmp_path):
    recipe = load(["red apple", "green pear", "red pear"]).recipe
    path = write(tmp_path / "t.csv", [("n", "body"), (1, "red apple")])
    with pytest.raises(DataError, match=r"fitted on text; .* text_column="):
        load(path, recipe=recipe)
    assert load(path, recipe=recipe, text_column="body").texts == ["red apple"]


def test_npz_with_nothing_but_labels(tmp_path):
    np.savez(tmp_path / "a.npz", labels=np.arange(3))
    with pytest.raises(DataError, match="holds only 'labels', which is read as known classes"):
        load(tmp_path / "a.npz")


def test_frames_keep_their_index_and_types(table):
    frame = pd.DataFrame(table, columns=list("abc"), index=[f"p{i}" for i in range(30)])
    frame["flag"] = True
    frame["whole"] = pd.array(range(30), dtype="Int64")
    data = load(frame)
    assert data.ids[2] == "p2" and data.X[5].tolist()[3:] == [1, 5]
    assert load(frame[5:9].reset_index(drop=True)).ids == range(4)
    assert load(pl.DataFrame({"a": [1, 2], "b": [True, False]})).X.tolist() == [[1, 1], [2, 0]]
    with pytest.raises(DataError, match="'when'"):
        load(pd.DataFrame({"when": pd.to_datetime(["2020-01-01"]), "a": [1]}))


def test_the_index_in_a_parquet_file_names_the_rows(tmp_path, table, said):
    frame = pd.DataFrame(table, columns=["a", "b", "c"])
    shuffled = frame.sample(frac=1, random_state=0)
    shuffled.to_parquet(tmp_path / "t.parquet")
    data = load(tmp_path / "t.parquet", notice=said.append)
    assert data.columns == ["a", "b", "c"] and len(said) == 1
    assert data.ids == [str(label) for label in shuffled.index]
    frame.to_parquet(tmp_path / "new.parquet")
    again = load(tmp_path / "new.parquet", recipe=data.recipe, notice=said.append)
    np.testing.assert_array_equal(again.X, table)
    frame.set_index(["a", "b"]).to_parquet(tmp_path / "two.parquet")
    assert load(tmp_path / "two.parquet", notice=said.append).ids[0].count(", ") == 1
    kept = load(tmp_path / "two.parquet", columns=["a", "c"], notice=said.append)
    np.testing.assert_array_equal(kept.X, table[:, [0, 2]])  # asked for by name


def test_lists_in_a_parquet_file_name_none_of_their_numbers(tmp_path, table):
    pd.DataFrame({"v": table.tolist()}).to_parquet(tmp_path / "t.parquet")
    data = load(tmp_path / "t.parquet")
    assert data.X.shape == (30, 3) and data.columns is None
    np.testing.assert_array_equal(load(tmp_path / "t.parquet", recipe=data.recipe).X, data.X)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
def test_sparse_matrices_of_every_format_in_npz(tmp_path, table, kind):
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(table).asformat(kind))
    np.testing.assert_array_equal(load(tmp_path / "t.npz").X.toarray(), table)


def test_parquet_file_and_folder(tmp_path, table):
    frame = pd.DataFrame(table, columns=list("abc"))
    frame.to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(load(tmp_path / "t.parquet").X, table)
    (tmp_path / "parts").mkdir()
    frame[:10].to_parquet(tmp_path / "parts" / "1.parquet")
    frame[10:].to_parquet(tmp_path / "parts" / "2.parquet")
    np.testing.assert_array_equal(load(tmp_path / "parts").X, table)
    frame[:10].round().astype(int).to_parquet(tmp_path / "parts" / "1.parquet")
    np.testing.assert_array_equal(load(tmp_path / "parts").X[:10], table[:10].round())
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match="as parquet"):
        load(tmp_path / "bad.parquet")


def test_a_csv_column_that_stands_still_at_first_is_not_rounded_away(tmp_path):
    rows = [[i % 7, 1_700_000_000 + 60 * (i >= 5000), 3] for i in range(5010)]
    data = load(write(tmp_path / "t.csv", [["a", "t", "c"], *rows]))
    assert data.X.dtype == np.float64
    assert sorted(set(data.X[:, 1])) == [1_700_000_000, 1_700_000_060]


def test_embeddings_in_a_parquet_column(tmp_path, table):
    frame = pd.DataFrame({"id": range(30), "embedding": list(table)})
    frame.to_parquet(tmp_path / "e.parquet")
    data = load(tmp_path / "e.parquet", id_column="id", embeddings=True)
    np.testing.assert_array_equal(data.X, table)
    assert data.kind == "vector" and data.ids[4] == "4"
    again = load(tmp_path / "e.parquet", recipe=data.recipe)
    np.testing.assert_array_equal(again.X, table)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    values=st.lists(
        st.lists(
            st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=2
        ),
        min_size=1,
        max_size=8,
    ),
    names=st.lists(st.text("abc ,\"'é;\t", min_size=1, max_size=5), min_size=8, max_size=8),
    data=st.data(),
)
def test_csv_round_trip(tmp_path, values, names, data):
    order = data.draw(st.permutations(["x, 1", "y", "id"]))
    columns = {"x, 1": 0, "y": 1}
    rows = [tuple(order)]
    for name, row in zip(names, values):
        rows.append(tuple(name if c == "id" else repr(row[columns[c]]) for c in order))
    path = write(tmp_path / "t.csv", rows)
    got = load(path, id_column="id", columns=["x, 1", "y"])
    np.testing.assert_array_equal(got.X, np.array(values, np.float32))
    assert got.ids == [name.strip() for name in names[: len(values)]]


@pytest.mark.parametrize(
    "source, options",
    [
        ("x.npy", {"columns": "zz"}),
        ("x.npy", {"text_column": "q"}),
        ("x.npy", {"image_size": 4}),
        ("x.npz", {"id_column": "q"}),
        ("t.csv", {"image_size": 4}),
        ("t.txt", {"label_column": "a"}),
        ("t.jsonl", {"drop": "a"}),
        ("digits", {"columns": "a"}),
        ("pendigits", {"image_size": 4}),
        (np.ones((3, 2)), {"label_column": "a"}),
        (pd.DataFrame({"a": [1, 2]}), {"skip_bad": True}),
        (["red apple", "green pear"], {"text_column": "a"}),
    ],
)
def test_options_that_do_not_apply_are_refused(tmp_path, made_up_sets, source, options):
    made_up_sets("pendigits")
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    np.savez(tmp_path / "x.npz", np.ones((3, 2)))
    write(tmp_path / "t.csv", [("a", "b"), (1, 2)])
    (tmp_path / "t.txt").write_text("red apple\ngreen pear\n")
    (tmp_path / "t.jsonl").write_text('{"text": "red apple"}\n')
    path = tmp_path / source if isinstance(source, str) and "." in source else source
    with pytest.raises(DataError, match=f"{next(iter(options))}=.* does not apply"):
        load(path, **options)
    recipe = load(path, words=100).recipe  # commands pass on what their method prefers
    with pytest.raises(DataError, match="does not apply"):
        load(path, recipe=recipe, **options)


@pytest.mark.parametrize("option", ["columns", "drop"])
def test_columns_are_not_chosen_beside_a_column_of_texts(tmp_path, option):
    path = write(tmp_path / "t.csv", [("said", "age"), ("red apple", 2), ("green pear", 3)])
    assert load(path, text_column="said").kind == "text"
    with pytest.raises(DataError, match=f"{option}=.* does not apply to a column of texts"):
        load(path, text_column="said", **{option: "age"})


def test_new_rows_obey_the_recipe_and_say_so(tmp_path):
    path = write(tmp_path / "t.csv", [("a", "b"), (1, 2)])
    with pytest.raises(DataError, match="no column 'zz'"):
        load(path, recipe=load(path).recipe, columns="zz")
    images = np.zeros((3, 8, 8), np.uint8)
    recipe = load(images, image_size="8x8").recipe
    assert load(images, recipe=recipe, image_size=8).X.shape == (3, 8, 8)
    with pytest.raises(DataError, match=r"image_size is 4x4, .* images of 8x8; leave"):
        load(images, recipe=recipe, image_size=4)


# recipes ------------------------------------------------------------------------------------


def test_a_torn_recipe_does_not_load(tmp_path):
    recipe = load(["red apple", "green pear", "red pear"]).recipe
    recipe.save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["recipe.json", "recipe.safetensors"]
    side = tmp_path / "recipe.safetensors"
    side.write_bytes(side.read_bytes()[:-1] + b"\x01")
    with pytest.raises(DataError, match="does not belong"):
        Recipe.load(tmp_path)
    side.unlink()
    with pytest.raises(DataError, match="cannot read"):
        Recipe.load(tmp_path)
    (tmp_path / "recipe.json").write_text("{")
    with pytest.raises(DataError):
        Recipe.load(tmp_path)
    with pytest.raises(DataError, match="not a finished run"):
        Recipe.load(tmp_path / "nowhere")


def test_equal_ids_are_told(tmp_path, said):
    path = write(tmp_path / "t.csv", [("id", "a"), ("x", 1), ("y", 2), ("x", 3)])
    assert load(path, id_column="id", notice=said.append).ids == ["x", "y", "x"]
    assert "1 rows have an id" in said[0]
