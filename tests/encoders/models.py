"""Tiny encoders on disk: a BERT folder in the Hugging Face layout, ONNX files."""

import json

import torch
from safetensors.torch import save_file

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [*SPECIAL, "red", "green", "blue", "dog", "cat", "bird", "runs", "sings"]
CONFIG = {
    "model_type": "bert",
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 16,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
    "pad_token_id": 0,
    "vocab_size": len(WORDS),
}


def bert_state(config, seed=0):
    generator = torch.Generator().manual_seed(seed)
    d, wide = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], d),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], d),
        "embeddings.token_type_embeddings.weight": (2, d),
        "embeddings.LayerNorm.weight": (d,),
        "embeddings.LayerNorm.bias": (d,),
    }
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}."
        for part, (out, into) in {
            "attention.self.query": (d, d),
            "attention.self.key": (d, d),
            "attention.self.value": (d, d),
            "attention.output.dense": (d, d),
            "intermediate.dense": (wide, d),
            "output.dense": (d, wide),
        }.items():
            shapes |= {f"{name}{part}.weight": (out, into), f"{name}{part}.bias": (out,)}
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{name}{part}.weight": (d,), f"{name}{part}.bias": (d,)}
    return {k: torch.randn(shape, generator=generator) for k, shape in shapes.items()}


def bert_folder(folder, seed=0, pooling=None, tokens=8, **config):
    """A folder with a random BERT, its tokenizer, and sentence-transformers' files if pooled."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    folder.mkdir(parents=True, exist_ok=True)
    config = CONFIG | config
    (folder / "config.json").write_text(json.dumps(config))
    save_file(bert_state(config, seed), folder / "model.safetensors")
    splitter = Tokenizer(WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    splitter.pre_tokenizer = Whitespace()
    splitter.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    splitter.save(str(folder / "tokenizer.json"))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": tokens}))
    if pooling:
        modules = [
            {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "1_Pooling").mkdir(exist_ok=True)
        about = {"word_embedding_dimension": 8, **{f"pooling_mode_{p}": True for p in pooling}}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(about))
    return folder


def onnx_means(path, side=6):
    """An ONNX file: the mean of each channel of an image of side x side."""
    import onnx
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["p"]),
        helper.make_node("Flatten", ["p"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", 3, side, side])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", 3])
    graph = helper.make_graph(nodes, "means", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, str(path))
    return path
