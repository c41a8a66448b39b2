"""What comes into fit and predict, once it is numbers."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data  # pyrefly: ignore  (no types)

from ..data.arrays import channels_last, check_sparse, from_tensor
from ..data.frames import check_columns, is_frame
from ..data.options import warn
from ..data.ranges import warn_other_unit


def check_rows(model: Any, X: Any, known: bool = False, reset: bool = False) -> Any:
    """Anything array-like -> ndarray, memory map or CSR with finite numbers (checked later).

    `known`: these are the columns of the fit, whose names need not be asked for.
    """
    if isinstance(X, torch.Tensor):
        X = from_tensor(X)
    if is_frame(X):
        check_columns(X)
    if sp.issparse(X):
        check_sparse(X, "X")
    if isinstance(X, np.ndarray) and X.ndim == 4:
        X = channels_last(X, "X", warn)
    if isinstance(X, np.memmap) and X.ndim >= 2 and X.dtype.kind in "fiub" and X.shape[0] > 1:
        # scikit-learn's check would read the whole file into memory
        if not known:
            validate_data(model, X, reset=reset, skip_check_array=True)
        source: Any = X
    else:
        how: dict = {
            "accept_sparse": "csr",
            "allow_nd": True,
            "ensure_min_samples": 2 if reset else 1,
            "dtype": None if _numeric(X) else "numeric",
            "ensure_all_finite": False,
        }
        source = check_array(X, **how) if known else validate_data(model, X, reset=reset, **how)
    if sp.issparse(source) and not source.has_canonical_format:
        source = source.copy()  # the halves of an entry are one number
        source.sum_duplicates()
    if not sp.issparse(source) and source.dtype.kind not in "fiub":
        source = source.astype(np.float32)
    if source.ndim > 2 and 0 in source.shape:
        raise ValueError(f"Found array of shape {source.shape}: its images have 0 pixels")
    if not sp.issparse(source) and source.ndim > 4:
        raise ValueError(
            f"Found array with dim {source.ndim}; images are (n, h, w) or (n, h, w, c)"
        )
    if not reset and tuple(source.shape[1:]) != model.input_shape_:
        raise ValueError(
            f"X has rows of shape {tuple(source.shape[1:])}, but {type(model).__name__} was "
            f"fitted with {model.input_shape_}; give rows of that shape"
        )
    if not reset and source.ndim > 2 and model.scaling_.choice == "unit":
        warn_other_unit(source, 1 / float(model.scaling_.factor))
    return source


def _numeric(X: Any) -> bool:
    return getattr(getattr(X, "dtype", None), "kind", "O") in "fiub"
