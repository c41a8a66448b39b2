"""A fitted model as an ONNX file: rows as the user has them in, labels and probabilities out."""

import contextlib
import io
import logging
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from .estimator.base import Clusterer
from .methods.baselines.spectral import Transductive
from .storage.atomic import write_atomic

OPSET = 18
PREDICT_ROWS = 4096


class ExportError(ValueError):
    """This model cannot become an ONNX file; the message says why."""


class _Constants:
    """A head whose single numbers are Python's: a graph cannot look at the value of a tensor."""

    def __init__(self, head: Any):
        self._head = head
        tensors = {name: getattr(head, name) for names in head.kinds.values() for name in names}
        self._numbers = {name: t.item() for name, t in tensors.items() if t.ndim == 0}

    def __getattr__(self, name: str) -> Any:
        return self._numbers[name] if name in self._numbers else getattr(self._head, name)

    def __contains__(self, name: str) -> bool:
        return name in self._head


class _Whole(nn.Module):
    """Scaling, encoder and assignment: (b, *input shape) float32 -> (b,) int64, (b, k) float32."""

    def __init__(self, model: Any):
        super().__init__()
        self.network, self.head, self._model = model.network_, model.head_, model
        counting = getattr(model, "counting_", None)
        self._depth = None if counting is None else counting.depth
        chosen = torch.from_numpy(np.array([] if counting is None else counting.columns, np.int64))
        self.register_buffer("columns", chosen)
        self._constants = _Constants(model.head_)
        self.register_buffer("shift", torch.from_numpy(np.array(model.scaling_.shift, np.float32)))
        self.register_buffer(
            "factor", torch.from_numpy(np.array(model.scaling_.factor, np.float32))
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self._depth is not None:
            share = self._depth / x.sum(1, keepdim=True).clamp_min(1)
            x = (x[:, self.columns] * share).log1p()
        x = (x - self.shift) * self.factor
        if x.ndim == 3:
            x = x.unsqueeze(1)
        elif x.ndim == 4:
            x = x.permute(0, 3, 1, 2)
        latents = self.network.encode(x)
        scores = self._model.assign(latents, self._constants)
        return self._model.labels_of(scores, latents), self._model.probabilities(scores)


def export_onnx(model: Clusterer, path: str | os.PathLike) -> Path:
    """Write `model` to an ONNX file with the input `x` and the outputs `labels` and `proba`.

    `x` is float32 in the shape and the units of the rows that the model was fitted on; the number
    of rows is free.
    """
    check_is_fitted(model, "head_")
    if isinstance(model, Transductive):
        raise ExportError(
            f"{model.key} labels a new row by its nearest training rows and has no encoder to "
            "export (as spectral, umap_gmm and leiden); use another method, or coterie predict"
        )
    encoding = getattr(model, "encoding_", None)
    if encoding is not None:
        raise ExportError(
            f"this model has its rows embedded by the encoder {encoding.reference}, which an ONNX "
            "file of the clusters does not hold; use coterie predict, or fit on the vectors"
        )
    if np.asarray(model.scaling_.shift).dtype == np.float64:
        raise ExportError(
            "some columns are so far from zero that float32, the type of the exported model's "
            "input, would round them away; subtract a constant from them, or use coterie predict"
        )
    _need("onnx", "onnxscript")
    example = torch.zeros(2, *model.input_shape_)
    try:
        with _quiet(), torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "model.onnx"
            torch.onnx.export(
                _Whole(model).eval(),
                (example,),
                made,
                input_names=["x"],
                output_names=["labels", "proba"],
                dynamic_shapes=({0: torch.export.Dim("rows")},),
                opset_version=OPSET,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
            content = made.read_bytes()
    except Exception as error:
        first = str(error.__cause__ or error).strip().split("\n")[0]
        raise ExportError(
            f"torch cannot write this {model.key} model as ONNX ({first}); "
            "a network of your own may use what ONNX does not know"
        ) from error
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, content)
    return Path(path)


class OnnxModel:
    """An exported model on onnxruntime: `predict` and `predict_proba`, in chunks."""

    def __init__(self, path: str | os.PathLike, threads: int = 0):
        _need("onnxruntime")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        providers = ["CPUExecutionProvider"]
        try:
            self.session = onnxruntime.InferenceSession(
                os.fspath(path), options, providers=providers
            )
        except Exception as error:  # onnxruntime's own, which share no base
            raise ExportError(
                f"{path} is damaged or not an ONNX model ({type(error).__name__}); export it again"
            ) from error

    def predict(self, X: Any) -> np.ndarray:  # (n,) int64
        return self._run(X, "labels")[0]

    def predict_proba(self, X: Any) -> np.ndarray:  # (n, k) float32
        return self._run(X, "proba")[0]

    def predict_both(self, X: Any) -> list[np.ndarray]:
        return self._run(X, "labels", "proba")

    def _run(self, X: Any, *outputs: str) -> list[np.ndarray]:
        parts: list[Any] = []
        for start in range(0, X.shape[0], PREDICT_ROWS):
            rows = X[start : start + PREDICT_ROWS]
            rows = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
            rows = np.ascontiguousarray(rows, dtype=np.float32)
            parts.append(self.session.run(list(outputs), {"x": rows}))
        return [np.concatenate(found) for found in zip(*parts)]


def _need(*packages: str) -> None:
    from importlib.util import find_spec

    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ImportError(f"ONNX needs {', '.join(missing)}: pip install 'coterie[onnx]'")


@contextlib.contextmanager
def _quiet():
    """The exporter talks on every channel that there is."""
    names = ("torch.onnx", "onnxscript", "onnx_ir", "torch.export", "torch.fx", "torch._dynamo")
    levels = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(logging.ERROR)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
