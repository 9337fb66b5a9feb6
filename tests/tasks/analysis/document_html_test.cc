// The page's text: tokens with markup and bytes that are not UTF-8, as JSON
// that a script element can hold. Pages in a browser are in
// document_browser_test.py.

#include "tasks/analysis/document_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DocumentHtmlTest, EscapesTextsAndKeepsData) {
  DocumentContents contents{
      .title = "<b>&\xff",
      .facts = {{"Record", "\"<i>\""}},
      .left_out = "a < b",
      .description = "</pre><script>alert(1)</script>",
      .size = {.globals = 1, .longs = 2, .local_radius = 1},
      .tokens = {"[CLS]", "</script><!--", "caf\xc3"},
      .pattern = UnrestrictedPattern(2, 1, 1, 0),
      .visible = {{{0, 3}}, {{0, 1}, {1, 3}}, {}},
      .layers = {0, 3},
      .heads = {1},
      .most = 1,
      .packed = {{"\1\2"}, {"\xff"}}};
  const std::string html = DocumentHtml(contents);
  EXPECT_TRUE(IsUtf8(html));
  EXPECT_THAT(html, HasSubstr("<h1>&lt;b&gt;&amp;\xEF\xBF\xBD</h1>"));
  EXPECT_THAT(html, HasSubstr("&quot;&lt;i&gt;&quot;"));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("<!--")));

  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = html.find(open) + open.size();
  const nlohmann::json data = nlohmann::json::parse(
      html.substr(begin, html.find("</script>", begin) - begin),
      /*cb=*/nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(data.is_object());
  EXPECT_EQ(data["tokens"][1], "</script><!--");
  EXPECT_EQ(data["tokens"][2], "caf\xEF\xBF\xBD");
  EXPECT_EQ(data["sees"], nlohmann::json::parse("[[0,3],[0,1,1,3],[]]"));
  EXPECT_EQ(data["layers"], nlohmann::json({0, 3}));
  std::string packed;
  ASSERT_TRUE(
      absl::Base64Unescape(data["rows"][1][0].get<std::string>(), &packed));
  EXPECT_EQ(packed, "\xff");
}

}  // namespace
}  // namespace etc
