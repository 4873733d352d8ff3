"""The frames of the chapter's first screen, `live.words`: garments drawn beforehand, with and without a word."""

import base64
import io

import torch
from PIL import Image
from torch import Tensor

from course_utils.lessons.diffusion.words import (
    NAMES,
    VISITED,
    WordUNet,
    all_but_one,
    named,
    noises,
    telling_head,
    walk,
    weights_of_left,
)

EVERY = 3
"""Steps of the sampler between two frames of the page."""

PRESSED = (0, 6, 12, 18, 24, 30)
"""Places in VISITED from which on a visitor can forbid a word."""

CAPTIONS = ((1, 9), (1, 0), (8, 3), (9, 1), (5, 2), (7, 4), (0, 7), (9, 8))


def png_of(rows: Tensor) -> str:
    """Frames of several drawings, (drawings, frames, 28, 56), as one PNG of 16 grays, in base64."""
    grays = ((rows.clamp(-1, 1) + 1) * 7.5).round().byte()
    image = Image.fromarray(grays.transpose(1, 2).flatten(2).flatten(0, 1).numpy(), "P")
    image.putpalette([17 * gray for gray in range(16) for _ in range(3)])
    buffer = io.BytesIO()
    image.save(buffer, "PNG", bits=4, optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def letters(weights: Tensor) -> str:
    """A map of weights, (height, width), as text with a letter for each place: "#" is 0, and "}" is 1."""
    return "".join(chr(35 + round(90 * weight)) for weight in weights.flatten().tolist())


def page_of(network: WordUNet, seed: int) -> dict:
    """The card of `live.words`: for each of CAPTIONS a sheet of frames, maps, and the classifier's words for the ends.

    Args:
        network: draws.
        seed: of the noise.
    """
    words, noise = torch.tensor(CAPTIONS), noises(len(CAPTIONS), seed)
    network.eval()
    pictures, guesses = walk(network, words, noise)
    classes = named(pictures[-1])
    runs = [guesses[::EVERY, :, 0]]
    # For each word, the classes of its half if it is forbidden from each of PRESSED on.
    ends: list[list[Tensor]] = [[], []]
    for word, allowed in enumerate(all_but_one(len(words))):
        for begin in PRESSED:
            x = pictures[begin]
            changed, seen = walk(network, words, noise, allowed=allowed, begin=begin, x=x)
            runs.append(after_blank_frames(seen[::EVERY, :, 0], begin // EVERY))
            ends[word].append(named(changed[-1])[:, word])
    maps = maps_of_left(network, pictures, words)
    return {
        "frames": len(runs[0]),
        "starts": [begin // EVERY for begin in PRESSED],
        "steps": VISITED[::EVERY].tolist(),
        "captions": [
            {
                "words": [NAMES[word] for word in words[i].tolist()],
                "named": [NAMES[word] for word in classes[i].tolist()],
                "sheet": png_of(torch.stack([run[:, i] for run in runs])),
                "maps": [letters(frame[i]) for frame in maps],
                "changes": [[NAMES[end[i]] for end in of_word] for of_word in ends],
            }
            for i in range(len(words))
        ],
    }


def after_blank_frames(frames: Tensor, count: int) -> Tensor:
    """Frames (frames, captions, 28, 56) with `count` black ones before them."""
    return torch.cat([-torch.ones(count, *frames.shape[1:]), frames])


def maps_of_left(network: WordUNet, pictures: Tensor, words: Tensor) -> list[Tensor]:
    """The weight of the left word at each place, (captions, 7, 14), for each frame but the last."""
    head = telling_head(network)
    return [
        weights_of_left(network, pictures[i], words, VISITED[i])[:, head]
        for i in range(0, len(VISITED) - 1, EVERY)
    ]
