#include "tasks/analysis/document_html.h"

#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/json_text.h"
#include "nlohmann/json.hpp"
#include "tasks/analysis/document_script.h"
#include "tasks/pages/html_page.h"

namespace etc {
namespace {

using nlohmann::ordered_json;

// [begin, end, begin, end, ...]
ordered_json RunsOf(const std::vector<KeyRun>& runs) {
  ordered_json numbers = ordered_json::array();
  for (const KeyRun& run : runs) {
    numbers.push_back(run.begin);
    numbers.push_back(run.end);
  }
  return numbers;
}

// JSON that may stand in a script element.
std::string DataOf(const DocumentContents& contents) {
  ordered_json sees = ordered_json::array();
  for (const std::vector<KeyRun>& runs : contents.visible) {
    sees.push_back(RunsOf(runs));
  }
  ordered_json rows = ordered_json::array();
  for (const std::vector<std::string>& heads : contents.packed) {
    ordered_json layer = ordered_json::array();
    for (const std::string& packed : heads) {
      layer.push_back(absl::Base64Escape(packed));
    }
    rows.push_back(std::move(layer));
  }
  const ordered_json data = {{"globals", contents.size.globals},
                             {"longs", contents.size.longs},
                             {"tokens", contents.tokens},
                             {"segment", contents.pattern.long_segment},
                             {"sentence", contents.pattern.sentence},
                             {"paragraph", contents.pattern.paragraph},
                             {"linked", contents.pattern.linked},
                             {"sees", std::move(sees)},
                             {"layers", contents.layers},
                             {"heads", contents.heads},
                             {"most", contents.most},
                             {"units", kProbabilityUnits},
                             {"keyBytes", KeyBytes(contents.size)},
                             {"rows", std::move(rows)}};
  return absl::StrReplaceAll(JsonAsciiText(data), {{"<", "\\u003c"}});
}

std::string FactsTable(const DocumentContents& contents) {
  std::string rows;
  for (const auto& [name, value] : contents.facts) {
    absl::StrAppend(&rows, "<tr><th scope=\"row\">", HtmlText(name),
                    "</th><td>", HtmlText(value), "</td></tr>\n");
  }
  return absl::StrCat("<div class=\"wide\"><table id=\"facts\">\n", rows,
                      "</table></div>\n");
}

}  // namespace

std::string DocumentHtml(const DocumentContents& contents) {
  const std::string body = absl::StrCat(
      "<h1>", HtmlText(contents.title), "</h1>\n", FactsTable(contents),
      "<p class=\"faint\" id=\"left-out\">", HtmlText(contents.left_out),
      "</p>\n", kDocumentBody,
      "<details><summary>The example as text</summary><pre>",
      HtmlText(contents.description),
      "</pre></details>\n<script type=\"application/json\" id=\"data\">",
      DataOf(contents), "</script>\n");
  return ToHtml({.title = contents.title,
                 .body = body,
                 .style = kDocumentStyle,
                 .script = kDocumentScript});
}

}  // namespace etc
