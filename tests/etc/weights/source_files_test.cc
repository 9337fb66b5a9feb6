// What lies beside a model's weights: the configuration in each project's form,
// the vocabulary under each project's name and the options that go with it; and
// RoBERTa's spelling of SentencePiece's pieces (formats spec 2.8, 3.3, 4.7).
#include "etc/weights/source_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "etc/weights/roberta_vocabulary.h"
#include "etc/weights/weight_plan.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kBert[] = R"({"vocab_size": 30522, "hidden_size": 768,
  "num_hidden_layers": 12, "num_attention_heads": 12,
  "intermediate_size": 3072, "max_position_embeddings": 512,
  "type_vocab_size": 2})";

TEST(SourceFilesTest, FindsTheVocabularyOfEachProject) {
  const std::pair<const char*, const char*> names[] = {
      {"vocab.txt", "wordpiece"},
      {"tokenizer.model", "sentencepiece"},
      {"vocab_bert_uncased_english.txt", "wordpiece"},
      {"vocab_gpt_for_etc.model", "sentencepiece"},
      {"spiece.model", "sentencepiece"}};
  for (const auto& [name, type] : names) {
    TemporaryDirectory directory;
    const std::string vocabulary = directory.Write(name, "x");
    // From the directory, a file in it, and a prefix of files in it.
    for (const std::string& path :
         {directory.path(), directory.Write("model.safetensors", ""),
          directory.File("model.ckpt")}) {
      const auto found = FindTokenizer(path);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(found->type, type);
      EXPECT_EQ(found->vocabulary, vocabulary);
      EXPECT_TRUE(found->lower_case);
      EXPECT_FALSE(found->split_punctuation);
    }
  }
  TemporaryDirectory empty;
  EXPECT_EQ(FindTokenizer(empty.path())->type, "");
}

TEST(SourceFilesTest, ReadsBackTheTokenizerItWrites) {
  TemporaryDirectory directory;
  const TokenizerFiles written = {
      .type = "sentencepiece", .lower_case = false, .split_punctuation = true};
  ASSERT_TRUE(WriteTokenizer(written, "pieces", directory.path()).ok());
  const auto found = FindTokenizer(directory.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->type, "sentencepiece");
  EXPECT_EQ(*ReadFile(found->vocabulary), "pieces");
  EXPECT_FALSE(found->lower_case);
  EXPECT_TRUE(found->split_punctuation);
}

TEST(SourceFilesTest, TakesTheOptionThatOnlyTheOfficialFolderNames) {
  TemporaryDirectory directory;
  const std::string folder = directory.File("etc_large_split_punctuation");
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(
      WriteFileAtomically(folder + "/vocab_gpt_for_etc.model", "x").ok());
  EXPECT_TRUE(FindTokenizer(folder)->split_punctuation);
}

TEST(SourceFilesTest, RefusesTokenizerOptionsOfAnotherType) {
  TemporaryDirectory directory;
  directory.Write("vocab.txt", "x");
  directory.Write("tokenizer_config.json", R"({"do_lower_case": "no"})");
  EXPECT_THAT(
      FindTokenizer(directory.path()).status().ToString(),
      AllOf(HasSubstr("tokenizer_config.json"), HasSubstr("do_lower_case")));
}

TEST(SourceFilesTest, ReadsTheConfigurationOfEachProject) {
  TemporaryDirectory directory;
  EXPECT_EQ(ReadSourceConfig(directory.path()).status().code(),
            absl::StatusCode::kNotFound);
  directory.Write("config.json", kBert);
  const auto bert = ReadSourceConfig(directory.File("model.safetensors"));
  ASSERT_TRUE(bert.ok()) << bert.status();
  EXPECT_TRUE(bert->is_bert);
  EXPECT_TRUE(HasOnlyAbsolutePositions(bert->config));
  EXPECT_EQ(InitialConfig(*bert).relative_vocab_size, 32);
  directory.Write("etc_config.json",
                  R"({"vocab_size": 7, "hidden_size": 12, "new": 1})");
  const auto etc = ReadSourceConfig(directory.path());
  ASSERT_TRUE(etc.ok()) << etc.status();
  EXPECT_FALSE(etc->is_bert);
  EXPECT_EQ(InitialConfig(*etc).vocab_size, 7);
  EXPECT_THAT(etc->warnings, ElementsAre(HasSubstr("\"new\" is ignored")));
}

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
