#include "tasks/pages/html_page.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"

namespace etc {
namespace {

// Colours of lines after Okabe and Ito, dark enough on white and light enough
// on black; the rest as in doc/pictures.
constexpr char kFrameStyle[] = R"(
:root { color-scheme: light dark;
  --page: #ffffff; --panel: #f6f8fa; --ink: #1f2328; --faint: #59636e;
  --line: #d1d9e0;
  --series-1: #0072b2; --series-2: #d55e00; --series-3: #009e73;
  --series-4: #b5599b; --series-5: #8f6f00; --series-6: #3d9bd6;
  --series-7: #6a51a3; --series-8: #59636e;
  --red: #d62728; --yellow: #f2c037; --blue: #1f77b4; }
@media (prefers-color-scheme: dark) { :root {
  --page: #0d1117; --panel: #161b22; --ink: #f0f6fc; --faint: #9198a1;
  --line: #3d444d;
  --series-1: #56b4e9; --series-2: #f0883e; --series-3: #3fca9b;
  --series-4: #e09ac8; --series-5: #e3c34a; --series-6: #8ccff5;
  --series-7: #b3a2e0; --series-8: #9198a1; } }
@media print { :root { color-scheme: light;
  --page: #ffffff; --panel: #ffffff; --ink: #000000; --faint: #444444;
  --line: #bbbbbb;
  --series-1: #0072b2; --series-2: #d55e00; --series-3: #009e73;
  --series-4: #b5599b; --series-5: #8f6f00; --series-6: #3d9bd6;
  --series-7: #6a51a3; --series-8: #59636e; }
  section, figure, tr { break-inside: avoid; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0.5rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 0.4rem; }
p, ul { max-width: 46rem; }
a { color: var(--series-1); }
figure { margin: 0.5rem 0; }
figcaption, .faint { color: var(--faint); font-size: 0.87rem; }
svg { max-width: 100%; height: auto; display: block; }
svg text { fill: var(--faint); font: 11px system-ui, sans-serif; }
.wide { overflow-x: auto; }
.wide > svg { max-width: none; }
table { border-collapse: collapse; font-size: 0.87rem; }
th, td { text-align: left; padding: 0.2rem 0.6rem; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
pre, code { font: 0.87em ui-monospace, monospace; }
pre { background: var(--panel); padding: 0.6rem; overflow-x: auto; }
)";

// The bytes of the well-formed character at the beginning of `text`, or 0.
std::size_t CharacterSize(absl::string_view text) {
  const std::size_t most = std::min<std::size_t>(4, text.size());
  for (std::size_t size = 1; size <= most; ++size) {
    if (IsUtf8(text.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

std::string HtmlText(absl::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = CharacterSize(text.substr(at));
    switch (text[at]) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        if (size == 0) {
          html += "\xEF\xBF\xBD";
        } else {
          html.append(text.data() + at, size);
        }
    }
    at += std::max<std::size_t>(size, 1);
  }
  return html;
}

std::string NumberCell(absl::string_view text) {
  return absl::StrCat("<td class=\"number\">", HtmlText(text), "</td>");
}

std::string ToHtml(const HtmlPage& page) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
      HtmlText(page.title), "</title>\n<style>", kFrameStyle, page.style,
      "</style>\n</head>\n<body>\n<main>\n", page.body, "\n</main>\n",
      page.script.empty()
          ? ""
          : absl::StrCat("<script>\n", page.script, "\n</script>\n"),
      "</body>\n</html>\n");
}

}  // namespace etc
