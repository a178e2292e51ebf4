"""Pascal VOC XML: one file per image with its size and objects.

Files are parsed with defusedxml, which refuses DTDs and entities.
"""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from benchmark_eval.core.problems import Problems
from benchmark_eval.core.safe_read import read_input, unreadable
from benchmark_eval.core.text import nfc
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule, stem_of, to_corners
from benchmark_eval.formats.text_files import label_files, parse_number, rows_by_image, shortest
from benchmark_eval.voc.foreign_labels import CURE, file_format

CORNERS = ("xmin", "ymin", "xmax", "ymax")
_SKIPPED = ("pose", "truncated", "occluded", "part", "actions", "polygon")


def read(folder: Path, _options: Options, problems: Problems) -> Parsed:
    """Read the XML files of a folder; ``difficult`` becomes ``ignored``."""
    parsed = Parsed("corners", one_file_each=True)
    files = label_files(folder, ".xml", problems)
    if not files:
        problems.add("empty-folder", "no .xml file", "one XML file per image")
    for name, path in files:
        root = _parse(path, problems)
        if root is None:
            parsed.image(name)
        else:
            _read_image(parsed, root, name, path, problems)
    return parsed


def _parse(path: Path, problems: Problems) -> ElementTree.Element | None:
    try:
        root = fromstring(read_input(path), forbid_dtd=True)
    except DefusedXmlException as error:
        problems.add("xml-entities", type(error).__name__, "XML without DTD and entities",
                   record=path.name, cause="an entity bomb, or not an annotation file")  # fmt: skip
        return None
    except OSError as error:
        problems.extend([unreadable(problems.file, error, "an XML file", record=path.name)])
        return None
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        problems.add("not-xml", f"invalid XML: {error}"[:200], "an XML file", record=path.name)
        return None
    if root is None or root.tag != "annotation":
        found = "no element" if root is None else f"<{root.tag}>"
        foreign = file_format(path)
        cause = f"{foreign}, {CURE}" if foreign else ""
        problems.add("not-voc", found, "<annotation>", record=path.name, cause=cause)
        return None
    return root


def _read_image(
    parsed: Parsed, root: ElementTree.Element, stem: str, path: Path, problems: Problems
) -> None:
    # <filename> goes stale if files are renamed, so the name of the XML file takes precedence
    filename = (root.findtext("filename") or "").strip()
    same = nfc(stem_of(filename)) == nfc(path.stem)
    name = stem
    if same:
        name = filename if "/" not in stem else stem + PurePosixPath(filename).suffix
    if filename and not same:
        parsed.skipped["<filename> different from the name of the file"] += 1
    image = parsed.image(name, f"{path.name} object")
    size = [_number(root, f"size/{side}", path.name, problems) for side in ("width", "height")]
    if size[0] and size[1]:
        parsed.sizes[image] = (size[0], size[1])
    for at, entry in enumerate(root.iterfind("object"), start=1):
        where = f"{path.name} object {at}"
        for tag in _SKIPPED:
            found = entry.findtext(tag)
            if found is not None and found.strip().lower() not in ("", "0", "unspecified"):
                parsed.skipped[f"<{tag}> of objects"] += 1
        label = " ".join((entry.findtext("name") or "").split())
        if not label:
            problems.add("class-name", "missing <name>", "a class name", record=where)
        corners = [_number(entry, f"bndbox/{tag}", where, problems) for tag in CORNERS]
        missing = [tag for tag, value in zip(CORNERS, corners, strict=True) if value is None]
        if missing:
            if all(entry.find(f"bndbox/{tag}") is None for tag in missing):
                found = f"missing {', '.join(missing)}"
                problems.add("no-box", found, "a <bndbox> with four numbers", record=where)
            continue
        difficult = (entry.findtext("difficult") or "0").strip()
        if difficult not in ("0", "1"):
            problems.add("difficult", repr(difficult), "0 or 1", record=where, field="difficult")
        box = (corners[0] or 0.0, corners[1] or 0.0, corners[2] or 0.0, corners[3] or 0.0)
        parsed.add(image, label, box, record=at, ignored=difficult == "1")


def _number(element: ElementTree.Element, tag: str, where: str, problems: Problems) -> float | None:
    text = element.findtext(tag)
    if text is None:
        return None
    try:
        return parse_number(text.strip())
    except ValueError as error:
        problems.add("not-a-number", str(error), "a number", record=where, field=tag)
        return None


def write(boxes: BoxTable, target: Path, pixels: PixelRule) -> None:
    """Write one XML file per image, without objects if it has no box."""
    corners = to_corners(boxes, pixels).tolist()
    label, ignored = boxes.label.tolist(), boxes.ignored.tolist()
    columns = zip(
        boxes.images.names,
        boxes.images.stems,
        boxes.images.sizes.tolist(),
        rows_by_image(boxes),
        strict=True,
    )
    for name, stem, (width, height), rows in columns:
        root = ElementTree.Element("annotation")
        _text(root, "filename", name)
        if not math.isnan(width):
            size = ElementTree.SubElement(root, "size")
            for tag, value in (
                ("width", shortest(width)),
                ("height", shortest(height)),
                ("depth", "3"),
            ):
                _text(size, tag, value)
        for row in rows:
            entry = ElementTree.SubElement(root, "object")
            _text(entry, "name", boxes.classes.names[label[row]])
            _text(entry, "difficult", str(int(ignored[row])))
            box = ElementTree.SubElement(entry, "bndbox")
            for tag, value in zip(CORNERS, corners[row], strict=True):
                _text(box, tag, shortest(value))
        ElementTree.indent(root)
        data = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
        (target / f"{stem}.xml").write_bytes(data + b"\n")


def _text(parent: ElementTree.Element, tag: str, text: str) -> None:
    ElementTree.SubElement(parent, tag).text = text
