"""Writes small benchmarks and prediction files in the expected layout."""

import json

ANNOTATIONS = "detection/annotations_coco"
IMAGE_SIZE = (1000, 1000)


def write_split(
    folder,
    split,
    truth,
    *,
    listed=None,
    images=None,
    annotation_ids=None,
    without=(),
    size=IMAGE_SIZE,
):
    """Write a split's COCO file; rows of ``truth`` are [image, category, [x, y, w, h](, iscrowd)].

    Images and categories default to those in ``truth``; annotations lack the fields in
    ``without``. Category n has the name ``species(n)``.
    """
    images = sorted({row[0] for row in truth}) if images is None else images
    listed = sorted({row[1] for row in truth}) if listed is None else listed
    numbers = annotation_ids or range(1, len(truth) + 1)
    annotations = [
        {
            "id": number,
            "image_id": image,
            "category_id": category,
            "bbox": box,
            "area": box[2] * box[3],
            "iscrowd": crowd[0] if crowd else 0,
            "segmentation": [],
        }
        for number, (image, category, box, *crowd) in zip(numbers, truth, strict=True)
    ]
    content = {
        "info": {},
        "images": [
            {"id": i, "width": size[0], "height": size[1], "file_name": f"{i}.jpg"} for i in images
        ],
        "annotations": [{k: v for k, v in a.items() if k not in without} for a in annotations],
        "categories": [{"id": n, "name": species(n)} for n in listed],
    }
    path = folder / ANNOTATIONS / f"{split}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def species(number):
    """The name of category ``number``: three species per genus, two genera per tribe."""
    return f"Genus{(number - 1) // 3} species{number}"


def write_taxonomy(folder, numbers, *, band="near_genus"):
    """Write the taxonomy of the categories ``numbers``; ids above 100 are held out."""
    rows = [
        "scientificName,subfamily,tribe,genus,benchmark_role,target_band,distance_band_vs_trainable"
    ]
    for n in numbers:
        role = "semantic_ood" if n > 100 else "trainable"
        genus = species(n).split()[0]
        rows.append(f"{species(n)},Scolytinae,Tribe{(n - 1) // 6},{genus},{role},,{band}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "species_taxonomy.csv").write_text("\n".join(rows) + "\n")


class DuplicateKey(str):
    """A key that can occur twice in a dict, and so in JSON."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other


def record(image, category, box, score):
    """A record of a prediction file."""
    return {"image_id": image, "category_id": category, "bbox": box, "score": score}


def write_predictions(folder, split, rows):
    """Write a split's prediction file; ``rows`` are [image, category, [x, y, w, h], score]."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{split}_predictions.json"
    path.write_text(json.dumps([record(*row) for row in rows]))
    return path
