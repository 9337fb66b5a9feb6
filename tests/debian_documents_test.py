#!/usr/bin/env python3
"""Runs bench/debian_documents.sh with --quick on packages made here.

  python3 tests/debian_documents_test.py SOURCE_DIR BIN_DIR

Exits with 77 where Python lacks what the script needs, or there is no dpkg-deb.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE, BINARIES = map(pathlib.Path, sys.argv[1:3])
PAGES = 12  # of a chapter
UPDATES = 200  # of a run that is stopped before it has made them
TOPICS = {"python": ("library", "howto"), "linux": ("mm", "hwmon"),
          "postgresql": ("Chapter 1. Tables", "Chapter 2. Roles")}
FOLDERS = {"python": ("python3.11-doc", "python3.11"),
           "linux": ("linux-doc-6.1", "linux-doc-6.1"),
           "postgresql": ("postgresql-doc-15", "postgresql-doc-15")}


def page(book, chapter, number):
    """A page about its chapter, with links to two others of it."""
    word = chapter.split()[-1].lower()
    other = (number + 1) % PAGES
    prose = " ".join("The %s of %s number %d has part %d." %
                     (word, book, number, i) for i in range(25))
    body = ('<h1>%s %d</h1><p>%s</p><p>See <a href="%s">the next %s</a> about '
            'that, or <a href="https://example.org/x.html">another site</a>.'
            '</p>' % (word, number, prose, name(book, chapter, other), word))
    if book == "postgresql":
        return ('<html><head><title>%s %d</title></head><body><div class='
                '"navheader"><table><tr><th width="60%%">%s</th></tr></table>'
                '</div><div class="sect1">%s</div></body></html>' %
                (word, number, chapter, body))
    return ('<html><head><title>%s %d — Manual</title></head><body><nav>go home'
            '</nav><div role="main">%s</div></body></html>' %
            (word, number, body))


def name(book, chapter, number):
    prefix = chapter.split()[-1].lower() + "-" if book == "postgresql" else ""
    return "%s%d.html" % (prefix, number)


def make_package(book, work):
    package, folder = FOLDERS[book]
    root = work / package
    for chapter in TOPICS[book]:
        place = root / "usr/share/doc" / folder / "html"
        if book != "postgresql":
            place = place / chapter
        place.mkdir(parents=True, exist_ok=True)
        for number in range(PAGES):
            (place / name(book, chapter, number)).write_text(
                page(book, chapter, number), encoding="utf-8")
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(
        "Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: nobody "
        "<nobody@example.org>\nDescription: pages\n" % package)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root,
                    work / (package + "_1_all.deb")], check=True,
                   stdout=subprocess.DEVNULL)


def start(work, out, *words):
    return subprocess.Popen(
        ["bash", SOURCE / "bench/debian_documents.sh", "--quick", "--packages",
         work, "--out", work / out, *words],
        env={**os.environ, "REALETC": str(BINARIES / "realetc"),
             "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(work, *words, out="out"):
    process = start(work, out, *words)
    output = process.communicate()[0]
    return subprocess.CompletedProcess(process.args, process.returncode, output)


def check_that_it_goes_on(work):
    """Stopped after the first updates, the same command makes those that are left."""
    words = ("chapters", "--pretraining-updates", "%d" % UPDATES)
    first = start(work, "stopped", *words)
    folder = work / "stopped/quick/pretrained/etc_1024_tokens"
    while first.poll() is None and not (folder / "seed-1/metrics.jsonl").exists():
        time.sleep(0.02)
    first.send_signal(signal.SIGTERM)
    output = first.communicate()[0]
    check(first.returncode == 75 and "the same command goes on" in output, output)
    check(not (folder / "summary.json").exists(), output)
    second = run(work, *words, out="stopped")
    check(second.returncode == 0, second.stdout)
    lines = [json.loads(line) for line in
             (folder / "seed-1/metrics.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if "loss" in line]
    check(steps == sorted(steps) and steps[-1] == UPDATES, str(steps))


def check_that_others_are_refused(work):
    """Settings and packages other than those of what is there."""
    (work / "other").mkdir()
    for package, _ in FOLDERS.values():
        (work / "other" / (package + "_2_all.deb")).write_bytes(b"other")
    for words, message in (
            (("--updates", "5"), "begun with other settings"),
            (("--pretraining-updates", "5"), "begun with other settings"),
            (("--packages", work / "other"), "is of another package than")):
        done = run(work, "chapters", *words)
        check(done.returncode == 1 and message in done.stdout, done.stdout)


def check(condition, message):
    if not condition:
        print(message)
        sys.exit(1)


def main():
    if shutil.which("dpkg-deb") is None:
        print("skipped: there is no dpkg-deb")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for book in TOPICS:
            make_package(book, work)
        for question, answer in (("chapters", "label"), ("links", "answer")):
            done = run(work, question)
            if "apt-get install python3-bs4" in done.stdout:
                print("skipped:", done.stdout.strip())
                sys.exit(77)
            check(done.returncode == 0, done.stdout)
            place = work / "out/quick" / question
            table = (place / "table.md").read_text()
            rows = [line.split("|")[1].strip()
                    for line in table.splitlines()[2:]]
            check(rows == ["TF-IDF and logistic regression", "ETC, 1024 tokens",
                           "ETC with the sum, 1024 tokens", "ETC, 512 tokens"] +
                  ["BERT, 512 tokens"] * (question == "chapters"), table)
            again = run(work, question)
            check(again.returncode == 0 and "training" not in again.stdout,
                  again.stdout)
            check((place / "table.md").read_text() == table, again.stdout)
            text = "".join((place / part).read_text()
                           for part in ("train.json", "dev.json")
                           if (place / part).exists())
            if question == "links":
                check("[LINK]" in text and "another site" in text and
                      "the next" not in text, text[:500])
                for record in json.loads((place / "dev.json").read_text()):
                    check(record[answer] in record["candidates"], str(record))
            else:
                lines = (place / "dev.jsonl").read_text().splitlines()
                check(len({json.loads(line)[answer] for line in lines}) == 6,
                      "\n".join(lines))
                check("go home" not in "".join(lines), "\n".join(lines))
        check_that_it_goes_on(work)
        check_that_others_are_refused(work)
        missing = run(work / "nothing", "links", "--updates", "0")
        check(missing.returncode == 2 and "at least 1" in missing.stdout,
              missing.stdout)


main()
