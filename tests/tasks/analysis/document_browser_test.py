"""Pages of `realetc document` in a headless Chromium.

document_browser_test.py PROGRAM SOURCE_DIR

Trains the demo of wikihop by a few updates, makes a page of one record, and
opens it at chosen layers, heads and tokens: no message on the console, and the
cells are those that the data of the page, decoded here, say. Keys of the
keyboard move the choice; a fragment that names what is not there is answered by
a message. Exit code 77 without Chromium: skipped.
"""

import base64
import html.parser
import json
import re
import struct
import subprocess
import sys
import tempfile

import browser


class Cells(html.parser.HTMLParser):
    """Texts of the rows of #largest and #blocks, and of elements with an id."""

    def __init__(self):
        super().__init__()
        self.rows = []  # (table, data attributes, texts of the cells)
        self.texts = {}
        self.attributes = {}
        self.options = []  # attributes of the tokens
        self._table = None
        self._open = []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        name = attributes.get("id")
        if name:
            self.attributes[name] = attributes
            self.texts[name] = ""
        if tag == "table":
            self._table = name
        if tag == "tr":
            self.rows.append((self._table, attributes, []))
        if tag == "td" and self.rows:
            self.rows[-1][2].append("")
        if attributes.get("role") == "option":
            self.options.append(attributes)
        if tag not in ("meta", "link", "input", "br"):
            self._open.append((tag, name))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self._open:
            if name:
                self.texts[name] += data
        if any(tag == "td" for tag, _ in self._open):
            self.rows[-1][2][-1] += data


class Page:
    def __init__(self, chromium, path, directory):
        self.browser = chromium
        self.path = path
        self.directory = directory
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        data = re.search(r'id="data">(.*?)</script>', self.text, re.S).group(1)
        self.data = json.loads(data)

    def open(self, fragment="", script=""):
        """The page's elements once it has run, after `script`."""
        cells = Cells()
        cells.feed(browser.dump(self.browser, self.path, self.directory,
                                fragment, script))
        return cells

    def largest(self, layer, head, token):
        """[(key, probability)], the rest and the share of globals."""
        packed = base64.b64decode(self.data["rows"][layer][head])
        tokens = len(self.data["tokens"])
        most = self.data["most"]
        kinds = "H" if self.data["keyBytes"] == 2 else "I"
        sizes = [(kinds, tokens * most), ("H", tokens * most), ("H", tokens),
                 ("H", tokens)]
        lists = []
        at = 0
        for kind, count in sizes:
            lists.append(struct.unpack_from(f"<{count}{kind}", packed, at))
            at += struct.calcsize(f"<{count}{kind}")
        assert at == len(packed), (at, len(packed))
        row = slice(token * most, (token + 1) * most)
        return ([(key, p) for key, p in zip(lists[0][row], lists[1][row]) if p],
                lists[2][token], lists[3][token])


def name_of(token, globals_):
    return f"g{token}" if token < globals_ else str(token - globals_)


def selected(cells):
    return [option["id"] for option in cells.options
            if option["aria-selected"] == "true"]


def check_choice(page, layer, head, token):
    """The cells of a layer, a head (places on the page) and a token."""
    data = page.data
    globals_ = data["globals"]
    name = name_of(token, globals_)
    cells = page.open(f"#layer={data['layers'][layer]}"
                      f"&head={data['heads'][head]}&token={name}")
    largest, rest, to_globals = page.largest(layer, head, token)
    assert largest, "the token should see something"
    assert abs(sum(p for _, p in largest) + rest - data["units"]) <= 17
    rows = [row for row in cells.rows if row[0] == "largest" and row[2]]
    assert len(rows) == len(largest) + 1, (len(rows), len(largest))
    for (_, attributes, texts), (key, p) in zip(rows, largest):
        assert attributes["data-key"] == name_of(key, globals_), attributes
        assert texts[0] == name_of(key, globals_), texts
        block = ("g" if token < globals_ else "l") + "2" + (
            "g" if key < globals_ else "l")
        assert texts[1].startswith(block), texts
        assert data["tokens"][key] in texts[2], texts
        assert abs(float(texts[3]) - p / data["units"]) <= 0.500001e-5, texts
    assert abs(float(rows[-1][2][3]) - rest / data["units"]) <= 0.500001e-5
    assert selected(cells) == [f"t{name}"], selected(cells)
    assert cells.attributes["tokens"]["aria-activedescendant"] == f"t{name}"
    seen = sum(end - begin for begin, end in zip(data["sees"][token][::2],
                                                 data["sees"][token][1::2]))
    assert f" sees {seen} token" in cells.texts["summary"], cells.texts
    share = 100 * to_globals / data["units"]
    assert f"{share:.1f}\u00a0% of its attention" in cells.texts["summary"], (
        share, cells.texts["summary"])
    visible = sum("seen" in option["class"].split() for option in cells.options)
    assert visible == seen, (visible, seen)
    assert len(cells.options) == len(data["tokens"])
    return cells


def check_blocks(page, cells):
    data = page.data
    globals_ = data["globals"]
    pairs = {"g2g": 0, "g2l": 0, "l2g": 0, "l2l": 0}
    for token, sees in enumerate(data["sees"]):
        for begin, end in zip(sees[::2], sees[1::2]):
            block = ("g" if token < globals_ else "l") + "2" + (
                "g" if begin < globals_ else "l")
            pairs[block] += end - begin
    shown = {row[1]["data-block"]: int(re.sub(r"\D", "", row[2][2]))
             for row in cells.rows if "data-block" in row[1]}
    assert shown == pairs, (shown, pairs)
    assert "l2l" in cells.attributes["pattern"]["aria-label"]


def check_keys(page):
    globals_ = page.data["globals"]

    def after(start, *keys):
        presses = "".join(
            "document.getElementById('tokens').dispatchEvent(new "
            f"KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}));"
            for key in keys)
        return selected(page.open(f"#token={start}", presses))

    assert after("5", "ArrowRight") == ["t6"]
    assert after("5", "ArrowLeft", "ArrowLeft") == ["t3"]
    assert after("0", "ArrowLeft") == [f"tg{globals_ - 1}"]
    assert after("5", "Home") == ["tg0"]
    assert after("5", "End") == [f"t{page.data['longs'] - 1}"]
    assert after("5", "End", "ArrowRight") == [f"t{page.data['longs'] - 1}"]
    # The sentences of tokens 10 to 16 and 17 to 24.
    assert after("12", "ArrowDown") == ["t19"]
    assert after("24", "ArrowUp") == ["t16"]


def check_mistakes(page):
    cells = page.open("#layer=9&head=77&token=g100000")
    complaint = cells.texts["complaint"]
    for part in ("no layer 9", "no head 77", "no token g100000"):
        assert part in complaint, complaint
    assert "hidden" not in cells.attributes["complaint"]
    assert "hidden" in page.open().attributes["complaint"]


def main(program, source):
    chromium = browser.find()
    if chromium is None:
        return browser.SKIPPED
    with tempfile.TemporaryDirectory() as directory:
        def run(*arguments):
            subprocess.run([program, *arguments], cwd=source, check=True,
                           stdout=subprocess.DEVNULL)

        run("train", "tasks/wikihop/configs/demo.json", "--set",
            "train.steps=8", "--set", "train.evaluate_every=0", "--set",
            f"output={directory}/run")
        path = f"{directory}/page.html"
        run("document", f"{directory}/run", "--data",
            "tasks/wikihop/sample/dev.json", "--record", "3", "--output", path)
        page = Page(chromium, path, directory)
        globals_ = page.data["globals"]
        cells = check_choice(page, layer=1, head=0, token=globals_ + 5)
        check_choice(page, layer=0, head=7, token=2)
        check_choice(page, layer=1, head=3,
                     token=globals_ + page.data["longs"] - 1)
        check_blocks(page, cells)
        check_keys(page)
        check_mistakes(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
