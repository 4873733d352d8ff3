"""Experiments that *Real weights* shows without their code: each is a function of the model, for `smollm.known`.

`runs` of this lesson records what they give. The countries are well known, or their largest city is another, or they
are little known, or invented.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.interventions import intervene
from course_utils.lessons.real_weights.smollm import END, SmolLM, chat, loss_on, loss_on_story
from course_utils.masks import causal_mask
from course_utils.recording import record_attention

Heads = list[list[int]]
"""Heads as pairs [layer, head]."""

CAPITALS = {
    "Japan": "Tokyo", "France": "Paris", "Germany": "Berlin", "Norway": "Oslo", "Italy": "Rome",
    "Spain": "Madrid", "Portugal": "Lisbon", "Greece": "Athens", "Poland": "Warsaw", "Austria": "Vienna",
    "Hungary": "Budapest", "Sweden": "Stockholm", "Finland": "Helsinki", "Egypt": "Cairo",
}  # fmt: skip
"""Countries of one token."""

INVENTED = (
    "Valdoria", "Brenzia", "Quorland", "Meridonia", "Tavastan", "Lorvania",
    "Zembria", "Kandora", "Ulmeria", "Dravania", "Sorbistan", "Halvetia",
)  # fmt: skip

MORE_INVENTED = (
    "Albaria", "Brovania", "Cestoria", "Dorvinia", "Elmania", "Faroland", "Gestovia", "Harmonia", "Istania", "Jorvia",
    "Kelmoria", "Lusania", "Marovia", "Nerania", "Oltavia", "Pendoria", "Quintania", "Rovaria", "Selgaria", "Tormania",
    "Ulvania", "Vestoria", "Wendaria", "Xandia", "Yorvania", "Zelmaria", "Baltora", "Corvania", "Drenovia", "Estolia",
    "Filmoria", "Granovia", "Hestia", "Illmaria", "Jastania", "Kordavia", "Lendoria", "Montavia", "Norvaria", "Orlavia",
)  # fmt: skip
"""Forty names more, for a second look."""

COUNTRIES: dict[str, dict[str, str]] = {
    "well known": {
        **CAPITALS, "Ireland": "Dublin", "Russia": "Moscow", "China": "Beijing", "India": "New Delhi",
        "Kenya": "Nairobi", "Peru": "Lima", "Cuba": "Havana", "Chile": "Santiago", "Iran": "Tehran",
        "Thailand": "Bangkok",
    },
    "another city is larger": {
        "Canada": "Ottawa", "Australia": "Canberra", "Turkey": "Ankara", "Brazil": "Bras",
        "Switzerland": "Bern", "Nigeria": "Abuja",
    },
    "little known": {
        "Bhutan": "Thimphu", "Malawi": "Lilongwe", "Suriname": "Paramaribo", "Eritrea": "Asmara",
        "Kyrgyzstan": "Bishkek", "Lesotho": "Maseru", "Togo": "Lom", "Brunei": "Bandar", "Fiji": "Suva",
        "Gabon": "Libreville", "Malta": "Valletta", "Moldova": "Chi",
    },
    "invented": dict.fromkeys(INVENTED, ""),
    "invented, like a real one": dict.fromkeys(
        ("West Korea", "East Sweden", "North Italy", "Berlinia", "Japania", "Greatland"), ""
    ),
}  # fmt: skip
"""Kind → country → how its capital begins, up to an accent; nothing for a country that does not exist."""


def is_right(kind: str, country: str, says: str) -> bool:
    """Whether an answer names the capital, at its beginning or after "known as"."""
    capital = COUNTRIES[kind][country]
    return bool(capital) and says.strip().removeprefix("known as ").startswith(capital)


NEWS = (
    "The town of Ellerby chose a new mayor on Sunday. Marta Quillfeather, who has run the bakery on "
    "Harbor Street for twenty years, won with 54 percent of the votes. Her rival Tobias Ransgrove, a "
    "teacher, had led in all the polls. “I did not expect this,” said Quillfeather in front of the "
    "town hall. Ransgrove congratulated her the same evening. In Ellerby the mayor decides about the "
    "harbor, and Quillfeather has promised to open it to small boats again. Ransgrove had wanted to "
    "build houses there. The council of Ellerby meets for the first time under Quillfeather in March, "
    "and Tobias Ransgrove will be a member of it. Marta Quillfeather says that she will go on baking "
    "on Saturdays."
)
"""A short piece of news of our own, in which invented names come back."""

# Asked of the model -------------------------------------------------------------------------------


def goes_on(lm: SmolLM) -> dict[str, str]:
    """Texts that the model writes, up to 24 tokens: without its template, with it, and at three temperatures."""
    question, poem = "What is the capital of Japan?", "Write two lines of a poem about rain."
    beginning = "The capital of Japan is"
    texts = {
        f"without the template: {question}": lm.write(question, max_new=24),
        f"without it, and a line break: {question}⏎": lm.write(question + "\n", max_new=24),
        f"with the template: {question}": lm.write(chat(question), max_new=24),
        f"without the template: {beginning}": lm.write(beginning, max_new=24),
    }
    for t in (0.0, 0.7, 1.5):
        said = lm.write(chat(poem), max_new=24, temperature=t)
        texts[f"with the template, T = {t:g}: {poem}"] = said
    return texts


def answer(lm: SmolLM, question: str) -> str:
    """The model's answer in its chat template, up to 40 tokens; "…" is added if it had not ended by then."""
    return lm.write(chat(question), max_new=40, mark="…")


def capital_prompts(lm: SmolLM, countries: Iterable[str]) -> Tensor:
    """Ids of “The capital of X is”, for countries of one token: (countries, 6)."""
    return lm.encode(*(f"<|endoftext|>The capital of {country} is" for country in countries))


def capital_tokens(lm: SmolLM, countries: Iterable[str]) -> Tensor:
    """The first token of each country's capital, (countries,)."""
    return torch.cat([lm.encode(" " + CAPITALS[country])[:, 0] for country in countries])


SIMPLE = {
    "What color is the sky on a clear day?": "blue", "How many days are in a week?": "seven 7",
    "What is the capital of Italy?": "Rome", "What do cows drink?": "water", "What is 2 + 2?": "4 four",
    "Who wrote Hamlet?": "Shakespeare", "What is the opposite of big?": "small little",
    "How many legs does a dog have?": "four 4", "What is the largest planet?": "Jupiter",
    "What is frozen water called?": "ice", "In which country is Berlin?": "Germany",
    "What is the past tense of go?": "went", "Which animal says meow?": "cat", "What do bees make?": "honey",
    "What is the first letter of the alphabet?": " A", "How many months are in a year?": "twelve 12",
    "What is the French word for dog?": "chien", "Which is heavier, a stone or a feather?": "stone",
    "What is the last month of the year?": "December", "How many wheels does a bicycle have?": "two 2",
}  # fmt: skip
"""Twenty questions, written before we looked, and the words of which one makes an answer right."""


def simple_questions(lm: SmolLM) -> dict[str, list]:
    """Question → the first sentence of the answer, up to 30 tokens, and whether it is right."""
    gave = {}
    for question, keys in SIMPLE.items():
        said = lm.write(chat(question), max_new=30)
        first = re.split(r"(?<=[a-z0-9\")][.!?])\s", said)[0]
        words = re.findall(r"\w+", first.lower())
        gave[question] = [first, any(key.lower() in words for key in keys.split())]
    return gave


def without_look(model: nn.Module, ids: Tensor, places: Sequence[int], layer: int) -> Tensor:
    """Probabilities (vocabulary,) after ids (1, n), if the last token may not look at some positions in one layer."""
    with intervene(model) as acts:
        acts.forbid(queries=ids.shape[1] - 1, keys=places, layers=layer)
        return model(ids)[0, -1].softmax(-1)


def heads_of_23(lm: SmolLM) -> dict[str, Any]:
    """Layer 23's heads at the last token of “The capital of X is”, over the fourteen countries.

    "weights": the mean weight of each head on X; for each list of heads, written as a text: the mean probability of the
    capital if these heads may not look at X.
    """
    ids, wanted = capital_prompts(lm, CAPITALS), capital_tokens(lm, CAPITALS)
    with record_attention(lm.model) as maps:
        lm.model(ids)
    weights = maps["layers.23.attention"][:, :, 5, 4].mean(0)
    gave: dict[str, Any] = {"weights": [round(weight, 4) for weight in weights.tolist()]}
    ones = [[head] for head in range(9)]
    for heads in ([], *ones, [4, 5], [1, 4, 5], [0, 1, 2, 3, 5, 6, 7, 8], list(range(9))):
        with intervene(lm.model) as acts:
            if heads:
                acts.forbid(queries=5, keys=4, layers=23, heads=heads)
            probs = lm.model(ids)[:, -1].softmax(-1)
        gave[str(heads)] = round(probs[torch.arange(len(ids)), wanted].mean().item(), 4)
    return gave


def repeated(seed: int, texts: int = 4, block: int = 40) -> Tensor:
    """Ids of <|endoftext|>, a block of random tokens, and the same block again: (texts, 1, 1 + 2 · block)."""
    draws = torch.Generator().manual_seed(seed)
    ids = torch.randint(17, 49_152, (texts, 1, block), generator=draws)
    return torch.cat([torch.zeros(texts, 1, 1, dtype=torch.long), ids, ids], dim=2)


def induction_scores(lm: SmolLM, seed: int, without: Heads | None = None) -> list[list[float]]:
    """(layers, heads): the weight of each head, in the second block, on the token after the same token.

    Args:
        lm: the model.
        seed: of the eight texts.
        without: heads that give nothing meanwhile.
    """
    with intervene(lm.model) as acts:
        for layer, head in without or []:
            acts.ablate(layers=layer, heads=head)
        return _weight_back(lm, seed, 39)


def token_before(lm: SmolLM, seed: int) -> list[list[float]]:
    """(layers, heads): the weight of each head on the token before, in the second block of eight texts."""
    return _weight_back(lm, seed, 1)


def _weight_back(lm: SmolLM, seed: int, back: int) -> list[list[float]]:
    """(layers, heads): the mean weight, in the second block of eight texts, on the token so many places back."""
    total, i = torch.zeros(30, 9), torch.arange(41, 80)  # <|endoftext|>, then 1 … 40 and 41 … 80
    texts = repeated(seed, texts=8)
    for text in texts:
        with record_attention(lm.model) as maps:
            lm.model(text[:, :-1])
        for layer in range(30):
            total[layer] += maps[f"layers.{layer}.attention"][0, :, i, i - back].mean(1)
    return (total / len(texts)).tolist()


def copied(lm: SmolLM) -> float:
    """The share of the second block that is copied, in four texts."""
    right = []
    for text in repeated(seed=9):
        best = lm.model(text[:, :-1])[:, 41:].argmax(-1)
        right.append((best == text[:, 42:]).float().mean().item())
    return sum(right) / len(right)


def without_heads(lm: SmolLM, heads: Heads) -> dict[str, float]:
    """The share of the second block that is copied, and the losses on our story and on `NEWS`, without these heads."""
    with intervene(lm.model) as acts:
        for layer, head in heads:
            acts.ablate(layers=layer, heads=head)
        gave = {"copied": copied(lm), "story": loss_on_story(lm), "news": loss_on(lm, NEWS)}
    return {name: round(value, 3) for name, value in gave.items()}


def others(best: Heads, seed: int, count: int = 8) -> Heads:
    """Random heads of the same layers as the `count` best, one for each; none of the 24 best."""
    draws, found = torch.Generator().manual_seed(seed), []
    taken = [tuple(head) for head in best[:24]]
    for layer, _ in best[:count]:
        free = [(layer, h) for h in range(9) if (layer, h) not in taken]
        taken.append(free[int(torch.randint(len(free), (), generator=draws))])
        found.append(list(taken[-1]))
    return found


def first_words(lm: SmolLM) -> dict[str, float]:
    """`MORE_INVENTED` → the probability of the first token of the capital."""
    gave = {}
    for country in MORE_INVENTED:
        text = chat(f"What is the capital of {country}?") + f"The capital of {country} is"
        gave[country] = lm.model(lm.encode(text))[0, -1].softmax(-1).max().item()
    return gave


def capitals(lm: SmolLM, kind: str) -> dict[str, list]:
    """Country → the capital that the model names in its chat template, and the probability of its first token."""
    gave = {}
    for country in COUNTRIES[kind]:
        text = chat(f"What is the capital of {country}?") + f"The capital of {country} is"
        gave[country] = list(lm.write_surely(text, max_new=7))
    return gave


# Asked with some tokens forbidden -----------------------------------------------------------------

MAX_ANSWER = 16
"""The most tokens of an answer."""


def answers(
    lm: SmolLM, question: str, cuts: Sequence[tuple[Sequence[int], int]]
) -> list[list[Any]]:
    """[words, percents, whether more follows] of the answer's first sentence, for each cut side by side.

    Args:
        lm: the model.
        question: without its template.
        cuts: in each, no token from a place on, its second entry, may look at the places of its first.
    """
    prompt = lm.encode(chat(question)).repeat(len(cuts), 1)
    whole = prompt.shape[1] + MAX_ANSWER
    forbidden = torch.zeros(len(cuts), 1, whole, whole, dtype=torch.bool)
    for row, (places, start) in enumerate(cuts):
        forbidden[row, :, start:, list(places)] = True
    allowed = causal_mask(whole) & ~forbidden

    def forbid(given: dict[str, Any]) -> None:
        start = given["cache"].length
        end = start + given["queries"].shape[1]
        given["attn_mask"], given["is_causal"] = allowed[:, :, start:end, :end], False

    state, new, tokens, sure = lm.model.start(), prompt, [], []
    with torch.inference_mode(), intervene(lm.model) as acts:
        for attention in acts.attentions.values():
            acts.change_arguments(attention, forbid)
        for _ in range(MAX_ANSWER):
            probs, best = lm.model.step(new, state).softmax(-1).max(-1)
            new = best[:, None]
            tokens.append(best)
            sure.append(probs)
    rows = zip(torch.stack(tokens, 1).tolist(), torch.stack(sure, 1).tolist(), strict=True)
    return [first_sentence(lm, ids, probs) for ids, probs in rows]


def first_sentence(lm: SmolLM, ids: list[int], probs: list[float]) -> list[Any]:
    """[words, percents, whether more follows] of the first sentence of an answer: ids and their probabilities."""
    ended = END in ids
    if ended:
        ids = ids[: ids.index(END)]
    words = _words(_texts(lm, ids, probs))
    ends = [i for i, (word, _) in enumerate(words) if re.search(r"[a-z)”\"'][.!?]$", word)]
    if ends:
        words = words[: ends[0] + 1]
    percents = " ".join(str(round(100 * p)) for _, p in words)
    return [" ".join(word for word, _ in words), percents, int(not ends and not ended)]


def _texts(lm: SmolLM, ids: list[int], probs: list[float]) -> list[tuple[str, float]]:
    """The text that each token adds and its probability; tokens that share a letter's bytes come together."""
    found, before, product = [], "", 1.0
    for k, p in enumerate(probs[: len(ids)]):
        product *= p
        now = lm.decode(ids[: k + 1])
        if not now.endswith("\ufffd") or k + 1 == len(ids):
            found.append((now[len(before) :], product))
            before, product = now, 1.0
    return found


def _words(texts: list[tuple[str, float]]) -> list[list[Any]]:
    """[word, probability] from the texts of tokens and their probabilities; line breaks are a word of arrows."""
    words: list[list[Any]] = []
    for text, p in texts:
        for part in re.findall(r"\n+|[^\n]+", text):
            if "\n" in part:
                words.append(["↵" * len(part), p])
            elif part.startswith(" ") or not words or words[-1][0].startswith("↵"):
                words.append([part.strip(" "), p])
            else:
                before, product = words[-1]
                words[-1] = [before + part, product * p]
    return [[word, p] for word, p in words if word]


def last_step(
    lm: SmolLM, ids: Tensor, cuts: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> Tensor:
    """Probabilities (cuts, vocabulary) of the next token, if the last token may not see some positions in some layers.

    Args:
        lm: the model.
        ids: the text, (1, n).
        cuts: (places, layers) of each row.
    """
    state = lm.model.start()
    with torch.inference_mode(), intervene(lm.model) as acts:
        lm.model.step(ids[:, :-1], state)
        for held in state.caches:
            held.repeat(len(cuts))
        for layer, attention in enumerate(acts.attentions.values()):
            allowed = torch.ones(len(cuts), 1, 1, ids.shape[1], dtype=torch.bool)
            for row, (places, layers) in enumerate(cuts):
                if layer in layers:
                    allowed[row, :, :, list(places)] = False

            def forbid(given: dict[str, Any], allowed: Tensor = allowed) -> None:
                given["attn_mask"], given["is_causal"] = allowed, False

            acts.change_arguments(attention, forbid)
        return lm.model.step(ids[:, -1:].repeat(len(cuts), 1), state).softmax(-1)
