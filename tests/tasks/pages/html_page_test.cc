#include "tasks/pages/html_page.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace etc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HtmlTextTest, EscapesMarkupAndReplacesWhatIsNotUtf8) {
  EXPECT_EQ(HtmlText("a<b & \"c\" > 'd'"),
            "a&lt;b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  EXPECT_EQ(HtmlText("K\xC3\xB6ln \xF0\x9F\x8C\x8D"),
            "K\xC3\xB6ln \xF0\x9F\x8C\x8D");
  EXPECT_EQ(HtmlText("a\xFFz\xC3"), "a\xEF\xBF\xBDz\xEF\xBF\xBD");
}

TEST(ToHtmlTest, HasAllPartsAndNothingFromElsewhere) {
  const std::string html =
      ToHtml({"a < b", "<p>body</p>", ".mine { color: red; }", "let x = 1;"});
  EXPECT_THAT(html, HasSubstr("<title>a &lt; b</title>"));
  EXPECT_THAT(html, HasSubstr("<p>body</p>"));
  EXPECT_THAT(html, HasSubstr(".mine { color: red; }"));
  EXPECT_THAT(html, HasSubstr("<script>\nlet x = 1;\n</script>"));
  EXPECT_THAT(html, Not(HasSubstr("http")));
  EXPECT_THAT(ToHtml({"t", "b", "", ""}), Not(HasSubstr("<script>")));
}

}  // namespace
}  // namespace etc
