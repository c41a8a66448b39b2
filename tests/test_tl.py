"""AnnData in place, .h5ad files and 10x folders, from Python and the command line."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import coterie
from conftest import KEYS, quick
from coterie.cli import main

anndata = pytest.importorskip("anndata", reason="extra `cells`")


def cells(n=60, genes=40, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    rates = rng.gamma(0.5, 2, (3, genes))[kind]
    adata = anndata.AnnData(sp.csr_matrix(rng.poisson(rates).astype(np.float32)))
    adata.obs_names = [f"cell{i}" for i in range(n)]
    adata.var_names = [f"gene{i}" for i in range(genes)]
    adata.obs["kind"] = [f"k{v}" for v in kind]
    adata.obsm["X_pca"] = (rates @ rng.normal(size=(genes, 5))).astype(np.float32)
    return adata


def settings(key):
    model = quick(key)
    return {k: v for k, v in model.get_params().items() if k in type(model).tiny} | {
        "random_state": 0
    }


@pytest.mark.parametrize("key", KEYS)
def test_every_method_writes_its_results_in_place(key):
    adata = cells()
    before = adata.X.copy()
    model = getattr(coterie.tl, key)(adata, n_clusters=3, use_rep="X_pca", **settings(key))
    assert adata.obs[key].tolist() == [str(label) for label in model.labels_]
    assert str(adata.obs[key].dtype) == "category"
    assert np.array_equal(adata.obsm[f"X_{key}"], model.transform(adata.obsm["X_pca"]))
    assert adata.obsm[f"{key}_proba"].shape == (60, 3)
    assert adata.uns[key]["params"]["n_clusters"] == 3 and adata.uns[key]["use_rep"] == "X_pca"
    assert sp.issparse(adata.X) and (before != adata.X).nnz == 0


def test_a_representation_is_an_embedding_unless_told_otherwise():
    adata = cells()
    model = coterie.tl.feature_kmeans(adata, 3, use_rep="X_pca", key_added="a", random_state=0)
    assert model.kind_ == "vector" and "a" in adata.obs and "X_a" in adata.obsm
    assert coterie.tl.feature_kmeans(adata, 3, use_rep="X_pca", kind="table").kind_ == "table"
    assert coterie.tl.feature_kmeans(adata, 3, random_state=0).kind_ == "counts"  # sparse counts
    adata.layers["raw"] = adata.X.copy()
    assert coterie.tl.kmeans(adata, 3, layer="raw", random_state=0).n_features_in_ == 40


def test_results_survive_a_file(tmp_path):
    adata = cells()
    coterie.tl.kmeans(adata, n_clusters=3, random_state=0)
    adata.write_h5ad(tmp_path / "c.h5ad")
    again = anndata.read_h5ad(tmp_path / "c.h5ad")
    assert again.obs["kmeans"].tolist() == adata.obs["kmeans"].tolist()
    assert again.uns["kmeans"]["method"] == "kmeans"


def test_errors_say_where_and_what_to_do(tmp_path):
    with pytest.raises(TypeError, match=r"takes an AnnData, not ndarray; .*Kith\(3\)\.fit"):
        coterie.tl.kith(np.zeros((9, 2)), n_clusters=3)
    adata = cells()
    with pytest.raises(ValueError, match=r"adata\.obsm has no 'X_scvi'; it has 'X_pca'"):
        coterie.tl.kmeans(adata, 3, use_rep="X_scvi")
    with pytest.raises(ValueError, match="give one of them"):
        coterie.tl.kmeans(adata, 3, use_rep="X_pca", layer="x")
    adata.obsm["X_pca"][4, 2] = np.nan
    with pytest.raises(ValueError, match=r"obsm\['X_pca'\] has 1 values that are NaN"):
        coterie.tl.kmeans(adata, 3, use_rep="X_pca")
    assert "kmeans" not in adata.obs
    adata.write_h5ad(tmp_path / "c.h5ad")
    backed = anndata.read_h5ad(tmp_path / "c.h5ad", backed="r")
    with pytest.raises(ValueError, match=r"adata is backed.*to_memory\(\)"):
        coterie.tl.kmeans(backed, 3)
    with pytest.raises(AttributeError, match="no method 'leidenn'"):
        _ = coterie.tl.leidenn
    assert "kith" in dir(coterie.tl)


def test_h5ad_from_the_command_line(tmp_path, capsys):
    path, run, out = tmp_path / "cells.h5ad", str(tmp_path / "run"), tmp_path / "out.h5ad"
    cells().write_h5ad(path)
    fit = ["fit", str(path), "--method", "kmeans", "--clusters", "3", "--out", run, "--quiet"]
    assert main([*fit, "--label-column", "kind", "--write", str(out), "--report"]) == 0
    again = anndata.read_h5ad(out)
    labels = [line.split(",")[1] for line in (tmp_path / "run/labels.csv").read_text().split()[1:]]
    assert again.obs["kmeans"].tolist() == labels and sp.issparse(again.X)
    assert again.obs_names[0] == "cell0" and "X_pca" in again.obsm
    # the same genes in another order, read again by name
    other = cells()[:, ::-1].copy()
    other.write_h5ad(tmp_path / "other.h5ad")
    new = str(tmp_path / "new.csv")
    assert main(["predict", run, str(tmp_path / "other.h5ad"), "--out", new]) == 0
    assert [line.split(",")[1] for line in (tmp_path / "new.csv").read_text().split()[1:]] == labels
    cells()[:, :30].copy().write_h5ad(tmp_path / "few.h5ad")
    assert main(["predict", run, str(tmp_path / "few.h5ad")]) == 2
    assert "lacks 10 of the 40 genes" in capsys.readouterr().err
    assert main([*fit, "--write", str(out), "--overwrite"]) == 0
    assert main([*fit, "--write", str(tmp_path / "x.csv"), "--overwrite"]) == 2
    assert main([*fit[:-2], str(tmp_path / "r2"), "--write", str(out)]) == 2
    assert "exists; choose another --write" in capsys.readouterr().err


def test_representations_and_bad_files(tmp_path, capsys):
    path = tmp_path / "cells.h5ad"
    cells().write_h5ad(path)
    data = coterie.load_data(path, use_rep="X_pca")
    assert data.X.shape == (60, 5) and data.kind == "vector"
    again = coterie.load_data(path, recipe=data.recipe)
    assert np.array_equal(again.X, data.X)
    with pytest.raises(ValueError, match="no obsm 'X_umap'; it has: X_pca"):
        coterie.load_data(path, use_rep="X_umap")
    with pytest.raises(ValueError, match=r"no obs column 'kinds'.*kind"):
        coterie.load_data(path, label_column="kinds")
    with pytest.raises(ValueError, match=r'use_rep="X_pca" does not apply'):
        coterie.load_data(np.ones((4, 3)), use_rep="X_pca")
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ValueError, match=r"cannot read .* as AnnData"):
        coterie.load_data(path)
    adata = cells()
    adata.X = adata.X.toarray()
    adata.X[3, 4] = np.nan
    adata.write_h5ad(path)
    with pytest.raises(ValueError, match=r"1 values are missing or infinite.*row 3"):
        coterie.load_data(path)


@pytest.mark.parametrize("packed", [False, True])
def test_10x_folders(tmp_path, packed):
    adata, folder = cells(), tmp_path / "filtered"
    folder.mkdir()
    scipy.io.mmwrite(folder / "matrix.mtx", sp.coo_matrix(adata.X.T))
    (folder / "barcodes.tsv").write_text("\n".join(adata.obs_names) + "\n")
    genes = [f"ENS{i}\t{'dup' if i < 2 else name}\tGene" for i, name in enumerate(adata.var_names)]
    (folder / "features.tsv").write_text("\n".join(genes) + "\n")
    if packed:
        for path in list(folder.iterdir()):
            with gzip.open(f"{path}.gz", "wb") as file:
                file.write(path.read_bytes())
            path.unlink()
    data = coterie.load_data(folder)
    assert data.kind == "counts" and sp.issparse(data.X) and (data.X != adata.X).nnz == 0
    assert data.ids[:2] == ["cell0", "cell1"]
    assert data.columns[:3] == ["dup (ENS0)", "dup (ENS1)", "gene2"]
    name = f"barcodes.tsv{'.gz' if packed else ''}"
    (folder / name).unlink()
    with pytest.raises(ValueError, match=r"has no barcodes\.tsv"):
        coterie.load_data(folder)
