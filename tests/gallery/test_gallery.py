"""The command: the page, its pictures, and what it says if something is missing or wrong."""

import getpass
import json
import re
import shutil

import pytest
from click.testing import CliRunner
from PIL import Image
from support.gallery import (
    FOUND,
    SPECIES,
    SPECIMEN,
    Page,
    draw_images,
    place,
    write_licences,
)
from support.layout import ANNOTATIONS, species, write_predictions, write_split, write_taxonomy

from benchmark_eval import evaluate_to_files
from benchmark_eval.cli.main import cli
from benchmark_eval.core.errors import BenchmarkEvalError, InputError, UsageError
from benchmark_eval.gallery import write_gallery
from benchmark_eval.protocol import TEST_SPLITS

HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(3)",
    "Ips\u202e\x1b[2J\x07typographus",
    "x" * 300,
)


def gallery(folder, *models, **options):
    """Write a gallery of the models (by default m); returns its page and the result."""
    given = {
        "benchmark_dir": folder / "b",
        "predictions_dir": folder / "p",
        "jobs": 1,
        **options,
    }
    made = write_gallery(models or ["m"], folder / "g", **given)
    return Page(made.page), made


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # no results/models
    return place(tmp_path)


def files(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*.*"))}


def test_the_page_of_one_model(here):
    page, made = gallery(here)
    assert (made.n_cases, made.n_pictured, made.warnings) == (len(page.cases), 18, ())
    types = [case["data-type"] for case in page.of(**{"split": "iid_test"})]
    assert types == [
        "missed", "wrong_name_congener", "wrong_name_same_tribe", "wrong_name_other", "both",
        "poor_box", "duplicate",
    ]  # fmt: skip
    (case,) = page.of(split="iid_test", type="wrong_name_congener")
    assert f"Predicted {species(2)} Confidence 0.800" in case["text"]
    assert "at or above the operating threshold IoU 1.00" in case["text"]
    assert f"True species {species(1)} Split iid_test, 1 specimen on the image" in case["text"]
    assert "Band near_genus Image 2.jpg" in case["text"]
    assert "Licence CC BY 4.0; photographer: A. Photographer; A Museum" in case["text"]
    assert "https://creativecommons.org/licenses/by/4.0/" in case["links"]
    assert case["data-band"] == "near_genus"
    assert case["data-density"] == "0"
    # every picture and link exists, and each is used
    shown = {picture["src"] for case in page.cases for picture in case["pictures"]}
    linked = {link for case in page.cases for link in case["links"] if "://" not in link}
    on_disk = set(files(here / "g")) - {"index.html"}
    assert shown | linked == {name for name in on_disk if not name.startswith(".")}
    for case in page.cases:
        (picture,) = case["pictures"]
        with Image.open(here / "g" / picture["src"]) as crop:
            assert crop.size == (int(picture["width"]), int(picture["height"]))
        assert picture["loading"] == "lazy"
        assert picture["alt"].startswith("Crop: ")


def test_numbers_of_the_overview(here):
    page, _ = gallery(here, cases=1)
    # on semantic_ood, poor boxes are of any species
    assert re.search(r"Missed specimens 1 of 1 \(1\) 1 of 1 \(1\) 1 of 1 \(\d\)", page.text)
    assert "Poor boxes 1 of 1 (0) 1 of 1 (0) 1 of 2 (0)" in page.text
    assert "Misidentified as a congener 1 of 1 (1) 1 of 1 (1) not defined" in page.text
    assert "Wrong species are not defined on semantic_ood" in page.text


def test_the_same_inputs_give_the_same_bytes(here, tmp_path):
    gallery(here)
    first = files(here / "g")
    shutil.copytree(here / "b", here / "elsewhere/b")
    shutil.copytree(here / "p", here / "elsewhere/p")
    gallery(here / "elsewhere", jobs=2)
    assert files(here / "elsewhere/g") == first
    gallery(here)  # replaces its own files
    assert files(here / "g") == first


def test_without_javascript_all_cases_are_visible(here):
    page, _ = gallery(here)
    hidden = [attributes for _, attributes in page.elements if "hidden" in attributes]
    assert [attributes["id"] for attributes in hidden] == ["filters"]


def test_no_path_and_no_user_is_in_the_page(here):
    draw_images(here / "b/detection/images/iid_test", [1], (30, 20))  # another size
    (here / "b/detection/images/inat_test/2.jpg").write_bytes(b"hello")
    (here / "b/detection/images/inat_test/3.jpg").unlink()
    page, made = gallery(here)
    assert len(made.warnings) == 3
    for words in (str(here), str(here.parents[1]), "file:/", "/tmp"):
        assert words not in page.html
    if getpass.getuser() not in ("root", "user"):
        assert getpass.getuser() not in page.html
    for _, attributes in page.elements:
        for name in ("src", "href"):
            link = attributes.get(name) or ""
            assert link.startswith("https://creativecommons.org/") or not link.startswith(
                ("/", "..", "file", "http")
            )


# ------------------------------------------------------------------ images


def test_without_images_the_page_says_where_they_are_looked_for(tmp_path):
    place(tmp_path, images=False)
    page, made = gallery(tmp_path)
    assert (made.n_cases, made.n_pictured) == (18, 0)
    assert (
        "Pictures: none of the images was found. They are looked for in detection/images of the "
        "benchmark (--images-dir names another folder), as <split>/<file name> or <file name>."
    ) in page.text
    assert {len(case["pictures"]) for case in page.cases} == {0}
    assert all("No picture: no image file of this name." in c["text"] for c in page.cases)
    # the warning has the path
    assert [str(w) for w in made.warnings] == [
        f"{tmp_path}/b/detection/images: no such folder; expected each image as <split>/<file "
        "name> or <file name> (not downloaded? --images-dir names another folder)"
    ]
    assert sorted(p.name for p in (tmp_path / "g").iterdir() if p.name[0] != ".") == ["index.html"]


def test_half_of_the_images(here):
    shutil.rmtree(here / "b/detection/images/iid_test")
    page, made = gallery(here)
    assert made.n_pictured == 11
    assert "Pictures: 5 images were not found." in page.text
    assert {bool(c["pictures"]) for c in page.of(split="iid_test")} == {False}
    assert {bool(c["pictures"]) for c in page.of(split="inat_test")} == {True}


def test_a_broken_image_and_one_of_another_size(here):
    images = here / "b/detection/images"
    whole = (images / "iid_test/2.jpg").read_bytes()
    (images / "iid_test/2.jpg").write_bytes(whole[: len(whole) // 2])
    draw_images(images / "iid_test", [3], (150, 100))
    page, made = gallery(here)
    assert made.n_pictured == 16
    (broken,) = page.of(split="iid_test", type="wrong_name_congener")
    assert "No picture: an unreadable image (" in broken["text"]
    (other,) = page.of(split="iid_test", type="wrong_name_same_tribe")
    assert (
        "No picture: 150 x 100 px in the file; expected 300 x 200 px, as in the annotations (a "
        "resized image, or an image of another data set)."
    ) in other["text"]
    assert "1 image have another size" not in page.text
    assert "Pictures: 1 image of another size than annotated" in page.text
    assert "Pictures: 1 unreadable image" in page.text
    assert {w.kind for w in made.warnings} == {"image-size", "image-file"}


def test_images_in_another_folder_flat_or_by_split(here):
    first = gallery(here)[0].html
    (here / "b/detection/images").rename(here / "photos")
    page, made = gallery(here, images_dir=here / "photos")
    assert made.n_pictured == 18
    assert page.html == first
    shutil.copytree(here / "photos/iid_test", here / "flat")
    page, made = gallery(here, images_dir=here / "flat")
    assert made.n_pictured == 18
    empty = here / "empty"
    empty.mkdir()
    page, made = gallery(here, images_dir=empty)
    assert [str(w) for w in made.warnings] == [
        f"{empty}: found none of the images; expected each image as <split>/<file name> or <file "
        "name>"
    ]
    assert "They are looked for in --images-dir, as <split>/<file name>" in page.text
    with pytest.raises(UsageError, match=r"--images-dir .*nowhere: found no such folder; expected"):
        gallery(here, images_dir=here / "nowhere")
    with pytest.raises(UsageError, match=r"found a file; expected a folder of images"):
        gallery(here, images_dir=here / "b/image_licences.csv")


def test_annotations_without_file_names(here):
    for split in TEST_SPLITS:
        path = here / "b" / ANNOTATIONS / f"{split}.json"
        content = json.loads(path.read_text())
        for image in content["images"]:
            del image["file_name"]
        path.write_text(json.dumps(content))
    page, made = gallery(here)
    assert made.n_pictured == 0
    assert "Image image 5 (no file name)" in page.text
    assert "A. Photographer" in page.text  # found by the UUID


# ------------------------------------------------------------------ licences


def test_missing_licences(here):
    (here / "b/image_licences.csv").unlink()
    page, made = gallery(here)
    assert [str(w) for w in made.warnings] == [
        "image_licences.csv: no such file; expected the licences of the images"
    ]
    assert "Licences and photographers: image_licences.csv of the benchmark is missing" in page.text
    assert all("Licence unknown: no row in image_licences.csv" in c["text"] for c in page.cases)


def test_an_image_without_a_row_and_blank_cells(here):
    write_licences(here / "b", ["iid_test"], photographer="", license_name="", license_url="")
    page, _ = gallery(here)
    (case,) = page.of(split="iid_test", type="missed")
    assert "Licence not stated; photographer: not stated; A Museum" in case["text"]
    (case,) = page.of(split="inat_test", type="missed")
    assert "Licence unknown: no row" in case["text"]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "//x.org", "file:///"])
def test_only_addresses_of_the_web_become_links(here, url):
    write_licences(here / "b", TEST_SPLITS, license_url=url)
    page, _ = gallery(here)
    assert not any(url in (a.get("href") or "") for _, a in page.elements)


# ------------------------------------------------------------------ hostile names


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text(here, name):
    for split in TEST_SPLITS:
        path = here / "b" / ANNOTATIONS / f"{split}.json"
        content = json.loads(path.read_text())
        content["categories"][0]["name"] = name
        content["images"][4]["file_name"] = name
        content["info"]["description"] = name
        path.write_text(json.dumps(content))
    write_licences(here / "b", TEST_SPLITS, photographer=name, license_name=name)
    page, made = gallery(here)
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert not any("onerror" in attributes for _, attributes in page.elements)
    shown = name.replace("\u202e", r"\u202e").replace("\x1b", r"\x1b").replace("\x07", r"\x07")
    (case,) = page.of(split="iid_test", type="missed")
    assert f"True species {shown} Split" in case["text"]
    assert f"photographer: {shown}; A Museum" in case["text"]
    assert "".join(page.html.split("\n")).isprintable()
    assert "49" not in case["text"]
    assert made.n_pictured == 15


def test_the_name_of_a_model_stays_text(here):
    name = 'a "<b>&\u00e9 {{ 7 * 7 }}'
    shutil.copytree(here / "p/m", here / "p" / name)
    page, _ = gallery(here, name)
    assert f"Gallery of failures: {name}" in page.text
    assert "b" not in [tag for tag, _ in page.elements]


# ------------------------------------------------------------------ two models


def test_two_models_side_by_side(here):
    page, _ = gallery(here, "m", "n")
    (case,) = page.of(split="iid_test", type="found_by_one")
    assert case["data-model"] == "0 1"
    assert "m: detected" in case["text"]
    assert "n: missed: no detection at any confidence" in case["text"]
    assert len(case["pictures"]) == 2
    sizes = {(p["width"], p["height"]) for p in case["pictures"]}
    assert len(sizes) == 1  # the same region
    assert "Detected by m, missed by n" in page.text
    assert "Detected by n, missed by m" not in page.text  # there are none
    assert {c["data-model"] for c in page.cases} == {"0 1", "0", "1"}
    assert len(page.of(model="1", type="missed", split="iid_test")) == 2


def test_a_split_that_only_one_of_two_models_has(here):
    (here / "p/n/semantic_ood_predictions.json").unlink()
    page, _ = gallery(here, "m", "n")
    assert "semantic_ood: n has no semantic_ood_predictions.json (or .gz)." in page.text
    assert "semantic_ood: the models are not compared, as only one has predictions." in page.text
    assert page.of(split="semantic_ood", model="0")
    assert not page.of(split="semantic_ood", model="1")
    assert "no predictions" in page.text


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "found 0 models"),
        (["m", "n", "o"], "found 3 models"),
        (["m", "m"], "found 'm' twice"),
        (["../m"], "found a name"),
    ],
)
def test_names_of_models_that_are_refused(here, names, words):
    with pytest.raises(UsageError, match=f"--model.*{words}.*; expected"):
        write_gallery(names, here / "g", benchmark_dir=here / "b", predictions_dir=here / "p")


# ------------------------------------------------------------------ splits


def test_no_split_of_unseen_species(tmp_path):
    place(tmp_path, ("iid_test",))
    page, _ = gallery(tmp_path)
    assert {case["data-split"] for case in page.cases} == {"iid_test"}
    for split in ("inat_test", "semantic_ood"):
        assert f"{split}: the benchmark has no {ANNOTATIONS}/{split}.json." in page.text
    assert "not defined on semantic_ood" not in page.text
    with pytest.raises(UsageError, match=r"split 'semantic_ood': the benchmark has no"):
        gallery(tmp_path, splits=["semantic_ood"])


def test_missing_predictions(here):
    (here / "p/m/semantic_ood_predictions.json").unlink()
    page, _ = gallery(here)
    assert "semantic_ood: m has no semantic_ood_predictions.json (or .gz)." in page.text
    with pytest.raises(InputError, match=r"semantic_ood_predictions\.json: no such file"):
        gallery(here, splits=["semantic_ood"])
    shutil.rmtree(here / "p/m")
    with pytest.raises(InputError, match=r"iid_test_predictions\.json: no folder .*/p/m"):
        gallery(here)


def test_without_iid_test_the_operating_threshold_is_undefined(here):
    page, _ = gallery(here, splits=["inat_test"])
    assert "at the operating threshold, which is undefined: iid_test was not scored" in page.text
    assert "operating threshold IoU" not in page.text


def test_no_errors_to_show(tmp_path):
    place(tmp_path, ("iid_test",))
    write_predictions(tmp_path / "p/m", "iid_test", [[i, 1, SPECIMEN, 0.9] for i in range(1, 6)])
    page, made = gallery(tmp_path)
    assert made.n_cases == 0
    assert "No errors to show." in page.text


def test_no_detections(here):
    for split in TEST_SPLITS:
        write_predictions(here / "p/m", split, [])
    page, made = gallery(here)
    assert {case["data-type"] for case in page.cases} == {"missed"}
    assert made.n_cases == 15


def test_invalid_predictions_are_refused_together(here):
    for split in ("iid_test", "inat_test"):
        write_predictions(here / "p/m", split, [[1, 99, SPECIMEN, 0.5], [1, 1, SPECIMEN, 2]])
    with pytest.raises(InputError) as caught:
        gallery(here)
    assert len(caught.value.problems) == 4
    assert not (here / "g").exists()


# ------------------------------------------------------------------ config and results


def write_config(here, **keys):
    (here / "manifest.csv").write_text(
        "model_name,regime,k_or_p,seed\nm,global_uniform,5,0\nn,global_uniform,5,1\n"
    )
    content = {"benchmark_dir": "b", "predictions_dir": "p", "manifest": "manifest.csv", **keys}
    (here / "config.yaml").write_text(json.dumps(content))
    return here / "config.yaml"


def from_config(here, *models, **keys):
    config = write_config(here, **keys)
    return gallery(here, *models, configfile=config, benchmark_dir=None, predictions_dir=None)


def test_a_config(here):
    page, _ = from_config(here, splits=["iid_test", "semantic_ood"], iou=0.95)
    assert {case["data-split"] for case in page.cases} == {"iid_test", "semantic_ood"}
    assert "at IoU 0.95" in page.text
    with pytest.raises(InputError, match=r"no model 'M'; expected a model_name of the manifest"):
        from_config(here, "M")
    with pytest.raises(UsageError, match="give --configfile with a benchmark_dir"):
        from_config(here, benchmark_dir=None)
    page, _ = from_config(here, manifest=None)
    assert page.cases


def evaluate(here, model="m", **options):
    evaluate_to_files(
        benchmark=here / "b",
        predictions_dir=here / "p" / model,
        output_dir=here / "e",
        model_name=model,
        **options,
    )


def test_results_that_belong_to_the_files(here):
    page, _ = gallery(here)
    assert "m: no summary of an evaluation was found" in page.text
    evaluate(here)
    with_results, _ = gallery(here, eval_dir=here / "e")
    assert "no summary" not in with_results.text
    assert len(with_results.cases) == len(page.cases)
    shutil.copytree(here / "e", here / "results/models/m")
    found, _ = gallery(here)  # in the current folder, as the workflow writes them
    assert found.html == with_results.html
    with pytest.raises(InputError, match=r"no summary of 'n'; expected n_summary\.json or n/"):
        gallery(here, "n", eval_dir=here / "e")
    page, _ = gallery(here, "n")
    assert "n: no summary of an evaluation was found" in page.text


def test_the_options_are_those_of_the_results(here):
    evaluate(here, iou=0.95, operating_confidence=0.65)
    page, _ = gallery(here, eval_dir=here / "e", splits=["inat_test"])
    assert "at IoU 0.95" in page.text
    assert "at the operating threshold, 0.650 (operating_confidence)" in page.text
    config = write_config(here, iou=0.5)
    with pytest.raises(InputError) as caught:
        gallery(here, configfile=config, eval_dir=here / "e")
    assert [str(p) for p in caught.value.problems] == [
        f"{here}/e/m_summary.json: found values scored with iou 0.95; expected iou 0.5, as in the "
        "config (an option was changed: evaluate the model again)",
        f"{here}/e/m_summary.json: found values scored with operating_confidence 0.65; expected "
        "operating_confidence None, as in the config (an option was changed: evaluate the model "
        "again)",
    ]


def test_results_of_other_files_are_refused(here):
    evaluate(here)
    write_predictions(here / "p/m", "inat_test", FOUND[:2])
    write_split(here / "b", "semantic_ood", [[1, 1, SPECIMEN]], listed=SPECIES)
    write_predictions(here / "p/m", "semantic_ood", FOUND[:1])
    with pytest.raises(InputError) as caught:
        gallery(here, eval_dir=here / "e")
    found = [str(p) for p in caught.value.problems]
    assert len(found) == 3
    for text, role in zip(
        found,
        (f"benchmark/{ANNOTATIONS}/semantic_ood.json", "predictions/inat_test",
         "predictions/semantic_ood"),
        strict=True,
    ):  # fmt: skip
        assert f"{here}/e/m_summary.json: found values scored on {role} with SHA-256" in text
        assert text.endswith("(the file changed after the evaluation: evaluate the model again)")
    assert not (here / "g").exists()


def test_results_of_another_model_or_version_are_refused(here):
    evaluate(here)
    path = here / "e/m_summary.json"
    path.write_text(path.read_text().replace('"model":"m"', '"model":"k"')
                    .replace('"model": "m"', '"model": "k"'))  # fmt: skip
    text = re.sub(r'("scoring_code": ?)"\w{6}', r'\1"000000', path.read_text())
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        gallery(here, eval_dir=here / "e")
    assert [p.kind for p in caught.value.problems] == ["other-model", "other-code"]


def test_missing_options(here):
    for options, words in (
        ({"benchmark_dir": None}, "no benchmark: give --configfile"),
        ({"predictions_dir": None}, "no predictions: give --configfile, or --predictions-dir"),
        ({"benchmark_dir": here / "index.npz"}, "found an index; expected the folder"),
        ({"cases": 0}, "cases must be >= 1, got 0"),
    ):
        with pytest.raises(UsageError, match=words):
            gallery(here, **options)
    with pytest.raises(InputError):
        gallery(here, benchmark_dir=here / "nowhere")
    assert not (here / "g").exists()


def test_the_folder_of_one_model(here):
    page, _ = gallery(here, "anything", predictions_dir=here / "p/m")
    assert len(page.cases) == 18


# ------------------------------------------------------------------ output


@pytest.mark.parametrize("folder", ["b", "b/detection", "b/detection/images", "p", "p/m", "p/m/g"])
def test_an_output_folder_with_inputs(here, folder):
    """``images/`` would be that of the benchmark, and ``crops/`` would be a model."""
    before = files(here)
    with pytest.raises(UsageError, match="found a folder of the benchmark or of predictions"):
        gallery_at(here, here / folder)
    assert files(here) == before


def gallery_at(here, output):
    write_gallery(["m"], output, benchmark_dir=here / "b", predictions_dir=here / "p", jobs=1)


def test_pictures_of_an_earlier_run_are_removed(here):
    gallery(here)
    (here / "g/crops/mine.txt").write_text("mine")
    page, _ = gallery(here, cases=1, splits=["iid_test"])
    crops = sorted(p.name for p in (here / "g/crops").iterdir())
    assert len(crops) == len(page.cases) + 1
    assert "mine.txt" in crops


def test_a_full_gallery_of_another_program_is_kept(here):
    (here / "g").mkdir()
    (here / "g/index.html").write_text("mine")
    with pytest.raises(UsageError, match="did not write"):
        gallery(here)
    assert (here / "g/index.html").read_text() == "mine"
    gallery(here, force=True)


def test_the_command(here):
    def run(*words):
        line = ["gallery", "--model", "m", "--output-dir", str(here / "g"), "--jobs", "1", *words]
        return CliRunner().invoke(cli, line)

    (here / "config").mkdir()
    write_config(here).rename(here / "config/config.yaml")
    result = run("--quiet")
    assert result.exit_code == 0, result.output
    assert result.output == f"18 cases, 18 with pictures: {here}/g/index.html\n"
    (here / "b/detection/images/iid_test/5.jpg").unlink()
    result = run("--splits", "iid_test", "inat_test", "--model", "n")
    assert result.exit_code == 0
    assert "warning: 1 problem found" in result.stderr
    assert "iid_test, image '5.jpg': no image file of this name; expected each image as" in (
        result.stderr
    )
    assert {c["data-split"] for c in Page(here / "g/index.html").cases} == {"iid_test", "inat_test"}
    result = run("--benchmark-dir", str(here / "nowhere"), "--predictions-dir", "p")
    assert isinstance(result.exception, BenchmarkEvalError)


def test_a_large_number_of_specimens_is_not_quadratic_in_the_page(tmp_path):
    """The page has one entry per case, whatever the number of boxes."""
    truth = [[1, 1, [10 * (i % 30), 10 * (i // 30), 9, 9]] for i in range(200)]
    write_split(tmp_path / "b", "iid_test", truth, listed=SPECIES, size=(300, 200))
    write_taxonomy(tmp_path / "b", SPECIES)
    write_predictions(tmp_path / "p/m", "iid_test", [])
    page, made = gallery(tmp_path, cases=50)
    assert made.n_cases == len(page.cases) == 50
    assert {c["data-density"] for c in page.cases} == {"2"}
    assert len(page.html) < 200_000
