"""Convert boxes between annotation formats and into the benchmark's prediction files.

    from benchmark_eval import convert_annotations
    report = convert_annotations("runs/labels", "predictions/my_model", to_format="benchmark",
                                 benchmark_dir="benchmark", splits="iid_test", names="data.yaml")
    print(report)

Each format is a module with one reader and one writer. Readers return, and writers take, a
``BoxTable``. No detection framework is required.
"""

from benchmark_eval.formats.classes import read_class_names
from benchmark_eval.formats.conversion import Report, convert_annotations, read_boxes, write_boxes
from benchmark_eval.formats.detection import detect_format
from benchmark_eval.formats.huggingface import from_arrays
from benchmark_eval.formats.images import build_image_lookup, split_images
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.registry import FORMATS
from benchmark_eval.formats.table import BoxTable

__all__ = [
    "FORMATS",
    "BoxTable",
    "Options",
    "Report",
    "build_image_lookup",
    "convert_annotations",
    "detect_format",
    "from_arrays",
    "read_boxes",
    "read_class_names",
    "split_images",
    "write_boxes",
]
