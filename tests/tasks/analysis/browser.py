"""A headless Chromium for tests of pages."""

import html
import os
import re
import shutil
import subprocess

SKIPPED = 77


def find():
    """The program, or None and a line that says so."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("skipped: there is no chromium (apt-get install chromium)")
    return browser


def _run(browser, directory, arguments):
    result = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu",
         "--disable-dev-shm-usage", f"--user-data-dir={directory}/profile",
         "--enable-logging=stderr", "--v=0", *arguments],
        capture_output=True, encoding="utf-8", timeout=600, check=False)
    console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    assert result.returncode == 0, result.stderr
    assert not console, console
    return result.stdout


def dump(browser, path, directory, fragment="", script=""):
    """The page's elements once it has run, after `script`; nothing may be
    written to the console."""
    if script:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        path = os.path.join(directory, "scripted.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("</body>",
                                    f"<script>{script}</script></body>"))
    return _run(browser, directory, ["--dump-dom", f"file://{path}{fragment}"])


def width_at(browser, path, directory, width):
    """The width that the page takes in a frame of `width` pixels: windows of
    Chromium are not as narrow as a phone."""
    with open(path, encoding="utf-8") as file:
        text = html.escape(file.read())
    frame = os.path.join(directory, "frame.html")
    with open(frame, "w", encoding="utf-8") as file:
        file.write(f"""<!DOCTYPE html><link rel="icon" href="data:,"><body>
          <iframe width="{width}" height="800" onload="document.body.dataset.page
          = contentDocument.documentElement.scrollWidth" srcdoc="{text}">
          </iframe></body>""")
    dumped = _run(browser, directory, ["--dump-dom", f"file://{frame}"])
    return int(re.search(r'data-page="(\d+)"', dumped).group(1))
