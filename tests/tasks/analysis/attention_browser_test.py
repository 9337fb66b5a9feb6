"""Pages of `realetc attention` in a headless Chromium.

attention_browser_test.py PROGRAM SOURCE_DIR

Trains the demo of wikihop by a few updates, without and with residual scores,
analyses both side by side, and opens the pages: no message on the console,
nothing wider than a phone but what scrolls by itself, and the cells of chosen
layers and heads are those of the files for programs. Exit code 77 without
Chromium: skipped.
"""

import html.parser
import json
import subprocess
import sys
import tempfile

import browser

# Width of the page on a phone, in pixels.
NARROW = 390


class Elements(html.parser.HTMLParser):
    """Texts of <title>, <figure>, headings and rows of tables."""

    VOID = ("meta", "link", "input", "br")

    def __init__(self, text):
        super().__init__()
        self.titles = []  # tooltips
        self.figures = []  # (caption, attributes of the svg, texts in it)
        self.tables = {}  # name -> rows of texts
        self.headings = []
        self._open = []
        self._table = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "figure":
            self.figures.append(["", {}, []])
        if tag == "svg" and "figure" in self._open:
            self.figures[-1][1] = attributes
        if tag == "table":
            section = [h for h in self.headings if h[0] == "h2"]
            self._table = (section[-1][1] if section else "",
                           attributes.get("data-measure")
                           or attributes.get("id"))
            self.tables[self._table] = []
        if tag == "tr" and self._table:
            self.tables[self._table].append([])
        if tag in ("td", "th") and self._table:
            self.tables[self._table][-1].append("")
        if tag == "title":
            self.titles.append("")
        if tag in ("h1", "h2", "h3"):
            self.headings.append([tag, ""])
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass
        if tag == "table":
            self._table = None

    def handle_data(self, data):
        inside = self._open[-1] if self._open else ""
        if inside == "title":
            self.titles[-1] += data
        elif inside in ("h1", "h2", "h3"):
            self.headings[-1][1] += data
        elif inside == "figcaption":
            self.figures[-1][0] += data
        elif inside == "text" and "figure" in self._open:
            self.figures[-1][2].append(data)
        elif inside in ("td", "th") and self._table:
            self.tables[self._table][-1][-1] += data

    def figure(self, caption, nth=0):
        found = [f for f in self.figures if f[0].startswith(caption)]
        assert len(found) > nth, (caption, [f[0] for f in self.figures])
        return found[nth]


def numbers_of(figure):
    """The numbers in the cells of a heat map, by row from the top."""
    rows = []
    for text in figure[2]:
        if text.startswith("L-"):
            rows.append([])
        elif rows:
            rows[-1].append(float(text))
    return rows


def check_violins(page, population, nth):
    """Tooltips of all cells of both grids of a population."""
    for layer, heads in enumerate(population["entropy"]):
        for head, cell in enumerate(heads):
            start = f"layer {layer}, head {head}: median "
            found = [t for t in page.titles if t.startswith(start)]
            assert len(found) == 2, (start, found)
            median = float(found[nth][len(start):].split()[0])
            assert abs(median - cell["q"][2]) <= 6e-5, (found, cell["q"])
    for pair, heads in enumerate(population["jsd"]):
        for head, cell in enumerate(heads):
            start = f"layers {pair + 1} and {pair}, head {head}: median "
            found = [t for t in page.titles if t.startswith(start)]
            median = float(found[nth][len(start):])
            assert abs(median - cell["q"][2]) <= 6e-5, (found, cell["q"])


def check_maps(page, population, nth):
    """Heat maps of masses, top layer first."""
    layers = population["blocks"]

    def check(caption, keys, at):
        rows = numbers_of(page.figure(caption, at))
        assert len(rows) == len(layers), (caption, rows)
        for row, heads in zip(rows, reversed(layers)):
            for shown, head in zip(row, heads):
                mass = head["masses"][keys]["mass"]
                assert abs(shown - mass) <= 0.00501, (caption, shown, mass)

    check(f"Mass in {population['own_block']}", population["own_block"], 0)
    check("Mass on the global token of its" if population["name"] == "long"
          else "Mass on the long tokens of its", "linked", 0)
    for kind in ("candidate", "question", "document", "sentence"):
        check(f"Mass on {kind} tokens", kind, nth)
    for kind in ("[CLS]", "[SEP]"):
        assert layers[0][0]["masses"][kind]["mass"] == 0
        assert not [f for f in page.figures if kind in f[0]]


def check_similarity(page, population, nth):
    matrix = population["similarity"]["jsd"][0]
    for head, below in ((0, 0), (2, 5)):
        start = f"head {head} of layer 1, head {below} of layer 0: "
        found = [t for t in page.titles if t.startswith(start)]
        assert abs(float(found[nth][len(start):]) - matrix[head][below]) <= (
            6e-5), (found, matrix[head][below])


def check_analysis(open_page, directory):
    with open(f"{directory}/attention.json", encoding="utf-8") as file:
        analysis = json.load(file)
    page = open_page(f"{directory}/attention.html")
    for nth, population in enumerate(analysis["populations"]):
        check_violins(page, population, nth)
        check_maps(page, population, nth)
        check_similarity(page, population, nth)
    headings = [text for _, text in page.headings]
    for text in ("Long tokens", "Global tokens", "Entropy by position",
                 "Entropy by sentence length", "Mass by distance"):
        assert text in headings, (text, headings)
    # A plot for each layer, of long rows alone.
    plots = [f for f in page.figures
             if f[1].get("aria-label", "").startswith("Entropy by position")]
    assert len(plots) == analysis["model"]["layers"], len(plots)


def check_comparison(open_page, directory):
    with open(f"{directory}/comparison.json", encoding="utf-8") as file:
        comparison = json.load(file)
    assert [m["name"] for m in comparison["models"]] == ["off", "sum"]
    assert comparison["warnings"] == []
    page = open_page(f"{directory}/comparison.html")
    for population, section in zip(comparison["populations"],
                                   ("Long tokens", "Global tokens")):
        for measure, layers in population["measures"].items():
            rows = page.tables[(section, measure)]
            assert rows[0] == ["Layer", "off", "sum", "sum \u2212 off"], rows[0]
            assert len(rows) == len(layers) + 2, rows
            for row, layer in zip(rows[1:], reversed(layers)):
                expected = [*layer["mean"], layer["difference"][1]]
                assert row[0] == layer["layer"], (row, layer)
                for shown, number in zip(row[1:], expected):
                    assert abs(float(shown) - number) <= 0.000501, (row, layer)
            assert rows[-1][0] == "all", rows[-1]


def main(program, source):
    chromium = browser.find()
    if chromium is None:
        return browser.SKIPPED
    with tempfile.TemporaryDirectory() as directory:
        def run(*arguments):
            subprocess.run([program, *arguments], cwd=source, check=True,
                           stdout=subprocess.DEVNULL)

        def open_page(path):
            width = browser.width_at(chromium, path, directory, NARROW)
            assert width <= NARROW, (path, width)
            return Elements(browser.dump(chromium, path, directory))

        for mode in ("off", "sum"):
            run("train", "tasks/wikihop/configs/demo.json", "--set",
                "train.steps=8", "--set", "train.evaluate_every=0", "--set",
                f"residual_attention={mode}", "--set",
                f"output={directory}/{mode}")
        run("attention", "--compare", f"{directory}/off", f"{directory}/sum",
            "--data", "tasks/wikihop/sample/dev.json", "--max-examples", "8",
            "--output", f"{directory}/both")
        for number in (1, 2):
            check_analysis(open_page, f"{directory}/both/{number}")
        check_comparison(open_page, f"{directory}/both")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
