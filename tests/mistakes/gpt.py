"""Mistakes in the exercises of *GPT*, each with the property that catches it and its hint."""

import torch
from mistakes.table import mistake

from course_utils.decoding import next_token_probs


def _apply(pieces, left, right):
    place = 0
    while place < len(pieces) - 1:
        if (pieces[place], pieces[place + 1]) == (left, right):
            pieces[place : place + 2] = [left + right]
        place += 1
    return pieces


@mistake("encode_word", caught_by="without merges a word", hint="What are the pieces before")
def no_end_mark(word, merges):
    """Forgets the end mark."""
    pieces = [*word]
    for left, right in merges:
        pieces = _apply(pieces, left, right)
    return pieces


@mistake("encode_word", caught_by="a merge joins its pair", hint="Can a pair occur twice")
def first_place_only(word, merges):
    """Merges each pair once."""
    pieces = [*word, "␣"]
    for left, right in merges:
        for place in range(len(pieces) - 1):
            if (pieces[place], pieces[place + 1]) == (left, right):
                pieces[place : place + 2] = [left + right]
                break
    return pieces


@mistake("encode_word", caught_by="the merges are not changed", hint="Does a line remove merges")
def uses_the_merges_up(word, merges):
    """Empties the caller's list."""
    pieces = [*word, "␣"]
    while merges:
        pieces = _apply(pieces, *merges.pop(0))
    return pieces


@mistake(
    "encode_word", caught_by="merges are applied in the order", hint="What does your outer loop go"
)
def same_letters(word, merges):
    """Joins any two pieces with the letters of the merge."""
    pieces = [*word, "␣"]
    for left, right in merges:
        place = 0
        while place < len(pieces) - 1:
            if pieces[place] + pieces[place + 1] == left + right:
                pieces[place : place + 2] = [left + right]
            place += 1
    return pieces


def _windows(stream, starts, length):
    both = stream[(starts + torch.arange(length + 1)) % len(stream)]
    return both[:, :-1], both[:, 1:]


@mistake(
    "fixed_windows",
    caught_by="reads tokens that are neighbors",
    hint="Which positions does a window take?",
)
def wrapped(stream, length, count, generator):
    """Goes on at the text's beginning behind its end."""
    return _windows(stream, torch.randint(len(stream), (count, 1), generator=generator), length)


@mistake(
    "fixed_windows",
    caught_by="draws the starts with the generator",
    hint="Where do your random numbers",
)
def without_generator(stream, length, count, generator):
    """Draws from the global generator."""
    return _windows(stream, torch.randint(len(stream) - length, (count, 1)), length)


@mistake(
    "fixed_windows",
    caught_by="has the next token of the text",
    hint="What does `roll` put at the end",
)
def not_fixed(stream, length, count, generator):
    """The function as it was."""
    starts = torch.randint(len(stream) - length, (count, 1), generator=generator)
    tokens = stream[starts + torch.arange(length)]
    return tokens, tokens.roll(-1, dims=1)


@mistake(
    "fixed_windows",
    caught_by="has the next token of the text",
    reason="its token plus 1",
    hint="Take it from `stream`",
)
def plus_one(stream, length, count, generator):
    """Right in a text that counts, and in no other."""
    tokens, _ = not_fixed(stream, length, count, generator)
    return tokens, tokens + 1


@mistake(
    "fixed_windows",
    caught_by="gives tokens and targets of the shape",
    hint="How many tokens of the text",
)
def last_place_left_out(stream, length, count, generator):
    """Right windows, but one token shorter than asked for."""
    tokens, targets = not_fixed(stream, length, count, generator)
    return tokens[:, :-1], targets[:, :-1]


@mistake(
    "fixed_windows", caught_by="reads each token but the last", hint="Which is the last position"
)
def last_start_left_out(stream, length, count, generator):
    """Never asks for the last token of the text."""
    starts = torch.randint(max(1, len(stream) - length - 1), (count, 1), generator=generator)
    return _windows(stream, starts, length)


@torch.no_grad()
def _generate(model, prompt, steps, temperature, top_k, generator, *, whole=False, forgets=False):
    """Right, unless it reads the whole text in each step, or begins each with an empty cache."""
    text, new, state = prompt, prompt, model.start()
    for _ in range(steps):
        state = model.start() if forgets else state
        logits = model.step(text if whole else new, state)
        probs = next_token_probs(logits, temperature=temperature, top_k=top_k)
        new = torch.multinomial(probs, 1, generator=generator)
        text = torch.cat([text, new], dim=1)
    return text


@mistake(
    "fixed_windows",
    caught_by="gives tokens and targets of the shape",
    hint="Is a border of your slice a tensor",
)
def sliced(stream, length, count, generator):
    """Takes a slice between two tensors."""
    starts = torch.randint(len(stream) - length, (count, 1), generator=generator)
    return stream[starts : starts + length], stream[starts + 1 : starts + length + 1]


@mistake(
    "my_generate",
    caught_by="gives prompt and new tokens",
    reason="except in dimension 0",
    hint="Along which axis do you join",
)
def joined_along_the_batch(model, prompt, steps, temperature=1.0, top_k=None, generator=None):
    """Forgets the axis of `cat`."""
    state, text, new = model.start(), prompt, prompt
    for _ in range(steps):
        probs = next_token_probs(model.step(new, state), temperature=temperature, top_k=top_k)
        new = torch.multinomial(probs, 1, generator=generator)
        text = torch.cat([text, new])
    return text


@mistake("my_generate", caught_by="gives prompt and new tokens", hint="What do you return?")
def new_tokens_only(model, prompt, *options):
    """Forgets the prompt."""
    return _generate(model, prompt, *options)[:, prompt.shape[1] :]


@mistake(
    "my_generate",
    caught_by="gives prompt and new tokens",
    reason="has read nothing yet",
    hint="call `start()`",
)
def no_memory(*given):
    """Begins with an empty cache at each step: right, and slow."""
    return _generate(*given, whole=True, forgets=True)


@mistake(
    "my_generate",
    caught_by="gives prompt and new tokens",
    reason="has read nothing yet",
    hint="call `start()`",
)
def forgets_all(*given):
    """A new state for each token, which then stands alone."""
    return _generate(*given, forgets=True)


@mistake(
    "my_generate",
    caught_by="gives prompt and new tokens",
    reason="the cache has read",
    hint="What is new",
)
def reads_all_each_time(*given):
    """Hands over the whole text in each step."""
    return _generate(*given, whole=True)


@mistake(
    "my_generate",
    caught_by="draws tokens with the probabilities",
    hint="Is a token drawn, or is the best",
)
def always_the_best(model, prompt, steps, temperature, top_k, generator):
    """Greedy, whatever is asked."""
    return _generate(model, prompt, steps, temperature, 1, generator)


@mistake(
    "my_generate",
    caught_by="draws tokens with the probabilities",
    hint="Is a token drawn, or is the best",
)
def temperature_forgotten(model, prompt, steps, temperature, *options):
    """Draws at temperature 1."""
    return _generate(model, prompt, steps, 1.0, *options)


@mistake(
    "my_generate",
    caught_by="draws tokens with the probabilities",
    hint="Is a token drawn, or is the best",
)
def top_k_forgotten(model, prompt, steps, temperature, top_k, generator):
    """Draws from all tokens, but for a single one."""
    return _generate(model, prompt, steps, temperature, 1 if top_k == 1 else None, generator)


@mistake("my_generate", caught_by="writes the same text", hint="Who draws without")
def generator_forgotten(*given):
    """Draws from the global generator."""
    return _generate(*given[:-1], None)


@mistake(
    "my_generate",
    caught_by="gives prompt and new tokens",
    reason="called as a function",
    hint="Call `model.step(tokens, state)`",
)
def called_as_a_function(model, prompt, steps, temperature=1.0, top_k=None, generator=None):
    """Hands the cache to the model itself, not to its step."""
    state, text, new = model.start(), prompt, prompt
    for _ in range(steps):
        probs = next_token_probs(model(new, state)[:, -1], temperature=temperature, top_k=top_k)
        new = torch.multinomial(probs, 1, generator=generator)
        text = torch.cat([text, new], dim=1)
    return text


@mistake(
    "my_generate",
    caught_by="reads the prompt once, and then",
    reason="4 tokens read, expected 8",
    hint="whole prompt before the first draw",
)
def reads_the_last_of_the_prompt(model, prompt, *options):
    """Only the last token of the prompt is read."""
    text = _generate(model, prompt[:, -1:], *options)
    return torch.cat([prompt, text[:, 1:]], dim=1)


@mistake(
    "my_generate",
    caught_by="reads the prompt once, and then",
    reason="9 tokens read, expected 8",
    hint="drawn last",
)
def reads_the_last_too(model, prompt, steps, temperature=1.0, top_k=None, generator=None):
    """Asks what follows the last token, and drops the answer."""
    state, text = model.start(), prompt
    logits = model.step(prompt, state)
    for _ in range(steps):
        probs = next_token_probs(logits, temperature=temperature, top_k=top_k)
        new = torch.multinomial(probs, 1, generator=generator)
        text = torch.cat([text, new], dim=1)
        logits = model.step(new, state)
    return text


@mistake(
    "nucleus_probs", caught_by="keeps the token that crosses p", hint="Which token does each number"
)
def left_sorted(probs, p):
    """Does not put the tokens back in their places."""
    ordered, _ = probs.sort(dim=-1, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(dim=-1) - ordered >= p, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)


@mistake(
    "nucleus_probs",
    caught_by="gives probabilities that sum to 1",
    hint="What is the sum of what is left",
)
def likely_enough(probs, p):
    """Keeps tokens whose own probability is at least 1 − p."""
    kept = probs.masked_fill(probs < 1 - p, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-9)


@mistake("nucleus_probs", caught_by="finds a nucleus for each row", hint="Along which axis do you")
def one_nucleus_for_all(probs, p):
    """Takes the first row's number of tokens for every row."""
    ordered, order = probs.sort(dim=-1, descending=True)
    first = ordered.flatten(0, -2)[0] if probs.ndim > 1 else ordered
    number = int((first.cumsum(dim=-1) - first < p).sum())
    kept = ordered.clone()
    kept[..., number:] = 0
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, kept)


@mistake(
    "nucleus_probs",
    caught_by="keeps no more tokens than needed",
    reason="3 tokens kept",
    hint="cut with ≥",
)
def one_more_at_exactly_p(probs, p):
    """Keeps a token, too, if those before it sum to exactly p."""
    ordered, order = probs.sort(dim=-1, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(dim=-1) - ordered > p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, kept)


@mistake(
    "nucleus_probs",
    caught_by="keeps no more tokens than needed",
    reason="got 4",
    hint="not at its own probability",
)
def ties_kept(probs, p):
    """Keeps every token that is as likely as the last one in the nucleus."""
    ordered = probs.sort(dim=-1, descending=True).values
    number = (ordered.cumsum(dim=-1) - ordered < p).sum(dim=-1, keepdim=True)
    kept = probs * (probs >= ordered.gather(-1, number - 1))
    return kept / kept.sum(dim=-1, keepdim=True)


ON_PAPER = {
    "counted_on_paper": {
        "a": 2 / 7,  # how often it occurs
        "b": (2 - 0.5 + 0.5 * 0.25) / 3,  # hands on the discount of one count only
        "c": 4 / 21,  # takes the share of all letters as P₁(a)
        "d": 3.5,  # forgets the exponential
    },
}
