"""The translators of two lectures at their sizes, on the first lines of the Tatoeba file, and what they say."""

from torch import nn

from course_utils.data.text import Vocabulary, tokenize
from course_utils.data.translation import PairLoader, load_tatoeba
from course_utils.decoding import translate
from course_utils.kit.runs import stored
from course_utils.lessons.sequence_to_sequence.small_world import FOUR
from course_utils.models.recurrent import AttentionTranslator
from course_utils.runtime import seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.trainer import Trainer

SIZES = [
    {"pairs": 512, "width": 256, "dropout": 0.4, "batch": 128, "passes": 15},
    {"pairs": 600, "width": 32, "dropout": 0.1, "batch": 64, "passes": 250},
]


@stored(cases=[{**size, "seed": 0} for size in SIZES])
def lecture(*, pairs: int, width: int, dropout: float, batch: int, passes: int, seed: int) -> dict:
    """Two layers of GRU with attention, Adam at 0.005; what it says to `FOUR`, and whether it has read them."""
    known = load_tatoeba("fr")
    read = known[:pairs]
    words = Vocabulary(p.source for p in read), Vocabulary(p.target for p in read)
    seed_everything(seed)
    model = AttentionTranslator(
        *map(len, words), embed_dim=width, hidden_dim=width, num_layers=2, dropout=dropout
    )
    model.dropout = nn.Dropout(0.0)  # theirs stands between the layers alone
    for name, weight in model.named_parameters():
        if weight.dim() > 1 and "embedding" not in name:
            nn.init.xavier_uniform_(weight)
    loader = PairLoader(read, *words, batch_size=batch, seed=seed)
    trainer = Trainer(translation_loss(), epochs=passes, lr=0.005, seed=seed, quiet=True)
    loss = trainer.fit(model, loader).rows[-1]["train_loss"]
    examples = []
    for line, said in zip(FOUR, translate(model, FOUR, *words), strict=True):
        wanted = [" ".join(p.target) for p in read if p.source == tuple(tokenize(line))]
        examples.append({"English": line, "said": said, "read with": wanted})
    fresh = [p for p in known[1000:1400] if all(t in words[0] for t in p.source)]
    said = translate(model, [" ".join(p.source) for p in fresh], *words)
    right = {}
    for p in known:
        right.setdefault(p.source, set()).add(" ".join(p.target))
    hits = sum(a in right[p.source] for a, p in zip(said, fresh, strict=True))
    result = {"loss": round(loss, 4), "unread": len(fresh), "unread_right": hits}
    return {"result": result, "examples": examples}
