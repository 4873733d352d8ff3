"""What Hugging Face's transformers make of the same file; it runs in an environment of its own, without the course.

    python parity_with_transformers.py FILE.gguf TEXTS.json OUT.npz

TEXTS.json is a list of texts. OUT.npz gets of each its tokens and logits, and weights of some layers by their names.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

LAYERS = (0, 15, 29)

if __name__ == "__main__":
    file, texts, out = map(Path, sys.argv[1:])
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    found = {}
    with torch.no_grad():
        for number, text in enumerate(json.loads(texts.read_text(encoding="utf-8"))):
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            found[f"ids_{number}"] = np.array(ids)
            found[f"logits_{number}"] = model(torch.tensor([ids])).logits[0].numpy()
    parts = [f"model.layers.{layer}." for layer in LAYERS]
    for name, weights in model.state_dict().items():
        if name.startswith(tuple(parts)) or name == "model.norm.weight":
            found[name] = weights.numpy()
    np.savez(out, **found)
