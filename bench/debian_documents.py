#!/usr/bin/env python3
"""Questions about the pages of Debian's documentation packages.

  bash bench/debian_documents.sh chapters [--seeds N] [--updates N]
  bash bench/debian_documents.sh links

chapters: of which chapter of which manual is a page? Its text alone is given,
without the navigation around it. Three answers beside each other:

  ETC      reads up to 4096 tokens (task `classify`), with residual scores off
           and as a sum; and the first 512 tokens alone
  BERT     the same sizes, the first 512 tokens
  TF-IDF   all words of the text, and logistic regression

links: a page, and a place in it where a link was; which of eight pages is behind
it? The others are of the same manual. ETC gets the paragraphs around the link, the
beginning of each page, and what else is on the link's page as the documents of a
question of WikiHop (in 512 tokens the beginnings, and little else); BERT, which has
no long tokens, cannot have such questions. TF-IDF compares those paragraphs, and the
whole page, with each beginning and title, and logistic regression weighs the four.

ETC and BERT begin with random weights, and are trained for masked words on the
same pages first, once for both questions: nothing but Debian is needed. What is
held out is held out of that as well.

  OUT/packages, OUT/pages, OUT/pages.jsonl
                             Debian's packages, unpacked, and their text
  OUT/vocab.txt, OUT/corpus.*, OUT/pretrained/
                             what is trained for masked words, and on what
  OUT/QUESTION/              train, dev, runs, table.md

OUT is runs/debian_documents. Packages come by apt-get download, which needs no
root; --packages DIR takes the .deb files that are there instead. With --quick
everything is tried with few pages, tiny models and a few updates. Other packages
or settings than those of the runs that are there are refused: they need another
OUT.
"""

import argparse
import collections
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys

import bs4
import numpy
from sklearn import feature_extraction, linear_model

import studies

ROOT = studies.ROOT
PACKAGES = {"python": "python3.11-doc", "linux": "linux-doc-6.1",
            "postgresql": "postgresql-doc-15"}
NAVIGATION = ("script, style, nav, header, footer, .navheader, .navfooter, .toc, "
              ".related, .sphinxsidebar, .headerlink, .toctree-wrapper")
BLOCKS = ("p", "pre", "li", "dt", "dd", "td", "th", "h1", "h2", "h3", "h4",
          "h5", "h6", "caption")
LEAST_WORDS = 150  # of a page
LEAST_PAGES = 25  # of a chapter
MOST_PAGES = 120
DEV_ONE_IN = 5
CANDIDATES = 8
BEGINNING = 60  # words of a page that a candidate shows
WORDS = 6000  # of the vocabulary
QUICK_FILES = 80  # of each manual
# Words of pages by which scores are shown apart: up to 300, and so on.
LENGTHS = (300, 1000, 3000)
LINK = "[LINK]"

MODEL = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
         "intermediate_size": 512, "local_radius": 42,
         "relative_pos_max_distance": 12, "relative_vocab_size": 32,
         "share_feed_forward_params": True, "share_qkv_projections": True,
         "share_att_output_projection": True, "hidden_dropout_prob": 0.1,
         "attention_probs_dropout_prob": 0.1}
QUICK_MODEL = {**MODEL, "hidden_size": 32, "num_hidden_layers": 2,
               "intermediate_size": 64}
BERT = {"preset": "bert_small", "max_absolute_position_embeddings": 512}
UPDATES = 2000
PRETRAINING_UPDATES = 500


# --- Pages -------------------------------------------------------------------


@dataclasses.dataclass
class Page:
    book: str
    path: str  # below the book
    chapter: str
    title: str
    paragraphs: list
    links: list  # (paragraph, begin, end, path): a link to another page

    @property
    def key(self):
        return "%s/%s" % (self.book, self.path)

    @property
    def text(self):
        return "\n".join(self.paragraphs)


def archive_of(package, folder):
    """The package's .deb file in a folder, downloaded if there is none."""
    archives = sorted(folder.glob(package + "_*.deb"))
    if not archives:
        folder.mkdir(parents=True, exist_ok=True)
        print("downloading %s" % package, flush=True)
        done = subprocess.run(["apt-get", "download", package], cwd=folder,
                              check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        archives = sorted(folder.glob(package + "_*.deb"))
        if not archives:
            raise studies.Failure("apt-get download %s failed: %s" % (
                package, studies.last_line(done.stderr)))
    return archives[-1]


def fetch(packages, out):
    """The packages' folders of HTML, unpacked below out/pages.

    packages: a folder with .deb files; None: what is unpacked is taken, or
              Debian's."""
    places = {}
    for book, package in PACKAGES.items():
        root = out / "pages" / book
        if packages is not None or not root.is_dir():
            unpack(archive_of(package, packages or out / "packages"), root)
        # One package has a link to the other's folder.
        (places[book],) = (path for path in root.glob("usr/share/doc/*/html")
                           if not path.is_symlink())
    return places


def unpack(archive, root):
    """Unpacks a .deb file, unless that was done."""
    seal = root.with_suffix(".sha256")
    digest_now = hashlib.sha256(archive.read_bytes()).hexdigest()
    if root.is_dir():
        if not seal.exists():
            raise studies.Failure("%s does not say of which package it is: name "
                                  "another folder by --out" % root)
        if seal.read_text() != digest_now:
            raise studies.Failure("%s is of another package than %s: name "
                                  "another folder by --out" % (root, archive))
        return
    partial = root.with_suffix(".partial")
    subprocess.run(["rm", "-rf", str(partial)], check=True)
    partial.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["dpkg-deb", "-x", archive, partial], check=True)
    studies.write_atomically(seal, digest_now)
    partial.rename(root)


def chapter_of(book, path, soup):
    """The name of a page's chapter; empty: it belongs to none."""
    if book == "postgresql":
        up = soup.select_one(".navheader th[width='60%']")
        return "" if up is None else " ".join(up.get_text(" ").split())
    folder, _, rest = path.partition("/")
    # Linux's manual has translations of itself, which are left out.
    return folder if rest and folder != "translations" else ""


def read_page(book, root, file):
    path = file.relative_to(root).as_posix()
    soup = bs4.BeautifulSoup(file.read_bytes(), "html.parser")
    chapter = chapter_of(book, path, soup)
    if not chapter or path.endswith("index.html"):
        return None
    title = " ".join(soup.title.get_text(" ").split()) if soup.title else path
    title = re.split(r" — | - ", title)[0]
    for part in soup.select(NAVIGATION):
        part.decompose()
    body = soup.select_one("[role=main], .refentry, .sect1, .chapter, .appendix")
    page = Page(book, path, chapter, title, [], [])
    for block in (body or soup).find_all(BLOCKS):
        if block.find(BLOCKS) is None:
            add_paragraph(page, block, file.parent, root)
    words = sum(len(paragraph.split()) for paragraph in page.paragraphs)
    return page if words >= LEAST_WORDS else None


def add_paragraph(page, block, folder, root):
    text = ""
    for node in block.descendants:
        if not isinstance(node, bs4.NavigableString):
            continue
        words = re.sub(r"\s+", " ", str(node))
        anchor = node.find_parent("a", href=True)
        target = anchor["href"].partition("#")[0] if anchor else ""
        if target.endswith(".html") and "//" not in target and words.strip():
            aim = os.path.relpath(os.path.normpath(folder / target), root)
            page.links.append((len(page.paragraphs), len(text),
                               len(text) + len(words), aim))
        text += words
    if text.strip():
        page.paragraphs.append(text)


def read_pages(places, out, quick):
    """Kept in out/pages.jsonl: to read them takes minutes."""
    kept = out / "pages.jsonl"
    if kept.exists():
        return [Page(**line) for line in studies.read_lines(kept)]
    pages = []
    for book, root in places.items():
        files = sorted(root.rglob("*.html"))
        for file in files[:QUICK_FILES] if quick else files:
            page = read_page(book, root, file)
            if page is not None:
                pages.append(page)
        print("%s: %d pages of %d files" % (
            book, sum(page.book == book for page in pages), len(files)),
              flush=True)
    studies.write_atomically(kept, "".join(
        json.dumps(dataclasses.asdict(page)) + "\n" for page in pages))
    return pages


def digest(text):
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)


def by_chapter(pages):
    """The pages of each chapter, in an order that says nothing."""
    chapters = collections.defaultdict(list)
    for page in sorted(pages, key=lambda page: digest(page.key)):
        chapters["%s: %s" % (page.book, page.chapter)].append(page)
    return dict(sorted(chapters.items()))


def held_out(pages):
    """Keys of one page in five, of every chapter."""
    return {page.key for members in by_chapter(pages).values()
            for page in members[DEV_ONE_IN - 1::DEV_ONE_IN]}


# --- Questions ---------------------------------------------------------------


def chapter_records(pages, quick):
    """Records of `classify`, of chapters with enough pages."""
    return [(page, {"id": page.key, "text": page.text, "label": label})
            for label, members in by_chapter(pages).items()
            if len(members) >= (DEV_ONE_IN if quick else LEAST_PAGES)
            for page in members[:MOST_PAGES]]


def beginning(page):
    words = " ".join(page.paragraphs[:6]).split()[:BEGINNING]
    return "%s : %s" % (page.title, " ".join(words))


def link_records(pages, quick):
    """Records of `wikihop`: for each page one of its links, chosen by its
    name, whose target is a page as well."""
    by_key = {page.key: page for page in pages}
    by_book = collections.defaultdict(list)
    for page in pages:
        by_book[page.book].append(page)
    records = []
    for page in sorted(pages, key=lambda page: digest(page.key)):
        links = [(link, by_key.get("%s/%s" % (page.book, link[3])))
                 for link in page.links]
        links = [(link, target) for link, target in links
                 if target is not None and target is not page]
        if not links:
            continue
        (number, begin, end, _), target = links[digest("link" + page.key) %
                                                len(links)]
        named = {other.key for _, other in links} | {page.key}
        others = sorted((other for other in by_book[page.book]
                         if other.key not in named and
                         other.title.lower() != target.title.lower()),
                        key=lambda other: digest(page.key + other.key))
        chosen, titles = [target], {target.title.lower()}
        for other in others:
            if len(chosen) == CANDIDATES:
                break
            if other.title.lower() not in titles:
                titles.add(other.title.lower())
                chosen.append(other)
        if len(chosen) < CANDIDATES and not quick:
            continue
        chosen.sort(key=lambda other: digest(other.key + page.key))
        paragraphs = list(page.paragraphs)
        text = paragraphs[number]
        paragraphs[number] = "%s %s %s" % (text[:begin], LINK, text[end:])
        near = paragraphs[max(0, number - 1):number + 2]
        rest = paragraphs[:max(0, number - 1)] + paragraphs[number + 2:]
        records.append((page, {
            "id": page.key, "query": LINK,
            "candidates": [other.title.lower() for other in chosen],
            "answer": target.title.lower(),
            "supports": [" ".join(near)] + [beginning(other)
                                            for other in chosen] +
                        [" ".join(rest)][:len(rest)]}))
    return records


def prepare_records(question, pages, out, quick):
    """Files of the records to learn from and of those held out."""
    records = (chapter_records if question == "chapters" else link_records)(
        pages, quick)
    apart = held_out(pages)
    parts = {"train": [], "dev": []}
    for page, record in records:
        parts["dev" if page.key in apart else "train"].append(record)
    if not parts["dev"] or not parts["train"]:
        raise studies.Failure("too few pages for %s: %d" % (question, len(records)))
    out.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        if question == "chapters":
            text = "".join(json.dumps(record) + "\n" for record in part)
        else:
            text = json.dumps(part)
        studies.write_atomically(out / (name + suffix(question)), text)
    return parts


def prepare_corpus(pages, out):
    """The vocabulary, and all text that is not held out; the number of pieces."""
    apart = held_out(pages)
    texts = [page.text for page in pages if page.key not in apart]
    pieces = studies.make_vocabulary(texts, WORDS)
    studies.write_atomically(out / "vocab.txt", "\n".join(pieces) + "\n")
    studies.write_atomically(out / "corpus.jsonl", "".join(
        json.dumps({"text": text}) + "\n" for text in texts))
    if not (out / "corpus.tokens").exists():
        studies.call([studies.PROGRAM, "tokenize", out / "corpus.jsonl",
                      "--format", "jsonl", "--vocabulary", out / "vocab.txt",
                      "--output", out / "corpus.tokens"])
    return len(pieces)


def suffix(question):
    return ".jsonl" if question == "chapters" else ".json"


# --- TF-IDF ------------------------------------------------------------------


def tfidf_chapters(parts):
    vectors = feature_extraction.text.TfidfVectorizer(sublinear_tf=True,
                                                      min_df=2)
    model = linear_model.LogisticRegression(C=10, max_iter=2000)
    model.fit(vectors.fit_transform(record["text"] for record in parts["train"]),
              [record["label"] for record in parts["train"]])
    guesses = model.predict(vectors.transform(record["text"]
                                              for record in parts["dev"]))
    return {record["id"]: guess
            for record, guess in zip(parts["dev"], guesses)}


def tfidf_links(parts):
    """Likeness of each candidate's beginning with the paragraphs around the link
    and with the whole page, weighed by logistic regression."""
    vectors = feature_extraction.text.TfidfVectorizer(sublinear_tf=True,
                                                      min_df=2)
    vectors.fit(text for record in parts["train"]
                for text in record["supports"])

    def features(record):
        count = len(record["candidates"])
        supports = record["supports"]
        candidates = vectors.transform(supports[1:1 + count])
        titles = vectors.transform(record["candidates"])
        places = vectors.transform(
            [supports[0], " ".join(supports[:1] + supports[1 + count:])])
        return numpy.hstack([(candidates @ places.T).toarray(),
                             (titles @ places.T).toarray()])

    answers = [[candidate == record["answer"]
                for candidate in record["candidates"]]
               for record in parts["train"]]
    model = linear_model.LogisticRegression(C=10, max_iter=2000)
    model.fit(numpy.vstack([features(record) for record in parts["train"]]),
              numpy.concatenate(answers))
    return {record["id"]: record["candidates"][int(numpy.argmax(
        model.decision_function(features(record))))]
            for record in parts["dev"]}


# --- ETC and BERT ------------------------------------------------------------


@dataclasses.dataclass
class System:
    name: str
    residual: str
    tokens: int
    is_bert: bool = False


def systems(question, quick):
    longest = 1024 if quick else 4096
    found = [System("ETC, %d tokens" % longest, "off", longest),
             System("ETC with the sum, %d tokens" % longest, "sum", longest),
             System("ETC, 512 tokens", "off", 512)]
    if question == "chapters":
        found.append(System("BERT, 512 tokens", "off", 512, is_bert=True))
    return found


def model_of(system, quick):
    model = QUICK_MODEL if quick else MODEL
    if not system.is_bert:
        return model
    return {**{key: value for key, value in model.items()
               if not key.startswith(("local", "relative", "share"))}, **BERT}


def config_of(system, out, pieces, arguments, updates, seed):
    lengths = ({"max_global_length": system.tokens} if system.is_bert else
               {"max_long_length": system.tokens, "max_global_length": 256})
    return {"model": {**model_of(system, arguments.quick), "vocab_size": pieces},
            "residual_attention": system.residual,
            "tokenizer": {"type": "wordpiece",
                          "vocabulary": str(out / "vocab.txt")},
            "data": lengths,
            "optimizer": {"type": "bert_adamw", "weight_decay": 0.01,
                          "clip_norm": 1.0},
            "schedule": {"warmup_proportion": 0.1},
            "train": {"learning_rate": 5e-4, "batch_size": 8,
                      "micro_batch_size": 2, "steps": updates,
                      "precision": arguments.precision,
                      "evaluate_every": max(1, updates // 4),
                      "evaluation_batch_size": 4, "seeds": [seed]}}


def pretraining(system, out, pieces, arguments):
    config = config_of(system, out, pieces, arguments,
                       arguments.pretraining_updates, 1)
    config["task"] = "pretrain"
    config["pretrain"] = {"objective": "mlm", "development_one_in": 20}
    config["data"]["train"] = [str(out / "corpus.tokens")]
    return config


def fine_tuning(system, out, pieces, arguments, seed, init):
    question = arguments.question
    config = config_of(system, out, pieces, arguments, arguments.updates, seed)
    config["task"] = "classify" if question == "chapters" else "wikihop"
    config["init"] = str(init)
    for part in ("train", "dev"):
        config["data"][part] = [str(out / question / (part + suffix(question)))]
    return config


def train(folder, config):
    """A run, or what is left of it."""
    seal = folder.with_suffix(".json")
    if seal.exists() and studies.read_json(seal) != config:
        raise studies.Failure("%s was begun with other settings: name another "
                              "folder by --out" % folder)
    if (folder / "summary.json").exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    studies.write_atomically(seal, json.dumps(config, indent=1))
    print("training %s/%s" % (folder.parent.name, folder.name), flush=True)
    command = [str(studies.PROGRAM), "train", str(seal), "--output", str(folder)]
    if any(folder.glob("seed-*/metrics.jsonl")):
        command.append("--resume")
    elif folder.exists():
        shutil.rmtree(folder)  # ended before its first update
    log_path = folder.with_suffix(".log")
    with open(log_path, "a", encoding="utf-8") as log:
        # A group of its own: Ctrl-C comes from here, once.
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            code = wait(process, log_path)
        except studies.Stopped:
            process.send_signal(signal.SIGTERM)  # it saves and ends
            process.wait()
            raise
        finally:
            studies.show_progress("")
    if code == studies.STOPPED:
        raise studies.Stopped
    if code != 0:
        raise studies.Failure("%s failed with %d: %s" % (
            folder.name, code, studies.last_line_of(log_path)))


def wait(process, log_path):
    """The exit code of a run, whose last words are shown meanwhile."""
    while True:
        try:
            return process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            studies.show_progress(studies.last_line_of(log_path))


def predictions(question, folder, out):
    """The answer to each question that is held out, by its id."""
    path = folder.with_suffix(".predictions")
    if not path.exists():
        studies.call([studies.PROGRAM, "predict", folder, "--data",
                      out / ("dev" + suffix(question)), "--output", path])
    if question == "links":
        return studies.read_json(path)
    return {line["id"]: line["label"] for line in studies.read_lines(path)}


# --- The table ---------------------------------------------------------------


def length_of(question, record):
    texts = [record["text"]] if question == "chapters" else record["supports"]
    return sum(len(text.split()) for text in texts)


def accuracies(question, records, guesses):
    """In percent: of all, then by length."""
    right = collections.defaultdict(list)
    for record in records:
        is_right = guesses[record["id"]] == record[
            "label" if question == "chapters" else "answer"]
        words = length_of(question, record)
        right["all"].append(is_right)
        right[sum(words > most for most in LENGTHS)].append(is_right)
    return [100 * statistics.mean(right[key]) if right[key] else None
            for key in ["all"] + list(range(len(LENGTHS) + 1))]


def cell(values):
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    mean = "%.1f" % statistics.mean(values)
    return mean if len(values) == 1 else "%s ± %.1f" % (
        mean, statistics.stdev(values))


def table(question, records, found):
    """`found` has the accuracies of each system, by seed."""
    counts = collections.Counter(
        sum(length_of(question, record) > most for most in LENGTHS)
        for record in records)
    borders = ("up to %d" % LENGTHS[0],
               *("to %d" % most for most in LENGTHS[1:]),
               "over %d" % LENGTHS[-1])
    heads = ["answered by", "all %d pages" % len(records)] + [
        "%s words (%d)" % (border, counts[i])
        for i, border in enumerate(borders)]
    lines = ["| %s |" % " | ".join(heads), "|%s" % (" --- |" * len(heads))]
    for name, seeds in found.items():
        lines.append("| %s | %s |" % (name, " | ".join(
            cell(values) for values in zip(*seeds))))
    return "\n".join(lines) + "\n"


def run(arguments):
    question = arguments.question
    quick = arguments.quick
    out = (arguments.out / ("quick" if quick else "")).resolve()
    places = fetch(arguments.packages and arguments.packages.resolve(), out)
    pages = read_pages(places, out, quick)
    folder = out / question
    parts = prepare_records(question, pages, folder, quick)
    pieces = prepare_corpus(pages, out)
    print("%s: %d pages to learn from, %d held out" % (
        question, len(parts["train"]), len(parts["dev"])), flush=True)
    baseline = tfidf_chapters if question == "chapters" else tfidf_links
    records = parts["dev"]
    found = {"TF-IDF and logistic regression": [
        accuracies(question, records, baseline(parts))]}
    for system in systems(question, quick):
        name = re.sub(r"[^a-z0-9]+", "_", system.name.lower())
        start = out / "pretrained" / name
        train(start, pretraining(system, out, pieces, arguments))
        found[system.name] = []
        for seed in range(1, arguments.seeds + 1):
            place = folder / "runs" / ("%s_%d" % (name, seed))
            train(place, fine_tuning(system, out, pieces, arguments, seed,
                                     start))
            found[system.name].append(accuracies(
                question, records, predictions(question, place, folder)))
    text = table(question, records, found)
    studies.write_atomically(folder / "table.md", text)
    print("\n%s, accuracy in percent:\n\n%s" % (question, text), end="")


def positive(text):
    if not re.fullmatch("[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError("should be at least 1, but is " + text)
    return int(text)


def stop():
    raise studies.Stopped


def main():
    parser = argparse.ArgumentParser(
        prog="bench/debian_documents.sh", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", choices=("chapters", "links"))
    parser.add_argument("--packages", type=pathlib.Path,
                        help="a folder with the .deb files")
    parser.add_argument("--out", type=pathlib.Path,
                        default=ROOT / "runs/debian_documents")
    parser.add_argument("--seeds", type=positive, default=1)
    parser.add_argument("--updates", type=positive,
                        help="of fine-tuning (%d)" % UPDATES)
    parser.add_argument("--pretraining-updates", type=positive,
                        help="(%d)" % PRETRAINING_UPDATES)
    parser.add_argument("--precision", choices=("fp32", "bf16"),
                        default="fp32")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    quick = arguments.quick
    arguments.updates = arguments.updates or (4 if quick else UPDATES)
    arguments.pretraining_updates = arguments.pretraining_updates or (
        4 if quick else PRETRAINING_UPDATES)
    if not os.access(studies.PROGRAM, os.X_OK):
        raise studies.Failure("there is no program %s: bash tasks/demo.sh builds it, "
                              "or REALETC names one" % studies.PROGRAM)
    studies.on_stop(stop)
    run(arguments)


if __name__ == "__main__":
    try:
        main()
    except studies.Failure as failure:
        print("debian_documents: %s" % failure, file=sys.stderr)
        sys.exit(1)
    except studies.Stopped:
        print("debian_documents: stopped; the same command goes on",
              file=sys.stderr)
        sys.exit(studies.STOPPED)
