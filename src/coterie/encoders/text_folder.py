"""A folder in the Hugging Face layout: config.json, model.safetensors, tokenizer.json.

Where modules.json stands beside them, its chain is followed as sentence-transformers does:
transformer, pooling, dense layers, unit length.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from torch.nn import functional as F

from ..runtime.precision import quick_bfloat16
from .base import Encoder, EncoderError, read_settings
from .bert import Bert, check_config
from .digest import combined, file_digest
from .tokens import by_length, load_tokenizer, padded

FILES = ("config.json", "model.safetensors", "tokenizer.json")
LETTERS = 100  # of a token, at most: a text of a megabyte is cut before it is split
USUAL_TOKENS = 512
TOKENS = 2048  # at a time, so that they stay in the cache of the processor
POOLING = ("cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens")  # in this order
DENSE = {"Identity": lambda x: x, "Tanh": torch.tanh, "ReLU": torch.relu, "GELU": F.gelu}


class TextFolder(Encoder):
    """Texts -> vectors with the model of a folder."""

    takes = "text"
    batch_rows = 128  # enough to put texts of one length together

    def __init__(self, folder: Path, reference: str | None = None):
        self.folder = folder
        self.reference = reference or str(folder.resolve())
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise EncoderError(
                f"{folder} is not an encoder: {', '.join(missing)} is missing. It needs "
                f"{', '.join(FILES)}, as Hugging Face stores a model; a model without "
                "tokenizer.json gets one by AutoTokenizer.from_pretrained(...).save_pretrained(...)"
            )
        self.config = self._json("config.json")
        check_config(self.config)
        self.chain = self._chain()
        used = [*FILES, "modules.json", "sentence_bert_config.json"]
        used += ["config_sentence_transformers.json"]
        for module in self.chain:
            used += [f"{module['path']}/config.json", f"{module['path']}/model.safetensors"]
        present = [name for name in dict.fromkeys(used) if (folder / name).is_file()]
        self.digest = combined(
            part for name in present for part in (name, file_digest(folder / name))
        )

    def settings(self, rows: Any) -> dict:
        """In bfloat16 a vector keeps its direction (cosine above .9999) at a third of the time."""
        return {"products": "bfloat16"} if quick_bfloat16() else {}

    @torch.inference_mode()
    def embed(self, batch: Any, settings: dict) -> np.ndarray:
        prompt, most = self.prompt, LETTERS * self.most_tokens
        pieces = self.tokenizer.encode_batch([prompt + text[:most] for text in batch])
        products = getattr(torch, settings.get("products", "float32"))
        order, parts = by_length([len(piece.ids) for piece in pieces], TOKENS)
        found = [self._embed([pieces[i] for i in part], products) for part in parts]
        return torch.cat(found)[order].numpy()

    def _embed(self, pieces: list, products: torch.dtype) -> torch.Tensor:
        tokens, mask = padded(pieces, self.network.padding)
        z = self._pool(self.network(tokens, mask, products), mask.unsqueeze(2).float())
        for layer in self.dense:
            z = layer(z)
        return z

    @property
    def most_tokens(self) -> int:
        asked = self._json("sentence_bert_config.json").get("max_seq_length")
        places = self.config.get("max_position_embeddings", USUAL_TOKENS)
        places -= 2 if self.config.get("model_type", "bert") != "bert" else 0
        return int(min(asked or USUAL_TOKENS, places))

    @property
    def prompt(self) -> str:
        about = self._json("config_sentence_transformers.json")
        return (about.get("prompts") or {}).get(about.get("default_prompt_name"), "") or ""

    @cached_property
    def tokenizer(self) -> Any:
        return load_tokenizer(self.folder / "tokenizer.json", self.most_tokens)

    @cached_property
    def network(self) -> Bert:
        try:
            return Bert(self.config, self._tensors("model.safetensors"))
        except KeyError as error:
            raise EncoderError(f"{self.folder}: config.json lacks {error}") from None

    @cached_property
    def dense(self) -> list:
        return [self._dense(module["path"]) for module in self.chain if module["type"] == "Dense"]

    def _chain(self) -> list[dict]:
        """Modules behind the transformer: their type, and the folder of their settings."""
        path = self.folder / "modules.json"
        if not path.is_file():
            return []
        found = [
            {"type": str(module["type"]).split(".")[-1], "path": module["path"]}
            for module in self._json("modules.json")
        ]
        odd = [m["type"] for m in found[1:] if m["type"] not in ("Pooling", "Dense", "Normalize")]
        if odd:
            raise EncoderError(
                f"{self.folder} ends in {odd[0]}, which coterie does not compute; install "
                "sentence-transformers and write st:FOLDER"
            )
        return found[1:]

    def _pool(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(b, t, d), (b, t, 1) -> (b, d), or one such part after the other."""
        count, parts = mask.sum(1).clamp_min(1e-9), []
        for mode in self.pooling:
            if mode == "cls_token":
                parts.append(states[:, 0])
            elif mode == "max_tokens":
                parts.append(states.masked_fill(mask == 0, -torch.inf).amax(1))
            else:
                total = (states * mask).sum(1)
                parts.append(total / (count if mode == "mean_tokens" else count.sqrt()))
        return torch.cat(parts, 1)

    @cached_property
    def pooling(self) -> list[str]:
        module = next((m for m in self.chain if m["type"] == "Pooling"), None)
        if module is None:
            return ["mean_tokens"]
        about = self._json(f"{module['path']}/config.json")
        if "pooling_mode" in about:  # the short form of later versions
            asked = about["pooling_mode"]
            names = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens"}
            names["mean_sqrt_len_tokens"] = "mean_sqrt_len_tokens"
            chosen = [names.get(m, m) for m in ([asked] if isinstance(asked, str) else asked)]
        else:
            prefix = "pooling_mode_"
            chosen = [k.removeprefix(prefix) for k, on in about.items() if on is True]
            chosen = [name for name in chosen if f"{prefix}{name}" in about]
        if not chosen or set(chosen) - set(POOLING):
            raise EncoderError(
                f"{self.folder} pools by {', '.join(chosen) or 'nothing'}; coterie computes "
                f"{', '.join(POOLING)}. Install sentence-transformers and write st:FOLDER"
            )
        return [mode for mode in POOLING if mode in chosen]

    def _dense(self, path: str):
        state = self._tensors(f"{path}/model.safetensors")
        name = str(self._json(f"{path}/config.json").get("activation_function", "Identity"))
        activation = DENSE.get(name.split(".")[-1])
        if activation is None:
            raise EncoderError(f"{self.folder}/{path} has activation {name}, unknown to coterie")
        return lambda z: activation(F.linear(z, state["linear.weight"], state.get("linear.bias")))

    def _json(self, name: str) -> Any:
        path = self.folder / name
        return read_settings(path) if path.is_file() else {}

    def _tensors(self, name: str) -> dict[str, torch.Tensor]:
        path = self.folder / name
        try:
            return parse_tensors(path.read_bytes())
        except (SafetensorError, OSError) as error:
            raise EncoderError(
                f"{path} is damaged or missing ({error}); get it from its source again"
            ) from None
