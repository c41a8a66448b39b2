"""BERT and RoBERTa encoders in plain torch, from the weights as Hugging Face stores them.

Devlin et al. 2019. Layer norm after each part, GELU, absolute positions; without dropout, because
nothing is trained here. Products may be computed in bfloat16; sums along the way and layer norms
stay float32.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .base import EncoderError

OFFSET = {"bert": 0, "roberta": 1, "xlm-roberta": 1, "camembert": 1}  # of positions after padding
ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
}
PRODUCTS = {
    "attention": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "output": ("attention.output.dense",),
    "wide": ("intermediate.dense",),
    "narrow": ("output.dense",),
}


class Bert(nn.Module):
    """Tokens (b, t) and their mask (b, t) -> states (b, t, d)."""

    def __init__(self, config: dict, state: dict[str, torch.Tensor]):
        super().__init__()
        self.kind = check_config(config)
        self.heads, self.eps = config["num_attention_heads"], config.get("layer_norm_eps", 1e-12)
        self.act = ACTIVATIONS[config.get("hidden_act", "gelu")]
        self.padding = config.get("pad_token_id", 0) or 0
        self.state, prefix = {}, _prefix(state)
        for name, value in state.items():
            if name.startswith((f"{prefix}embeddings.", f"{prefix}encoder.layer.")):
                self.state[name.removeprefix(prefix)] = value.float()
        self.layers = config["num_hidden_layers"]
        self._packed: dict[torch.dtype, list[dict]] = {}

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor, products: torch.dtype = torch.float32
    ) -> torch.Tensor:
        x = self._embeddings(tokens, mask)
        # tokens that are padding get no attention; without any, the quicker kernel is free to run
        seen = None if bool(mask.all()) else mask.bool()[:, None, None]
        for i, weights in enumerate(self._weights(products)):
            x = self._layer(x, seen, f"encoder.layer.{i}.", weights, products)
        return x

    def _embeddings(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if OFFSET[self.kind]:  # RoBERTa counts after the padding token's number
            places = mask.cumsum(1) * mask + self.padding
        else:
            places = torch.arange(tokens.shape[1]).expand_as(tokens)
        name = "embeddings."
        x = F.embedding(tokens, self.state[f"{name}word_embeddings.weight"])
        x = x + F.embedding(places, self.state[f"{name}position_embeddings.weight"])
        x = x + self.state[f"{name}token_type_embeddings.weight"][0]
        return self._norm(x, f"{name}LayerNorm")

    def _layer(
        self,
        x: torch.Tensor,
        seen: torch.Tensor | None,
        name: str,
        weights: dict[str, tuple],
        products: torch.dtype,
    ) -> torch.Tensor:
        (b, t, d), heads = x.shape, self.heads
        three = F.linear(x.to(products), *weights["attention"]).view(b, t, 3, heads, d // heads)
        query, key, value = three.permute(2, 0, 3, 1, 4)  # (b, heads, t, d / heads) each
        y = F.scaled_dot_product_attention(query, key, value, seen)
        y = F.linear(y.transpose(1, 2).reshape(b, t, d), *weights["output"])
        x = self._norm(x + y, f"{name}attention.output.LayerNorm")
        y = F.linear(self.act(F.linear(x.to(products), *weights["wide"])), *weights["narrow"])
        return self._norm(x + y, f"{name}output.LayerNorm")

    def _weights(self, products: torch.dtype) -> list[dict]:
        """Weights and biases of the four products of each layer."""
        if products not in self._packed:
            self._packed[products] = [
                {
                    part: tuple(self._joined(i, names, end, products) for end in ("weight", "bias"))
                    for part, names in PRODUCTS.items()
                }
                for i in range(self.layers)
            ]
        return self._packed[products]

    def _joined(self, layer: int, names: tuple, end: str, products: torch.dtype) -> torch.Tensor:
        parts = [self.state[f"encoder.layer.{layer}.{name}.{end}"] for name in names]
        return (torch.cat(parts) if len(parts) > 1 else parts[0]).to(products)

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = self.state[f"{name}.weight"], self.state[f"{name}.bias"]
        return F.layer_norm(x, x.shape[-1:], weight, bias, self.eps)


def check_config(config: Any) -> str:
    """The model type, or an error that names what cannot be computed here."""
    kind = config.get("model_type", "bert")
    if kind not in OFFSET:
        raise EncoderError(
            f"the encoder is a {kind!r} model; coterie itself computes {', '.join(OFFSET)}. "
            "Install sentence-transformers and write st:FOLDER, or export it to ONNX"
        )
    odd = {
        "position_embedding_type": config.get("position_embedding_type", "absolute") != "absolute",
        "hidden_act": config.get("hidden_act", "gelu") not in ACTIVATIONS,
    }
    for name, is_odd in odd.items():
        if is_odd:
            raise EncoderError(
                f"the encoder has {name}={config[name]!r}, which coterie does not compute; install "
                "sentence-transformers and write st:FOLDER, or export it to ONNX"
            )
    return kind


def _prefix(state: dict) -> str:
    """Some files store a model inside another: bert.embeddings..., roberta.embeddings..."""
    name = next((n for n in state if n.endswith("embeddings.word_embeddings.weight")), None)
    if name is None:
        raise EncoderError(
            "the weights hold no 'embeddings.word_embeddings.weight': they are not those of BERT"
        )
    return name.removesuffix("embeddings.word_embeddings.weight")
