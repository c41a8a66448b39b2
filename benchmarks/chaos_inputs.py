"""Campaigns of chaos.py that damage: our own files, and files and arrays to read."""

import contextlib
import gzip
import io
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
from chaos_tools import METHODS, Workshop, command, named, quiet

WORDS = ("orbit", "moon", "rocket", "engine", "brake", "wheel", "butter", "onion", "garlic")


# -- bits of our own files ------------------------------------------------------------------
def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """One bit, a cut, a hole of zeros, or a piece that stands twice."""
    if not content:
        return b"\x00"
    kind, at = int(rng.integers(8)), int(rng.integers(len(content)))
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes(min(64, len(content) - at)) + content[at + 64 :]
    if kind == 2:
        return content[:at] + content[max(0, at - 16) :]
    return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]


def texts(shop: Workshop) -> Path:
    path = shop.folder / "texts.txt"
    if not path.exists():
        rng = np.random.default_rng(1)
        lines = [" ".join(rng.choice(WORDS[3 * (i % 3) :][:3], 9)) for i in range(60)]
        path.write_text("\n".join(lines) + "\n")
    return path


def targets(shop: Workshop) -> dict:
    """Runs, a checkpoint and a cached network, made once: what is read back, and how."""
    if hasattr(shop, "targets"):
        return shop.targets
    found = {}
    for name, data, method in (("table", shop.data, "dec"), ("text", texts(shop), "kith")):
        out = shop.fresh(f"sealed-{name}")
        words = shop.words(method, out)
        words[1] = data
        if name == "text":
            del words[2:4]
        code, said = command(words)
        assert code == 0, said
        found[name] = out, data
    shop.stopped = stop_in_the_middle(shop)
    cache = shop.fresh("cache")
    code, said = command(shop.words("dec", shop.fresh("cached"), "--cache-dir", cache))
    assert code == 0, said
    found["cache"] = cache, None
    shop.targets = found
    shop.sound = {name: answer(shop, name) for name in ("table", "text", "stopped", "cache")}
    return found


def stop_in_the_middle(shop: Workshop) -> Path:
    """A run with a checkpoint in the middle of its training."""
    from coterie.train.engine import Engine

    out, save = shop.fresh("stopped"), Engine._save

    def save_and_stop(self, extra):
        save(self, extra)
        if extra and self.phase.name == "train":
            raise KeyboardInterrupt

    Engine._save = save_and_stop
    try:
        code, said = command(shop.words("dec", out))
        assert code == 130, said
    finally:
        Engine._save = save
    return out


def answer(shop: Workshop, name: str):
    """What the commands make of a target: bytes, or the code and words of a refusal."""
    if name == "stopped":
        out = shop.fresh("resumed")
        shutil.copytree(shop.stopped, out)
        code, said = command(["fit", "--resume", "--out", out, "--no-baseline", "--quiet"])
        return (out / "labels.csv").read_bytes() if code == 0 else (code, said)
    if name == "cache":
        out = shop.fresh("from-cache")
        code, said = command(shop.words("dec", out, "--cache-dir", shop.targets["cache"][0]))
        return (out / "labels.csv").read_bytes() if code == 0 else (code, said)
    run, data = shop.targets[name]
    out = shop.folder / f"predicted-{name}.csv"
    code, said = command(["predict", run, data, "--out", out, "--overwrite"])
    if code:
        return code, said
    from coterie.storage import runs

    try:
        finished = runs.read(run)
        seen = (finished.labels.tolist(), finished.embedding.tolist(), len(finished.history))
    except runs.RunError as error:
        return 2, f"coterie: {error}"
    return out.read_bytes(), repr(seen)


def flips(shop: Workshop, rng: np.random.Generator, trial: int) -> str:
    """Damage one file of ours; every answer must be the sound one or a refusal that names it."""
    made = targets(shop)
    name = ("table", "text", "stopped", "cache")[int(rng.choice(4, p=[0.6, 0.25, 0.1, 0.05]))]
    root = shop.stopped if name == "stopped" else made[name][0]
    files = sorted(p for p in root.rglob("*") if p.is_file() and p.name != ".lock")
    path = files[int(rng.integers(len(files)))]
    content = path.read_bytes()
    changed = damaged(content, rng)
    try:
        path.write_bytes(changed)
        with quiet():
            found = answer(shop, name)
        where = f"{name}/{path.name}"
        if isinstance(found, tuple) and isinstance(found[0], int):
            return "" if named(*found) else f"unnamed: {where}: {found}"
        return "" if found == shop.sound[name] else f"wrong: {where}: another answer, no error"
    finally:
        path.write_bytes(content)


def forged(shop: Workshop, rng: np.random.Generator, trial: int) -> str:
    """A checkpoint whose digest is right and whose tensors have another shape or type."""
    import torch

    from coterie.storage.tensors import pack, unpack

    targets(shop)
    path = shop.stopped / "checkpoint/checkpoint.safetensors"
    content = path.read_bytes()
    tensors, about = unpack(path)
    name = sorted(tensors)[int(rng.integers(len(tensors)))]
    t = tensors[name]
    flat, kind = t.flatten(), int(rng.integers(6))
    if kind == 0:
        new = flat[:0]
    elif kind == 1:
        new = flat[: max(1, flat.numel() // 2)]
    elif kind == 2:
        new = torch.cat([flat, flat, flat])
    elif kind == 3:
        new = t.reshape(1, *t.shape)
    elif kind == 4:
        new = t.to([torch.float64, torch.int32, torch.bool, torch.float16][int(rng.integers(4))])
    else:
        new = torch.zeros([int(s) for s in rng.integers(0, 9, int(rng.integers(0, 4)))])
    if new.shape == t.shape and new.dtype == t.dtype:
        return ""
    try:
        path.write_bytes(pack({**tensors, name: new}, about))
        with quiet():
            found = answer(shop, "stopped")
        if isinstance(found, tuple):
            return "" if named(*found) else f"unnamed: {name} {tuple(new.shape)}: {found}"
        if name.startswith(("head.state", "head.rows")) and new.shape == t.shape:
            return ""  # a method may keep numbers of any type there
        same = found == shop.sound["stopped"] or name == "sums"  # means for the history only
        return "" if same else f"wrong: {name} {tuple(new.shape)} {new.dtype}: taken as it is"
    finally:
        path.write_bytes(content)


# -- files to read --------------------------------------------------------------------------
def samples(shop: Workshop) -> dict[str, bytes]:
    """A small sound file of each format."""
    if hasattr(shop, "samples"):
        return shop.samples
    import scipy.sparse as sp
    from PIL import Image

    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 4)).astype(np.float32)
    table = "a,b,c,d\n" + "\n".join(",".join(f"{v:.3f}" for v in row) for row in X) + "\n"
    lines = "".join(
        json.dumps({"text": " ".join(rng.choice(WORDS, 6)), "id": i}) + "\n" for i in range(12)
    )
    made = {".csv": table.encode(), ".tsv": table.replace(",", "\t").encode()}
    made |= {".csv.gz": gzip.compress(table.encode()), ".jsonl": lines.encode()}
    made |= {".jsonl.gz": gzip.compress(lines.encode()), ".txt": lines.encode()}

    def stored(write) -> bytes:
        out = io.BytesIO()
        write(out)
        return out.getvalue()

    made[".npy"] = stored(lambda f: np.save(f, X))
    made[".npz"] = stored(lambda f: np.savez_compressed(f, data=X, target=np.arange(12)))
    made["s.npz"] = stored(lambda f: sp.save_npz(f, sp.csr_matrix(X * (X > 0))))
    made["c.npz"] = stored(lambda f: sp.save_npz(f, sp.csc_matrix(X * (X > 0)), compressed=False))
    picture = Image.fromarray(rng.integers(0, 255, (9, 9, 3), dtype=np.uint8))
    for ending in (".png", ".jpg", ".bmp", ".gif", ".tiff", ".webp", ".ppm"):
        kind = {".jpg": "JPEG", ".tiff": "TIFF"}.get(ending, ending[1:].upper())
        made[ending] = stored(lambda f, k=kind: picture.save(f, k))
    try:
        import pyarrow as pa
        from pyarrow.parquet import write_table

        columns = pa.table({name: X[:, i] for i, name in enumerate("abcd")})
        made[".parquet"] = stored(lambda f: write_table(columns, f))
    except ImportError:
        pass
    made |= archives(X, stored, made[".png"])
    shop.samples = made
    return made


def archives(X: np.ndarray, stored, picture: bytes) -> dict[str, bytes]:
    """Sound files of the formats that need an extra, where it is there, and a zip of pictures."""
    import zipfile

    def pictures(file) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for i in range(4):
                packed.writestr(f"{i}.png", picture)

    made = {".zip": stored(pictures)}
    with contextlib.suppress(ImportError):
        from openpyxl import Workbook

        book = Workbook()
        for row in (["a", "b", "c", "d"], *X.tolist()):
            book.active.append(row)
        made[".xlsx"] = stored(book.save)
    with contextlib.suppress(ImportError):
        import pyarrow as pa
        from pyarrow import feather, ipc

        columns = pa.table({name: X[:, i] for i, name in enumerate("abcd")})
        made[".feather"] = stored(lambda f: feather.write_feather(columns, f, "zstd"))

        def stream(file) -> None:
            with ipc.new_stream(file, columns.schema) as out:
                out.write_table(columns)

        made[".arrow"] = stored(stream)
    with contextlib.suppress(ImportError):
        import anndata
        import pandas as pd

        cells = anndata.AnnData(X, pd.DataFrame(index=[f"c{i}" for i in range(len(X))]))
        with tempfile.TemporaryDirectory() as folder:
            cells.write_h5ad(Path(folder) / "x.h5ad")
            made[".h5ad"] = (Path(folder) / "x.h5ad").read_bytes()
    return made


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Several changes, most of them near the beginning, where headers are."""
    for _ in range(int(rng.integers(1, 5))):
        at = int(len(content) * rng.beta(0.6, 1.4))
        kind = int(rng.integers(7))
        if kind == 0:
            content = content[:at]
        elif kind == 1:
            content = content[:at] + rng.bytes(int(rng.integers(1, 9))) + content[at:]
        elif kind == 2:
            content = content[:at] + content[at + int(rng.integers(1, 9)) :]
        elif kind == 3:
            content = content[:at] + b"\xff" * 4 + content[at + 4 :]
        elif kind == 4:
            piece = (b"9" * 4999, b"[" * 9999, b"\x00" * 99, b"nan,inf,-inf", b"1e999", b'"')
            content = content[:at] + piece[int(rng.integers(6))] + content[at:]
        elif at < len(content):
            flip = content[at] ^ (1 << int(rng.integers(8)))
            content = content[:at] + bytes([flip]) + content[at + 1 :]
    return content


def fuzz(shop: Workshop, rng: np.random.Generator, trial: int) -> str:
    """A damaged file is read, or refused by an error with a name."""
    from coterie.data import DataError, load

    made = samples(shop)
    # HDF5's own library goes round in circles on some damaged heaps, where no reader can stop it
    endings = sorted(set(made) - {".h5ad"})
    ending = endings[int(rng.integers(len(endings)))]
    path = shop.folder / f"fuzz{ending if ending[0] == '.' else '-' + ending}"
    path.write_bytes(mutated(made[ending], rng))
    with quiet():
        try:
            X = load(path, notice=lambda text: None).X
        except DataError:
            return ""
        except Exception as error:
            return f"unnamed: {ending}: {type(error).__name__}: {error}"
    values = X.data if hasattr(X, "indptr") else np.asarray(X)
    sound = values.dtype.kind in "iub" or np.isfinite(values).all()
    return "" if sound else f"wrong: {ending}: NaN or infinity came through"


# -- arrays to fit --------------------------------------------------------------------------
def absurd(rng: np.random.Generator):
    """Rows that somebody may give."""
    n, d = int(rng.choice([0, 1, 2, 3, 7, 40, 90])), int(rng.choice([0, 1, 2, 5, 30]))
    X = rng.normal(size=(n, d)) + 5 * rng.integers(0, 3, (n, 1))
    kind = int(rng.integers(12))
    if kind == 0:
        X = X * 10.0 ** rng.integers(-320, 308)
    elif kind == 1 and X.size:
        X.flat[int(rng.integers(X.size))] = rng.choice([np.nan, np.inf, -np.inf, 1e300, 8e37])
    elif kind == 2:
        X = np.full((n, d), rng.choice([0.0, -0.0, 1.0, 1e-45, 1e18]))
    elif kind == 3:
        X = X.astype(rng.choice(["f2", "f4", "f8", "i1", "u1", "i4", "i8", "u8", "?", "g"]))
    elif kind == 4:
        X = np.repeat(X[:1], n, axis=0) if n else X
    elif kind == 5:
        X = X.astype(object)
    elif kind == 6:
        X = X + 1.7e18
    elif kind == 7:
        X = rng.integers(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (n, d))
    elif kind == 8:
        X = X.astype("U9")
    elif kind == 9:
        X = X.reshape(n, d, 1) if rng.integers(2) else X.reshape(n * d)
    elif kind == 10:
        X = X[:, ::-1].T.copy().T if d else X
    return X


def extremes(shop: Workshop, rng: np.random.Generator, trial: int) -> str:
    """Absurd rows end in labels for all of them, or in an error with a name."""
    from coterie import registry
    from coterie.train.batch import TrainingError

    X, k = absurd(rng), int(rng.choice([1, 2, 3, 3, 3, 50]))
    key = str(rng.choice(METHODS))
    cls = registry.get(key)
    scale = str(rng.choice(["auto", "auto", "none", "unit", "standard"]))
    where = f"{key}(k={k}, scale={scale}) on {X.dtype} {X.shape}"
    with quiet(), np.errstate(all="ignore"):
        try:
            model = cls(k, random_state=0, scale=scale, **cls.tiny).fit(X)
            z, labels = model.transform(X), model.predict(X)
        except (ValueError, TypeError, TrainingError):
            return ""
        except Exception as error:
            return f"unnamed: {where}: {type(error).__name__}: {str(error)[:200]}"
    sound = np.isfinite(z).all() and len(labels) == len(X) and set(labels) <= set(range(k))
    return "" if sound and np.array_equal(labels, model.labels_) else f"wrong: {where}"
