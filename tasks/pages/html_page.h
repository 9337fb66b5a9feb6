#ifndef ETC_TASKS_PAGES_HTML_PAGE_H_
#define ETC_TASKS_PAGES_HTML_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace etc {

// `text` as HTML shows it, in an element or in an attribute's quotes: the five
// characters of markup become references, and bytes that are not UTF-8 become
// U+FFFD.
std::string HtmlText(absl::string_view text);

// A cell of a table for a number: <td class="number">, with the text escaped.
std::string NumberCell(absl::string_view text);

// One page without anything loaded from elsewhere.
struct HtmlPage {
  std::string title;  // plain text
  std::string body;   // HTML within <main>
  std::string style;  // further CSS
  std::string
      script;  // JavaScript, run at the end; must not contain "</script"
};

// The whole file. Its style has light and dark colours, fits 390 pixels and
// prints; pages and pictures colour by its custom properties:
//
//   --page --panel --ink --faint --line      background, text and rules
//   --series-1 ... --series-8                lines and bars, told apart by
//                                            colour-blind people (Okabe and
//                                            Ito)
//   --red --yellow --blue                    classes of medians
//
// Wide content goes into <div class="wide">, which scrolls by itself; numbers
// in tables into cells with class "number" (NumberCell).
std::string ToHtml(const HtmlPage& page);

}  // namespace etc

#endif  // ETC_TASKS_PAGES_HTML_PAGE_H_
