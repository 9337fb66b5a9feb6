// RoBERTa's spelling of SentencePiece's pieces and the rows found by it
// (doc/formats.md 4.7).
#include "etc/weights/roberta_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

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
  TemporaryDirectory directory;
  const std::string json = directory.Write(
      "vocab.json", "{\"<s>\": 0, \"\u0120the\": 5, \"the\": 9}");
  const auto rows = RobertaRows(json, {"\u2581the", "<s>", "cat", "the"});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(5, 0, -1, 9));
  EXPECT_FALSE(RobertaRows(directory.Write("a.json", "[]"), {}).ok());
  EXPECT_THAT(RobertaRows(directory.Write("b.json", R"({"x": -1})"), {})
                  .status()
                  .ToString(),
              HasSubstr("should be a whole number"));
}

}  // namespace
}  // namespace etc
