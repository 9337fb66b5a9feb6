// RoBERTa's spelling of SentencePiece's pieces and the rows found by it
// (doc/formats.md 4.7).
#include "etc/weights/roberta_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(RobertaVocabularyTest, SpellsPiecesAsBytes) {
  EXPECT_EQ(RobertaSpelling("\u2581the"), "\u0120the");
  EXPECT_EQ(RobertaSpelling("</s>"), "</s>");
  EXPECT_EQ(RobertaSpelling("\u00e9"), "\u00c3\u00a9");  // C3 A9
  // The first and the last of the 68 bytes that do not stand for themselves.
  EXPECT_EQ(RobertaSpelling(absl::string_view("\0", 1)), "\u0100");
  EXPECT_EQ(RobertaSpelling("\xad"), "\u0143");
}

TEST(RobertaVocabularyTest, FindsRowsByText) {
  const json tokenizer = {
      {"model", {{"vocab", {{"<s>", 0}, {"\u0120the", 5}, {"the", 9}}}}},
      {"added_tokens", {{{"id", 11}, {"content", " \u00e9"}}}}};
  const auto rows = RobertaRows(
      tokenizer, "a.json", {"\u2581the", "<s>", "cat", "the", "\u2581\u00e9"});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(5, 0, -1, 9, 11));
}

TEST(RobertaVocabularyTest, RefusesWhatIsNoVocabulary) {
  EXPECT_THAT(
      RobertaRows({{"model", {{"vocab", json::array()}}}}, "a.json", {})
          .status()
          .ToString(),
      HasSubstr("a.json: model.vocab should be an object of pieces, but is "
                "array"));
  // 2^64 - 1 would be the -1 that no row has.
  for (const char* row : {"-1", "18446744073709551615", "2147483648"}) {
    const json id = json::parse(row);
    for (const json& tokenizer :
         {json({{"model", {{"vocab", {{"x", id}}}}}}),
          json({{"model", {{"vocab", json::object()}}},
                {"added_tokens", {{{"id", id}, {"content", "x"}}}}})}) {
      EXPECT_THAT(
          RobertaRows(tokenizer, "b.json", {"x"}).status().ToString(),
          HasSubstr(absl::StrCat("the id of \"x\" should be a whole number "
                                 "from 0 to 2147483647, but is ",
                                 row)));
    }
  }
}

}  // namespace
}  // namespace etc
