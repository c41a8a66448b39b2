"""``coterie export``: the model of a run in a format that other programs read."""

from pathlib import Path

from coterie.storage import runs

from .method_args import Parser, UsageError


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie export",
        usage="coterie export RUN --onnx [--out FILE]",
        description="Write the model of a run, with its scaling, as one ONNX file. It takes x\n"
        "(float32, in the units of the data, any number of rows) and returns labels and proba.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of an earlier fit")
    parser.add_argument("--onnx", action="store_true", help="write ONNX (the only format)")
    parser.add_argument("--out", metavar="FILE", help="output file (default: RUN/model.onnx)")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE")
    args = parser.parse_strictly(argv)
    if not args.onnx:
        raise UsageError(f"name the format: coterie export {args.run} --onnx")
    finished = runs.read(args.run)
    out = Path(args.out) if args.out else finished.path / "model.onnx"
    if out.exists() and not args.overwrite:
        raise UsageError(f"{out} exists; choose another --out or use --overwrite")

    import coterie
    from coterie.export import export_onnx

    finished.verify(*runs.MODEL)
    model = coterie.load(finished.path)
    export_onnx(model, out)
    if out.resolve() == (finished.path / "model.onnx").resolve():
        finished.add("model.onnx")
    shape = ", ".join(map(str, model.input_shape_))
    print(f"{out}: x (rows, {shape}) float32 -> labels, proba; {out.stat().st_size / 1e6:.1f} MB")
    return 0
