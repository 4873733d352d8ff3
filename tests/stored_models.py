"""The stored models that a page sees, as PyTorch's: what its answers are compared with."""

import base64
import json
from functools import cache

from torch import nn

from course_utils.data.text import Vocabulary
from course_utils.kit.live import bundle, load_model
from course_utils.kit.live.widget import source
from course_utils.models.language import BERT, GPT
from course_utils.models.recurrent import AttentionTranslator
from course_utils.models.transformer import Transformer
from course_utils.models.vision import ViT

KINDS = {
    "assistant": GPT,
    "bahdanau": AttentionTranslator,
    "bert": BERT,
    "everyday": Transformer,
    "gpt": GPT,
    "memory": ViT,
    "translator": Transformer,
    "vit": ViT,
}

HEADER = 54 + 4 * 256
"""Bytes of a bitmap before its pixels: its sizes, and a palette of 256 grays."""

ANSWERED = """(bundle, kind) => {
    const model = new (inside(kind))(bundle);
    const far = (found, right) => Math.max(...right.map(([id, logit]) => Math.abs(found[id] - logit)));
    return bundle.answers.map((answer, i) => {
        const { source, said, ids, place = -1, logits } = answer;
        if (bundle.boards) {
            const values = pixelsOf(bundle.boards[i].picture).map((level) => level / 127.5 - 1);
            const rows = Array.from({ length: 56 }, (_, row) => values.slice(56 * row, 56 * (row + 1)));
            const found = model.linear("output", model.tokens([rows]))[bundle.first + 1];
            return [argmax(found) === argmax(answer), far(found, [...answer.entries()])];
        }
        if (kind === "ViT") {
            const values = Array.from(atob(bundle.examples[i].pixels), letter => letter.charCodeAt(0) / 127.5 - 1);
            const rows = Array.from({ length: 28 }, (_, row) => values.slice(28 * row, 28 * (row + 1)));
            const found = model.logits([rows]);
            return [bundle.kinds[argmax(found)] === bundle.examples[i].said, far(found, [...answer.entries()])];
        }
        const found = source
            ? model.step([BOS, ...said], model.start(source)).at(-1)
            : model.step(ids, model.start()).at(place);
        const isSame = source ? greedy(model, source).join() === said.join() : argmax(found) === logits[0][0];
        return [isSame, far(found, logits)];
    });
}"""
"""For each stored answer of a bundle: whether a page gives it, and how far its logits are. Around it are the shared
scripts of live widgets, and `inside`, which gives what a name stands for in them."""

NAMES = json.dumps({name: kind.__name__ for name, kind in KINDS.items()})
ALL_ANSWERED = f"""(() => {{
    {source()}
    const inside = (name) => eval(name);
    const answered = Object.entries(live_bundles).filter(([, bundle]) => bundle.answers);
    return answered.map(([name, bundle]) => [name, ({ANSWERED})(bundle, {NAMES}[name.split("_")[0]])]);
}})()"""
"""The same for all bundles of a page, by name."""


@cache
def network(name: str) -> nn.Module:
    """With the weights of the bundle."""
    model = load_model(name).for_page()
    return model.network(KINDS[name.split("_")[0]], **bundle(name)["config"])


def pixels_of(picture: str) -> bytes:
    """The grays of a bitmap, from its data URI."""
    return base64.b64decode(picture.split(",")[1])[HEADER:]


@cache
def words(side: str) -> Vocabulary:
    """Of both translators, "source" or "target"."""
    return Vocabulary.from_tokens(bundle("translator_fr")["vocabularies"][side])
