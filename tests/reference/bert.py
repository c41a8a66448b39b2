"""BERT with loops: one text, one token, one head, one number at a time."""

import math


def states(config, state, tokens):
    """Lists of lists of the last states of one text without padding."""
    d, heads = config["hidden_size"], config["num_attention_heads"]
    eps = config["layer_norm_eps"]

    def tensor(name):
        return state[name].tolist()

    def linear(x, name):
        weight, bias = tensor(f"{name}.weight"), tensor(f"{name}.bias")
        return [sum(w * v for w, v in zip(row, x)) + b for row, b in zip(weight, bias)]

    def norm(x, name):
        mean = sum(x) / len(x)
        variance = sum((v - mean) ** 2 for v in x) / len(x)
        scaled = [(v - mean) / math.sqrt(variance + eps) for v in x]
        weight, bias = tensor(f"{name}.weight"), tensor(f"{name}.bias")
        return [w * v + b for w, v, b in zip(weight, scaled, bias)]

    def add(a, b):
        return [x + y for x, y in zip(a, b)]

    words = tensor("embeddings.word_embeddings.weight")
    places = tensor("embeddings.position_embeddings.weight")
    kinds = tensor("embeddings.token_type_embeddings.weight")
    rows = [
        norm(add(add(words[token], places[i]), kinds[0]), "embeddings.LayerNorm")
        for i, token in enumerate(tokens)
    ]
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        q, k, v = (
            [linear(row, f"{name}.attention.self.{part}") for row in rows]
            for part in ("query", "key", "value")
        )
        mixed = []
        for i in range(len(rows)):
            out = []
            for head in range(heads):
                span = range(head * d // heads, (head + 1) * d // heads)
                logits = [
                    sum(q[i][c] * k[j][c] for c in span) / math.sqrt(d / heads)
                    for j in range(len(rows))
                ]
                top = max(logits)
                weights = [math.exp(value - top) for value in logits]
                total = sum(weights)
                for c in span:
                    out.append(sum(w * v[j][c] for j, w in enumerate(weights)) / total)
            mixed.append(out)
        after = []
        for row, out in zip(rows, mixed):
            attended = add(row, linear(out, f"{name}.attention.output.dense"))
            row = norm(attended, f"{name}.attention.output.LayerNorm")
            wide = linear(row, f"{name}.intermediate.dense")
            wide = [0.5 * value * (1 + math.erf(value / math.sqrt(2))) for value in wide]
            after.append(
                norm(add(row, linear(wide, f"{name}.output.dense")), f"{name}.output.LayerNorm")
            )
        rows = after
    return rows
