"""BERT and RoBERTa encoders in plain torch, from the weights as Hugging Face stores them.

Devlin et al. 2019. Layer norm after each part, GELU, absolute positions; without dropout, because
nothing is trained here.
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

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self._embeddings(tokens, mask)
        # hidden tokens get no attention: -inf before the softmax
        hidden = torch.zeros(mask.shape).masked_fill(~mask.bool(), -torch.inf)[:, None, None]
        for i in range(self.layers):
            x = self._layer(x, hidden, f"encoder.layer.{i}.")
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

    def _layer(self, x: torch.Tensor, hidden: torch.Tensor, name: str) -> torch.Tensor:
        b, t, d = x.shape

        def split(part: str) -> torch.Tensor:  # (b, heads, t, d / heads)
            z = self._linear(x, f"{name}attention.self.{part}")
            return z.view(b, t, self.heads, d // self.heads).transpose(1, 2)

        y = F.scaled_dot_product_attention(split("query"), split("key"), split("value"), hidden)
        y = self._linear(y.transpose(1, 2).reshape(b, t, d), f"{name}attention.output.dense")
        x = self._norm(x + y, f"{name}attention.output.LayerNorm")
        y = self.act(self._linear(x, f"{name}intermediate.dense"))
        return self._norm(x + self._linear(y, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, self.state[f"{name}.weight"], self.state[f"{name}.bias"])

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
