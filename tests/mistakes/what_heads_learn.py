"""Mistakes in the exercises of *What heads learn*, each with the property that catches it and its hint."""

import torch
from mistakes.table import mistake

from course_utils.lessons.what_heads_learn.circuits import attend, letters_in, of_head


def _one_hot(ids):
    return torch.eye(32)[ids], torch.eye(48)[: len(ids)]


@mistake("copy_by_hand", caught_by="gives a row of 32 numbers", hint="What does `attend` return")
def returns_positions(ids):
    """Brings positions in place of letters."""
    _, position = _one_hot(ids)
    return attend(100 * position @ torch.eye(48).roll(1, 0) @ position.T, position)


@mistake(
    "copy_by_hand", caught_by="gives a row of 32 numbers", hint="Which rows of `torch.eye(48)`"
)
def all_48_positions(ids):
    """Takes 48 positions for a text that has fewer."""
    letter, position = torch.eye(32)[ids], torch.eye(48)
    before = attend(100 * position @ torch.eye(48).roll(1, 0) @ position.T, letter)
    return attend(100 * letter @ before.T, letter)


@mistake("copy_by_hand", caught_by="says g at the second k", hint="k would find only itself")
def finds_itself(ids):
    """Compares letters with letters, so that k finds k."""
    letter, _ = _one_hot(ids)
    return attend(100 * letter @ letter.T, letter)


@mistake("copy_by_hand", caught_by="says g at the second k", hint="keys are mixtures")
def shifts_forward(ids):
    """Shifts in the other direction."""
    letter, position = _one_hot(ids)
    before = attend(100 * position @ torch.eye(48).roll(1, 0).T @ position.T, letter)
    before[0] = 0
    return attend(100 * letter @ before.T, letter)


@mistake("copy_by_hand", caught_by="says g at the second k", hint="keys are mixtures")
def weak_layers(ids):
    """Forgets the factor in both layers."""
    letter, position = _one_hot(ids)
    before = attend(position @ torch.eye(48).roll(1, 0) @ position.T, letter)
    before[0] = 0
    return attend(letter @ before.T, letter)


@mistake("copy_by_hand", caught_by="is right from the second letter", hint="Is a distance written")
def three_back(ids):
    """Looks two positions back, which is right for blocks of three letters."""
    letter, position = _one_hot(ids)
    return attend(100 * position @ torch.eye(48).roll(2, 0) @ position.T, letter)


@mistake(
    "copy_by_hand", caught_by="takes nothing from before the first", hint="No letter comes before"
)
def first_after_itself(ids):
    """Leaves the first letter as its own predecessor."""
    letter, position = _one_hot(ids)
    before = attend(100 * position @ torch.eye(48).roll(1, 0) @ position.T, letter)
    return attend(100 * letter @ before.T, letter)


@mistake("copy_by_hand", caught_by="says g at the second k", hint="queries and keys exchanged")
def layer_1_exchanged(ids):
    """Lets the notes ask for letters."""
    letter, position = _one_hot(ids)
    before = attend(100 * position @ torch.eye(48).roll(1, 0) @ position.T, letter)
    before[0] = 0
    return attend(100 * before @ letter.T, letter)


@mistake("copy_by_hand", caught_by="says g at the second k", hint="if they were its values as well")
def says_the_note(ids):
    """Has the notes as values of layer 1."""
    letter, position = _one_hot(ids)
    before = attend(100 * position @ torch.eye(48).roll(1, 0) @ position.T, letter)
    before[0] = 0
    return attend(100 * letter @ before.T, before)


@mistake("copy_by_hand", caught_by="says g at the second k", hint="A roll brings the last row")
def wraps_around(ids):
    """Takes the last letter as the one before the first."""
    letter, _ = _one_hot(ids)
    return attend(100 * letter @ letter.roll(1, 0).T, letter)


@mistake("copy_by_hand", caught_by="takes nothing from before the first", hint="multiplied by 100")
def weak_layer_1(ids):
    """Forgets the factor in layer 1."""
    letter, position = _one_hot(ids)
    before = attend(100 * position @ torch.eye(48).roll(1, 0) @ position.T, letter)
    before[0] = 0
    return attend(letter @ before.T, letter)


@mistake("copy_by_hand", caught_by="takes nothing from before the first", hint="add the letters")
def adds_the_letters(ids):
    """Adds the letters to what layer 1 says."""
    letter, position = _one_hot(ids)
    before = attend(100 * position @ torch.eye(48).roll(1, 0) @ position.T, letter)
    before[0] = 0
    return letter + attend(100 * letter @ before.T, letter)


def _parts(model, previous, induction):
    _, _, W_OV = of_head(model.layers[0], previous)
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    after = letters_in(model, 0) @ W_OV * model.norms[1].weight
    return letters_in(model, 1) @ W_Q, after @ W_K


@mistake("my_qk_map", caught_by="is a map of 32 × 32", hint="What is multiplied by what")
def keys_not_transposed(model, previous, induction):
    """Multiplies queries and keys entry by entry."""
    queries, keys = _parts(model, previous, induction)
    return queries * keys


@mistake("my_qk_map", caught_by="reads what head `previous`", hint="compares letters directly")
def without_layer_0(model, previous, induction):
    """Leaves out layer 0."""
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    letters = letters_in(model, 1)
    return letters @ W_Q @ (letters @ W_K).T


@mistake("my_qk_map", caught_by="reads what head `previous`", hint="Which head's")
def first_head_of_layer_0(model, previous, induction):
    """Takes head 0 of layer 0, whatever is asked for."""
    queries, keys = _parts(model, 0, induction)
    return queries @ keys.T


@mistake("my_qk_map", caught_by="asks with head `induction`", hint="Which head's")
def same_head_in_both_layers(model, previous, induction):
    """Takes head `previous` in both layers."""
    queries, keys = _parts(model, previous, previous)
    return queries @ keys.T


@mistake(
    "my_qk_map", caught_by="has the letter now in its rows", hint="Which letters are in the rows"
)
def rows_and_columns_exchanged(model, previous, induction):
    """Has the letter before in the rows."""
    queries, keys = _parts(model, previous, induction)
    return keys @ queries.T


@mistake(
    "my_qk_map",
    caught_by="is the product of the queries",
    hint="A norm multiplies by its learned scale",
)
def without_gain(model, previous, induction):
    """Forgets the gain for what layer 0 writes."""
    _, _, W_OV = of_head(model.layers[0], previous)
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    return letters_in(model, 1) @ W_Q @ (letters_in(model, 0) @ W_OV @ W_K).T


@mistake("my_qk_map", caught_by="is the product of the queries", hint="takes the note alone")
def letter_and_note(model, previous, induction):
    """Takes all that layer 0 leaves at a key, the letter and the note."""
    _, _, W_OV = of_head(model.layers[0], previous)
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    stream = model.letters.weight + letters_in(model, 0) @ W_OV
    return letters_in(model, 1) @ W_Q @ (stream * model.norms[1].weight @ W_K).T


@mistake("my_qk_map", caught_by="is the product of the queries", hint="root of `head_dim`")
def scaled(model, previous, induction):
    """Divides by the root of the head's size."""
    queries, keys = _parts(model, previous, induction)
    return queries @ keys.T / 2


@mistake("my_qk_map", caught_by="is the product of the queries", hint="Which matrix belongs")
def queries_and_keys_exchanged(model, previous, induction):
    """Takes W_K for the queries and W_Q for the keys."""
    _, _, W_OV = of_head(model.layers[0], previous)
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    after = letters_in(model, 0) @ W_OV * model.norms[1].weight
    return letters_in(model, 1) @ W_K @ (after @ W_Q).T


@mistake("my_qk_map", caught_by="is the product of the queries", hint="Which layer's W_Q")
def layer_0_asks(model, previous, induction):
    """Takes W_Q of layer 0."""
    _, keys = _parts(model, previous, induction)
    W_Q, _, _ = of_head(model.layers[0], induction)
    return letters_in(model, 1) @ W_Q @ keys.T


@mistake("my_qk_map", caught_by="is the product of the queries", hint="without a softmax")
def weights_for_scores(model, previous, induction):
    """Gives weights."""
    queries, keys = _parts(model, previous, induction)
    return (queries @ keys.T).softmax(-1)


@mistake("my_qk_map", caught_by="is the product of the queries", hint="subtract the mean")
def notes_through_norm(model, previous, induction):
    """Sends the notes through the whole norm."""
    _, _, W_OV = of_head(model.layers[0], previous)
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    after = model.norms[1](letters_in(model, 0) @ W_OV)
    return letters_in(model, 1) @ W_Q @ (after @ W_K).T


@mistake("my_qk_map", caught_by="is the product of the queries", hint="subtract the mean")
def centered(model, previous, induction):
    """Subtracts the mean of the notes, as a norm does."""
    _, _, W_OV = of_head(model.layers[0], previous)
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    notes = letters_in(model, 0) @ W_OV
    after = (notes - notes.mean(-1, keepdim=True)) * model.norms[1].weight
    return letters_in(model, 1) @ W_Q @ (after @ W_K).T


@mistake("who_is_hurt", caught_by="(a)", hint="Who else tells layer 1")
def layer_0_forgotten():
    """Thinks that any head may be spared."""
    return ["most", "most", "most", "few"]


@mistake("who_is_hurt", caught_by="(b)", hint="what came in the second fall")
def all_of_layer_0():
    """Thinks that layer 0 is needed as a whole."""
    return ["few", "few", "most", "few"]


@mistake("who_is_hurt", caught_by="(c)", hint="What does the OV map of the other one")
def no_stand_in():
    """Thinks that the best head of layer 1 is missed."""
    return ["few", "most", "few", "few"]


@mistake("who_is_hurt", caught_by="(d)", hint="Who copies the letter")
def nobody_copies():
    """Thinks that layer 0 is enough."""
    return ["few", "most", "most", "most"]


ON_PAPER = {"who_is_hurt": {"a": "most", "b": "few", "c": "few", "d": "most"}}
