"""A small benchmark with named images, and a function that runs ``benchmark-eval convert``."""

import json

from click.testing import CliRunner

from benchmark_eval.cli.convert import command

SPECIES = {3: "Ips typographus", 7: "Hylastes ater", 8: "Hylastes opacus", 12: "Xylosandrus x"}
IMAGES = {11: ("beetle-a.jpg", 1000, 500), 12: ("007.jpg", 200, 100), 42: ("c.v2.png", 640, 480)}


def write_benchmark(folder, images=IMAGES):
    coco = folder / "detection" / "annotations_coco"
    coco.mkdir(parents=True)
    rows = [f"{name},Scolytinae,T,{name.split()[0]},trainable,," for name in SPECIES.values()]
    (folder / "species_taxonomy.csv").write_text(
        "scientificName,subfamily,tribe,genus,benchmark_role,target_band,"
        "distance_band_vs_trainable\n" + "\n".join(rows) + "\n"
    )
    content = {
        "images": [
            {"id": i, "file_name": name}
            | ({"width": width, "height": height} if width is not None else {})
            for i, (name, width, height) in images.items()
        ],
        "annotations": [
            {"id": 1, "image_id": min(images), "category_id": 3, "bbox": [1, 2, 3, 4], "iscrowd": 0}
        ],
        "categories": [{"id": i, "name": name} for i, name in SPECIES.items()],
    }
    (coco / "iid_test.json").write_text(json.dumps(content))
    return folder


def run(*args):
    """Run the command; the result holds its exception."""
    return CliRunner().invoke(command, [str(a) for a in args], standalone_mode=False)


def lay(folder, files):
    """Write text files by name; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def lay_file(path, content):
    lay(path.parent, {path.name: content})
    return path
