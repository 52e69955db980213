"""Denoise an image by total variation, and draw it before and after.

    python examples/denoise_image.py [image] [-o picture.png]

Without an image it takes one that comes with scikit-learn.
"""

import argparse
import time

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import fenchel as fl


def grey(path):
    """The image in grey, between 0 and 1."""
    image = load_sample_image("china.jpg") if path is None else matplotlib.image.imread(path)
    image = np.asarray(image, dtype=np.float64)
    image = image[..., :3].mean(axis=2) if image.ndim == 3 else image
    return image / image.max()


def draw(pictures, path, side):
    """Square details from the middle, next to each other."""
    figure, axes = plt.subplots(1, len(pictures), figsize=(9, 3.3), layout="constrained")
    for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
        top, left = ((size - side) // 2 for size in picture.shape)
        ax.imshow(picture[top : top + side, left : left + side], cmap="gray", vmin=0, vmax=1)
        ax.set_title(title, fontsize=10)
        ax.axis("off")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", nargs="?")
    parser.add_argument("-o", "--output", default="denoised.png")
    parser.add_argument("--weight", type=float, default=0.1)
    parser.add_argument("--noise", type=float, default=0.1)
    parser.add_argument("--side", type=int, default=300, help="of the detail that is drawn")
    options = parser.parse_args()

    clean = grey(options.image)
    noisy = clean + options.noise * np.random.default_rng(0).normal(size=clean.shape)
    start = time.perf_counter()
    result = fl.denoise(noisy, options.weight)
    print(f"{clean.shape[0]} x {clean.shape[1]} pixels in {time.perf_counter() - start:.1f} s, {result.n_iter} steps")
    print(result.certificate)
    before, after = (np.sqrt(np.mean((picture - clean) ** 2)) for picture in (noisy, result.values))
    draw(
        {
            "the image": clean,
            f"with noise: off by {before:.3f}": noisy,
            f"denoised: off by {after:.3f}": result.values,
        },
        options.output,
        min(options.side, *clean.shape),
    )


if __name__ == "__main__":
    main()
