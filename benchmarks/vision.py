"""Training vision transformers: images per second, against d2l 1.0.3 and vit-pytorch.

Everybody has 28 × 28 grey images, patches of 7 × 7, 128 features, a network of 256, 4 heads, 2 layers, dropout
0.1 where its authors put it, batches of 128 of the same scaled images, and takes the same steps
(`timing.training`): forward, loss, backward, gradients clipped at 1, PyTorch's Adam, float32.
"""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import peers
from benchmarks.timing import Row, Settings, faster, race, rate, size, training
from course_utils.data.images import load_fashion_mnist, scaled
from course_utils.models.vision import ViT

BATCH = 128
DROPOUT = 0.1


class Task:
    """The images, and how a round goes."""

    def __init__(self, settings: Settings):
        data = load_fashion_mnist().take(256 if settings.tiny else 2_560)
        self.images, self.labels = scaled(data.images), data.labels

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """All images in a new order."""
        for rows in torch.randperm(len(self.labels)).split(BATCH):
            yield self.images[rows], self.labels[rows]

    def round(self, model: nn.Module) -> Callable[[], None]:
        """A pass over all images."""

        def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
            images, labels = batch
            return F.cross_entropy(model(images), labels)

        return training(model, self.batches, loss)

    def row(self, name: str, what: str, ours, peer, settings: Settings, **options) -> Row:
        """Images per second of both."""
        mine, theirs = race(ours, peer, settings)
        amount = len(self.labels)
        return Row(
            name,
            what,
            "images/s",
            ours=rate(amount, mine),
            peer=rate(amount, theirs),
            ratio=faster(mine, theirs),
            **options,
        )


# Against peers ----------------------------------------------------------------------------------


class D2LViT(nn.Module):
    """The book's ViT (section 11.8) from the package's attention; its class there needs d2l's Trainer."""

    def __init__(self, d2l):
        super().__init__()
        self.conv = nn.Conv2d(1, 128, kernel_size=7, stride=7)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 128))
        self.pos_embedding = nn.Parameter(torch.randn(1, 17, 128))
        self.dropout = nn.Dropout(DROPOUT)
        self.blocks = nn.Sequential(*(self.block(d2l) for _ in range(2)))
        self.head = nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 10))
        with torch.no_grad():
            self(torch.zeros(2, 1, 28, 28))  # lazy layers get their sizes

    @staticmethod
    def block(d2l) -> nn.Module:
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.ln1, self.ln2 = nn.LayerNorm(128), nn.LayerNorm(128)
                self.attention = d2l.MultiHeadAttention(128, 4, DROPOUT)
                self.mlp = nn.Sequential(
                    nn.Linear(128, 256), nn.GELU(), nn.Dropout(DROPOUT),
                    nn.Linear(256, 128), nn.Dropout(DROPOUT),
                )  # fmt: skip

            def forward(self, x: Tensor) -> Tensor:
                normed = self.ln1(x)
                x = x + self.attention(normed, normed, normed, None)
                return x + self.mlp(self.ln2(x))

        return Block()

    def forward(self, images: Tensor) -> Tensor:
        x = self.conv(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(len(x), -1, -1), x), 1)
        return self.head(self.blocks(self.dropout(x + self.pos_embedding))[:, 0])


def vit_d2l(settings: Settings) -> Row:
    """Our ViT against d2l's."""
    theirs = D2LViT(peers.load("d2l", "d2l.torch"))
    task, ours = Task(settings), ViT(dropout=DROPOUT)
    return task.row(
        "vit-d2l",
        "ViT against d2l",
        task.round(ours),
        task.round(theirs),
        settings,
        target=1.3,
        note=f"parameters: ours {size(ours)}, d2l {size(theirs)}",
    )


def vit_pytorch(settings: Settings) -> Row:
    """Our ViT against vit-pytorch's."""
    package = peers.load("vit-pytorch", "vit_pytorch")
    task, ours = Task(settings), ViT(dropout=DROPOUT)
    theirs = package.ViT(
        image_size=28,
        patch_size=7,
        num_classes=10,
        dim=128,
        depth=2,
        heads=4,
        dim_head=32,
        mlp_dim=256,
        channels=1,
        dropout=DROPOUT,
        emb_dropout=DROPOUT,
    )
    return task.row(
        "vit-pytorch",
        "ViT against vit-pytorch",
        task.round(ours),
        task.round(theirs),
        settings,
        target=1.3,
        note=f"parameters: ours {size(ours)}, vit-pytorch {size(theirs)}",
    )


ROWS: dict[str, Callable[[Settings], Row]] = {"vit-d2l": vit_d2l, "vit-pytorch": vit_pytorch}
