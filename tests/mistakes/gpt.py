"""Mistakes that the checks of *GPT* must catch."""

import torch
from mistakes.table import wrong

from course_utils.decoding import next_token_probs


def _apply(pieces, left, right):
    place = 0
    while place < len(pieces) - 1:
        if (pieces[place], pieces[place + 1]) == (left, right):
            pieces[place : place + 2] = [left + right]
        place += 1
    return pieces


class encode_word:
    def no_end_mark(word, merges):
        """Forgets the end mark."""
        pieces = [*word]
        for left, right in merges:
            pieces = _apply(pieces, left, right)
        return pieces

    def first_place_only(word, merges):
        """Merges each pair once."""
        pieces = [*word, "␣"]
        for left, right in merges:
            for place in range(len(pieces) - 1):
                if (pieces[place], pieces[place + 1]) == (left, right):
                    pieces[place : place + 2] = [left + right]
                    break
        return pieces

    def uses_the_merges_up(word, merges):
        """Empties the caller's list."""
        pieces = [*word, "␣"]
        while merges:
            pieces = _apply(pieces, *merges.pop(0))
        return pieces

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


class fixed_windows:
    wrapped = wrong("Goes on at the text's beginning behind its end.",
        lambda stream, length, count, generator:
            _windows(stream, torch.randint(len(stream), (count, 1), generator=generator), length))
    without_generator = wrong("Draws from the global generator.",
        lambda stream, length, count, generator:
            _windows(stream, torch.randint(len(stream) - length, (count, 1)), length))

    def not_fixed(stream, length, count, generator):
        """The function as it was."""
        starts = torch.randint(len(stream) - length, (count, 1), generator=generator)
        tokens = stream[starts + torch.arange(length)]
        return tokens, tokens.roll(-1, dims=1)

    def plus_one(stream, length, count, generator):
        """Right in a text that counts, and in no other."""
        tokens, _ = fixed_windows.not_fixed(stream, length, count, generator)
        return tokens, tokens + 1

    def last_place_left_out(stream, length, count, generator):
        """Right windows, but one token shorter than asked for."""
        tokens, targets = fixed_windows.not_fixed(stream, length, count, generator)
        return tokens[:, :-1], targets[:, :-1]

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


class my_generate:
    new_tokens_only = wrong("Forgets the prompt.",
        lambda model, prompt, *options: _generate(model, prompt, *options)[:, prompt.shape[1] :])
    no_memory = wrong("Begins with an empty cache at each step: right, and slow.",
        lambda *given: _generate(*given, whole=True, forgets=True))
    forgets_all = wrong("A new state for each token, which then stands alone.",
        lambda *given: _generate(*given, forgets=True))
    reads_all_each_time = wrong("Hands over the whole text in each step.", lambda *given: _generate(*given, whole=True))
    always_the_best = wrong("Greedy, whatever is asked.",
        lambda model, prompt, steps, temperature, top_k, generator:
            _generate(model, prompt, steps, temperature, 1, generator))
    temperature_forgotten = wrong("Draws at temperature 1.",
        lambda model, prompt, steps, temperature, *options: _generate(model, prompt, steps, 1.0, *options))
    top_k_forgotten = wrong("Draws from all tokens, but for a single one.",
        lambda model, prompt, steps, temperature, top_k, generator:
            _generate(model, prompt, steps, temperature, 1 if top_k == 1 else None, generator))
    generator_forgotten = wrong("Draws from the global generator.",
        lambda *given: _generate(*given[:-1], None))

    def called_as_a_function(model, prompt, steps, temperature=1.0, top_k=None, generator=None):
        """Hands the cache to the model itself, not to its step."""
        state, text, new = model.start(), prompt, prompt
        for _ in range(steps):
            probs = next_token_probs(model(new, state)[:, -1], temperature=temperature, top_k=top_k)
            new = torch.multinomial(probs, 1, generator=generator)
            text = torch.cat([text, new], dim=1)
        return text

    def reads_the_last_of_the_prompt(model, prompt, *options):
        """Only the last token of the prompt is read."""
        text = _generate(model, prompt[:, -1:], *options)
        return torch.cat([prompt, text[:, 1:]], dim=1)

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


class nucleus_probs:
    def left_sorted(probs, p):
        """Does not put the tokens back in their places."""
        ordered, _ = probs.sort(dim=-1, descending=True)
        kept = ordered.masked_fill(ordered.cumsum(dim=-1) - ordered >= p, 0.0)
        return kept / kept.sum(dim=-1, keepdim=True)

    def likely_enough(probs, p):
        """Keeps tokens whose own probability is at least 1 − p."""
        kept = probs.masked_fill(probs < 1 - p, 0.0)
        return kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-9)

    def one_nucleus_for_all(probs, p):
        """Takes the first row's number of tokens for every row."""
        ordered, order = probs.sort(dim=-1, descending=True)
        first = ordered.flatten(0, -2)[0] if probs.ndim > 1 else ordered
        number = int((first.cumsum(dim=-1) - first < p).sum())
        kept = ordered.clone()
        kept[..., number:] = 0
        kept = kept / kept.sum(dim=-1, keepdim=True)
        return torch.zeros_like(probs).scatter(-1, order, kept)

    def one_more_at_exactly_p(probs, p):
        """Keeps a token, too, if those before it sum to exactly p."""
        ordered, order = probs.sort(dim=-1, descending=True)
        kept = ordered.masked_fill(ordered.cumsum(dim=-1) - ordered > p, 0.0)
        kept = kept / kept.sum(dim=-1, keepdim=True)
        return torch.zeros_like(probs).scatter(-1, order, kept)

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
        "c": 0.0,  # takes the discount from a count of 0, too
        "d": 3.5,  # forgets the exponential
    },
}

ANSWERS = {
    "plus_one": ("its token plus 1", "Take it from `stream`"),
    "called_as_a_function": ("called as a function", "Call `model.step(tokens, state)`"),
    "reads_the_last_of_the_prompt": ("4 tokens read, expected 8", "whole prompt before the first draw"),
    "reads_all_each_time": ("the cache has read", "What is new"),
    "reads_the_last_too": ("9 tokens read, expected 8", "drawn last"),
    "no_memory": ("has read nothing yet", "call `start()`"),
    "forgets_all": ("has read nothing yet", "call `start()`"),
    "one_more_at_exactly_p": ("3 tokens kept", "cut with ≥"),
    "ties_kept": ("got 4", "not at its own probability"),
}
