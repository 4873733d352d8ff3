"""A network to compare a vision transformer with."""

from torch import nn


class SmallCNN(nn.Sequential):
    """A convolutional network to compare with: three 3 × 3 convolutions with stride 2, a linear layer.

    (batch, channels, height, width) → logits (batch, num_classes).

    Args:
        channels: of the images.
        num_classes: of the images.
        width: channels after the first convolution; then twice, then four times as many.
        dropout: before the last layer.
    """

    def __init__(
        self, *, channels: int = 1, num_classes: int = 10, width: int = 16, dropout: float = 0.1
    ):
        layers: list[nn.Module] = []
        for wider in (width, 2 * width, 4 * width):
            convolution = nn.Conv2d(channels, wider, 3, stride=2, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(wider), nn.ReLU()]
            channels = wider
        pooled = [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(dropout)]
        super().__init__(*layers, *pooled, nn.Linear(16 * width, num_classes))
