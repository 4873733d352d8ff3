"""What Hugging Face's transformers make of the same files; it runs in an environment of its own, without the course.

    python parity_with_transformers.py SMOLLM2.gguf TEXTS.json OUT.npz [MINILM.safetensors MINILM-TOKENIZER.json]

TEXTS.json is a list of texts. OUT.npz gets of each its tokens and logits, weights of some layers by their names, and
MiniLM's sentence vectors.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, BertConfig, BertModel

LAYERS = (0, 15, 29)


def smollm(file: Path, texts: list[str]) -> dict[str, np.ndarray]:
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    found = {}
    for number, text in enumerate(texts):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        found[f"ids_{number}"] = np.array(ids)
        found[f"logits_{number}"] = model(torch.tensor([ids])).logits[0].numpy()
    parts = [f"model.layers.{layer}." for layer in LAYERS]
    for name, weights in model.state_dict().items():
        if name.startswith(tuple(parts)) or name == "model.norm.weight":
            found[name] = weights.numpy()
    return found


def minilm(file: Path, tokenizer: Path, texts: list[str]) -> np.ndarray:
    config = BertConfig(
        vocab_size=30_522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=1536, max_position_embeddings=512, layer_norm_eps=1e-12,
    )  # fmt: skip
    model = BertModel(config).eval()
    missing, _ = model.load_state_dict(load_file(file), strict=False)
    assert not missing, missing
    pieces = Tokenizer.from_file(str(tokenizer))
    pieces.no_padding()
    pieces.enable_truncation(256)
    ids = [torch.tensor([pieces.encode(text).ids]) for text in texts]
    means = [model(row).last_hidden_state[0].mean(0) for row in ids]
    return torch.nn.functional.normalize(torch.stack(means), dim=-1).numpy()


if __name__ == "__main__":
    first, listed, out, *more = map(Path, sys.argv[1:])
    given = json.loads(listed.read_text(encoding="utf-8"))
    with torch.no_grad():
        arrays = smollm(first, given)
        if more:
            arrays["sentences"] = minilm(*more, given)
    np.savez(out, **arrays)
