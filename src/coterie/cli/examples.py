"""Two examples for each command, shown under its options."""

EXAMPLES = {
    "fit": (
        "coterie fit photos/ --clusters 12 --encoder image --out runs/photos --report",
        "coterie fit customers.csv --clusters 5 --id-column name --method idec --time-budget 5m",
    ),
    "predict": (
        "coterie predict runs/photos new_photos/ --out labels.csv",
        "coterie predict runs/customers new_customers.csv --proba",
    ),
    "export": (
        "coterie export runs/customers --onnx",
        "coterie export runs/photos --onnx --out photos.onnx",
    ),
    "evaluate": (
        "coterie evaluate runs/digits",
        "coterie evaluate runs/customers --labels known.csv",
    ),
    "report": (
        "coterie report runs/photos",
        "coterie report runs/customers --labels known.csv",
    ),
    "compare": (
        "coterie compare digits --methods kith,dec --clusters 10 --seeds 3 --out runs/three",
        "coterie compare customers.csv --methods kith,gmm --clusters 5 --out runs/two --report",
    ),
    "select-k": (
        "coterie select-k customers.csv --from 2 --to 12 --out runs/select",
        "coterie select-k digits --method kmeans --from 5 --to 15",
    ),
    "methods": ("coterie methods", "coterie fit --method dkm --help"),
    "datasets": ("coterie datasets", "coterie datasets --fetch usps,mnist"),
    "bench": (
        "coterie bench usps --methods dec:p,kith --seeds 5 --ledger mine.jsonl",
        "coterie bench --show usps --methods dec",
    ),
    "paper": ("coterie paper", "coterie paper cnet:table1 --show"),
    "demo": ("coterie demo", "coterie demo --method dec --out runs/dec"),
    "completion": (
        "coterie completion bash > ~/.local/share/bash-completion/completions/coterie",
        "coterie completion fish > ~/.config/fish/completions/coterie.fish",
    ),
}


def epilog(prog: str) -> str | None:
    """The examples of ``coterie COMMAND``."""
    lines = EXAMPLES.get(prog.removeprefix("coterie "))
    return "examples:\n" + "\n".join(f"  {line}" for line in lines) if lines else None
