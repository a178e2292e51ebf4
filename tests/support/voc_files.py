"""Small folders of VOC-style text for the tests of the mAP tool."""

from benchmark_eval.voc import score_voc_folders


def write_folder(folder, files):
    """``files``: image name -> text, bytes or lines."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / f"{name}.txt"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            text = content if isinstance(content, str) else "".join(f"{c}\n" for c in content)
            path.write_bytes(text.encode())
    return folder


def score(tmp_path, ground_truth, detections, **options):
    """The result for two folders with this content."""
    return score_voc_folders(
        write_folder(tmp_path / "det", detections),
        write_folder(tmp_path / "gt", ground_truth),
        **options,
    )[0]


def of(result, name):
    """The score of one class."""
    return next(score for score in result.classes if score.name == name)
