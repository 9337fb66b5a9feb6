// A tokenizer by the path of its directory or file, and its special ids. Which
// files say how a vocabulary is used is tested in tokenizer_files_test, pieces
// in the tests of the two tokenizers.
#include "tasks/text/load_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/tiny_sentencepiece_model.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kVocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nday\nGood\n";

class LoadTokenizerTest : public testing::Test {
 protected:
  std::shared_ptr<const Tokenizer> Load(const std::string& path) {
    auto tokenizer = LoadTokenizer(path);
    EXPECT_TRUE(tokenizer.ok()) << path << ": " << tokenizer.status();
    return tokenizer.ok() ? *tokenizer : nullptr;
  }

  static std::vector<int32_t> Ids(const Tokenizer& tokenizer,
                                  const std::string& text) {
    std::vector<int32_t> ids;
    for (const Token& token : tokenizer.Encode(text)) {
      ids.push_back(token.id);
    }
    return ids;
  }

  TemporaryDirectory directory_;
};

TEST_F(LoadTokenizerTest, TakesADirectoryOrAFileUnderAnyName) {
  const std::string found = directory_.Write("vocab.txt", kVocabulary);
  const std::string named = directory_.Write("words.of.mine", kVocabulary);
  for (const std::string& path : {directory_.path(), found, named}) {
    const auto tokenizer = Load(path);
    ASSERT_NE(tokenizer, nullptr);
    EXPECT_EQ(tokenizer->vocab_size(), 8);
    // A vocabulary with capitals is cased.
    EXPECT_THAT(Ids(*tokenizer, "Good day"), ElementsAre(7, 6));
  }
}

TEST_F(LoadTokenizerTest, ObeysTheFilesBesideTheVocabulary) {
  directory_.Write("vocab.txt", kVocabulary);
  directory_.Write("tokenizer_config.json", R"({"do_lower_case": true})");
  EXPECT_THAT(Ids(*Load(directory_.path()), "Good day"), ElementsAre(5, 6));
}

TEST_F(LoadTokenizerTest, TakesTokenizerJsonAndSentencePiece) {
  const std::string json = directory_.Write(
      "tokenizer.json",
      R"({"normalizer": {"type": "BertNormalizer", "lowercase": true},
          "pre_tokenizer": {"type": "BertPreTokenizer"},
          "model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[UNK]": 1,
                    "[CLS]": 2, "[SEP]": 3, "good": 4}}})");
  for (const std::string& path : {directory_.path(), json}) {
    EXPECT_THAT(Ids(*Load(path), "Good"), ElementsAre(4));
  }
  const TinySentencePieceModel model({{"▁good", -1.0F}, {"▁", -2.0F}});
  EXPECT_THAT(Ids(*Load(directory_.Write("mine.model", model.bytes())), "good"),
              ElementsAre(3));
}

TEST_F(LoadTokenizerTest, FindsSpecialIdsOfEachKind) {
  const SpecialIds bert =
      FindSpecialIds(*Load(directory_.Write("vocab.txt", kVocabulary)));
  EXPECT_EQ(bert.padding, 0);
  EXPECT_EQ(bert.unknown, 1);
  EXPECT_EQ(bert.cls, 2);
  EXPECT_EQ(bert.separator, 3);
  EXPECT_EQ(bert.mask, 4);

  const TinySentencePieceModel etc(
      {{"<unused_2>", -9.0F}, {"<unused_63>", -9.0F}});
  const SpecialIds ids =
      FindSpecialIds(*Load(directory_.Write("etc.model", etc.bytes())));
  EXPECT_EQ(ids.unknown, 0);
  EXPECT_EQ(ids.separator, 3);
  EXPECT_EQ(ids.cls, 4);
  EXPECT_EQ(ids.padding, -1);
  EXPECT_EQ(ids.mask, -1);

  // Half a pair is none: <s> and </s> are taken, which all these models have.
  const TinySentencePieceModel half({{"<unused_63>", -9.0F}});
  const SpecialIds own =
      FindSpecialIds(*Load(directory_.Write("half.model", half.bytes())));
  EXPECT_EQ(own.cls, 1);
  EXPECT_EQ(own.separator, 2);
  EXPECT_EQ(own.between, std::nullopt);
}

TEST_F(LoadTokenizerTest, SaysWhatIsWrong) {
  const auto none = LoadTokenizer(directory_.File("none"));
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(none.status().ToString(), HasSubstr(directory_.File("none")));

  const auto empty = LoadTokenizer(directory_.path());
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(empty.status().ToString(),
              AllOf(HasSubstr(directory_.path()),
                    HasSubstr("should have a vocabulary, but has none")));

  directory_.Write("tokenizer.json", R"({"model": {"type": "Other"}})");
  EXPECT_THAT(LoadTokenizer(directory_.path()).status().ToString(),
              AllOf(HasSubstr("tokenizer.json"), HasSubstr("Other")));
  std::filesystem::remove(directory_.File("tokenizer.json"));

  const auto doubled = LoadTokenizer(
      directory_.Write("doubled.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\na\n"));
  EXPECT_EQ(doubled.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(doubled.status().ToString(),
              AllOf(HasSubstr("doubled.txt"), HasSubstr("6")));
}

}  // namespace
}  // namespace etc
