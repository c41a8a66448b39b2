"""Made-up data sets in the files of the real ones: right names, shapes, sizes and value ranges."""

import gzip
import json

import numpy as np

from coterie.data.sets import named, stored

# of the real set: its variants take the first rows of each class
USPS_CLASSES = (1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821)
SHAPES = {"coil20": (128, 128), "worm_neuron_cells": (2500,)}  # as stored; others are as read
TOP = {"usps": 1.0, "pendigits": 100, "optdigits": 16, "wholesale": 100_000}  # others are bytes
EXTRA = {"gtsrb_test": ("superclass", 6), "coil20": ("pose", 72), "wholesale": ("region", 3)}


def write(name, folder):
    """Write a stored set with as many rows and classes as the catalogue says."""
    entry = named.CATALOGUE[name]
    if name == "usps":
        labels = np.repeat(np.arange(10), USPS_CLASSES)
    else:
        labels = np.arange(entry.rows) % entry.classes
    paths = [folder / file for file in stored.STORED[name].files]
    paths[0].parent.mkdir()
    if entry.kind == "text":
        _write_texts(paths[0], labels)
    elif entry.kind == "counts":
        _write_counts(paths, labels)
    else:
        images = _rows(labels, SHAPES.get(name, entry.shape), TOP.get(name, 255))
        if len(paths) == 4:
            _write_idx(paths, images, labels)
        else:
            extra = {key: labels % n for key, n in [EXTRA[name]]} if name in EXTRA else {}
            np.savez_compressed(paths[0], data=images, target=labels, **extra)


def _rows(labels, shape, top):
    """Rows of zeros but for three values: the largest, one of the class, one of the row."""
    kind = np.float32 if top == 1 else np.int32 if top > 255 else np.uint8
    rows = np.zeros((len(labels), int(np.prod(shape))), kind)
    rows[:, 0] = top
    rows[:, 1] = top * (labels + 1) / (labels.max() + 1)
    rows[:, 2] = top * np.random.default_rng(0).random(len(labels))
    return rows.reshape(-1, *shape)


def _write_idx(paths, images, labels):
    border = len(labels) - 10_000
    for part, (pixels, classes) in enumerate(
        [(images[:border], labels[:border]), (images[border:], labels[border:])]
    ):
        header = np.array([2051, *pixels.shape], ">i4").tobytes()
        paths[2 * part].write_bytes(gzip.compress(header + pixels.tobytes(), 1))
        header = np.array([2049, len(classes)], ">i4").tobytes()
        content = classes.astype(np.uint8).tobytes()
        paths[2 * part + 1].write_bytes(gzip.compress(header + content, 1))


def _write_texts(path, labels):
    """Three words of the class, then one of 2,100 others in turn: more than texts are read by."""
    with gzip.open(path, "wt", compresslevel=1) as file:
        for row, label in enumerate(labels.tolist()):
            text = f"topic{label} subject{label} matter{label} word{row % 2100} word{row % 2099}"
            record = {"label": label, "category": f"about.{label:02d}", "text": text}
            file.write(json.dumps(record) + "\n")


def _write_counts(paths, labels):
    from scipy import sparse

    counts = np.random.default_rng(0).poisson(0.2, (len(labels), *SHAPES["worm_neuron_cells"]))
    counts[np.arange(len(labels)), labels] += 20
    sparse.save_npz(paths[0], sparse.csr_matrix(counts.astype(np.int32)))
    np.save(paths[1], labels)
