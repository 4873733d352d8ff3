"""Draw the course's subset from the full Fashion-MNIST: as many of each class, order shuffled, seeded.

    python data/fashion_mnist/build_subset.py FOLDER

FOLDER holds the four files of the full set. Writes the four IDX files here and indices.csv, which says
for each image of the subset where it stands in the full set (counted from 0); the same bytes each time
on the same Python (gzip's own bytes may differ between releases of zlib, what they hold does not).
"""

import csv
import gzip
import sys
from pathlib import Path

import numpy as np

from course_utils.data.images import read_idx

HERE = Path(__file__).parent
PER_CLASS = {"train": 1_000, "t10k": 200}


def chosen(labels: np.ndarray, per_class: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of the images drawn, in the order in which they are written."""
    rows = [
        rng.choice(np.flatnonzero(labels == label), size=per_class, replace=False)
        for label in range(10)
    ]
    return rng.permutation(np.concatenate(rows))


def write_idx(path: Path, array: np.ndarray) -> None:
    """Unsigned bytes in IDX format, compressed without a date or a name in the header."""
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    path.write_bytes(gzip.compress(head + array.tobytes(), compresslevel=9, mtime=0))


def main(folder: Path) -> None:
    rng = np.random.default_rng(0)
    with (HERE / "indices.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["split", "row", "original"])
        for split, per_class in PER_CLASS.items():
            images = read_idx(folder / f"{split}-images-idx3-ubyte.gz")
            labels = read_idx(folder / f"{split}-labels-idx1-ubyte.gz")
            rows = chosen(labels, per_class, rng)
            write_idx(HERE / f"{split}-images-idx3-ubyte.gz", images[rows])
            write_idx(HERE / f"{split}-labels-idx1-ubyte.gz", labels[rows])
            table.writerows([split, row, original] for row, original in enumerate(rows.tolist()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
