// The vocabulary in the directory of weights, under each project's name, and
// its options (doc/formats.md 2.8). HuggingFace's tokenizer.json
// (doc/formats.md 4.6): the same lines as a vocab.txt, and a clear refusal of
// what is no tokenizer of BERT.
#include "etc/weights/tokenizer_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "nlohmann/json.hpp"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

// --- The files -------------------------------------------------------------

TEST(TokenizerFilesTest, FindsTheVocabularyOfEachProject) {
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

TEST(TokenizerFilesTest, ReadsBackTheTokenizerItWrites) {
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

TEST(TokenizerFilesTest, TakesTheOptionThatOnlyTheOfficialFolderNames) {
  TemporaryDirectory directory;
  const std::string folder = directory.File("etc_large_split_punctuation");
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(
      WriteFileAtomically(folder + "/vocab_gpt_for_etc.model", "x").ok());
  EXPECT_TRUE(FindTokenizer(folder)->split_punctuation);
}

TEST(TokenizerFilesTest, RefusesTokenizerOptionsOfAnotherType) {
  TemporaryDirectory directory;
  directory.Write("vocab.txt", "x");
  directory.Write("tokenizer_config.json", R"({"do_lower_case": "no"})");
  EXPECT_THAT(
      FindTokenizer(directory.path()).status().ToString(),
      AllOf(HasSubstr("tokenizer_config.json"), HasSubstr("do_lower_case")));
}

// --- tokenizer.json
// -----------------------------------------------------------

// As transformers writes it, with ids in another order than pieces, and one
// piece that is only among the added ones.
json Bert() {
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens",
       {{{"id", 0}, {"content", "[PAD]"}, {"special", true}},
        {{"id", 5}, {"content", "<new>"}, {"special", false}}}},
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", true},
        {"handle_chinese_chars", true},
        {"strip_accents", nullptr},
        {"lowercase", true}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor", {{"type", "TemplateProcessing"}}},
      {"decoder", {{"type", "WordPiece"}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab",
         {{"zebra", 1}, {"[UNK]", 2}, {"##a", 3}, {"b", 4}, {"[PAD]", 0}}}}}};
}

class TokenizerJsonTest : public testing::Test {
 protected:
  absl::StatusOr<WordPieceFile> Read(const json& contents) {
    return ReadTokenizerJson(
        directory_.Write("tokenizer.json", contents.dump()));
  }

  // The error of the file in which `pointer` is `value`.
  absl::Status ErrorWith(const std::string& pointer, const json& value) {
    json contents = Bert();
    contents[json::json_pointer(pointer)] = value;
    return Read(contents).status();
  }

  TemporaryDirectory directory_;
};

TEST_F(TokenizerJsonTest, HasThePiecesInTheOrderOfTheirIds) {
  const auto file = Read(Bert());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->vocabulary, "[PAD]\nzebra\n[UNK]\n##a\nb\n<new>\n");
  EXPECT_TRUE(file->lower_case);
}

TEST_F(TokenizerJsonTest, FoldsAsTheNormalizerSays) {
  json contents = Bert();
  json& normalizer = contents["normalizer"];
  normalizer["strip_accents"] = true;
  EXPECT_TRUE(Read(contents)->lower_case);
  normalizer["lowercase"] = false;
  EXPECT_THAT(Read(contents).status().message(),
              HasSubstr("normalizer.strip_accents is true"));
  normalizer["strip_accents"] = nullptr;
  EXPECT_FALSE(Read(contents)->lower_case);
  normalizer = nullptr;
  EXPECT_FALSE(Read(contents)->lower_case);
  contents.erase("normalizer");
  EXPECT_FALSE(Read(contents)->lower_case);
}

TEST_F(TokenizerJsonTest, TakesOldFilesWithoutTheModelsType) {
  json contents = Bert();
  contents["model"].erase("type");
  EXPECT_TRUE(Read(contents).ok()) << Read(contents).status();
}

TEST_F(TokenizerJsonTest, SaysWhatIsSupportedInstead) {
  struct Case {
    std::string pointer;
    json value;
    std::string message_part;
  };
  const std::vector<Case> table = {
      {"/model",
       {{"type", "Unigram"}, {"vocab", json::array()}},
       "model.type is \"Unigram\", but only \"WordPiece\" is supported; its "
       "SentencePiece model"},
      {"/model",
       {{"type", "BPE"}, {"vocab", json::object()}, {"merges", json::array()}},
       "model.type is \"BPE\", but only \"WordPiece\" is supported; for "
       "RoBERTa"},
      {"/model/continuing_subword_prefix", "@@", "\"##\""},
      {"/model/unk_token", "<unk>", "\"[UNK]\""},
      {"/normalizer", {{"type", "NFC"}}, "BertNormalizer"},
      {"/normalizer/clean_text", false, "clean_text is false"},
      {"/normalizer/strip_accents", false, "strip_accents is false"},
      {"/pre_tokenizer", {{"type", "Whitespace"}}, "BertPreTokenizer"},
  };
  for (const Case& other : table) {
    const absl::Status status = ErrorWith(other.pointer, other.value);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("tokenizer.json: "),
                                        HasSubstr(other.message_part)));
  }
}

TEST_F(TokenizerJsonTest, RefusesMistakes) {
  struct Case {
    std::string pointer;
    json value;
    std::string message_part;
  };
  const std::vector<Case> table = {
      {"/model", nullptr, "model"},
      {"/model/vocab", json::array(), "model.vocab"},
      {"/model/vocab/b", -1, "the id of \"b\""},
      {"/model/vocab/b", "4", "the id of \"b\""},
      {"/model/vocab/b", 1.5, "the id of \"b\""},
      {"/model/vocab/b", 1'000'000'000, "the id of \"b\""},
      {"/model/vocab/b", 3, "id 3 is that of \"##a\" and of \"b\""},
      {"/model/vocab/b", 6, "there is no 4"},
      {"/model/vocab/two\nlines", 6, "cannot be a line of a vocabulary"},
      {"/added_tokens", 1, "added_tokens should be an array"},
      {"/added_tokens/0/id", 1, "should be 0, as in model.vocab, but is 1"},
      {"/added_tokens/0/content", 7, "added_tokens[0].content"},
      {"/normalizer/lowercase", "yes", "normalizer.lowercase"},
  };
  for (const Case& mistake : table) {
    const absl::Status status = ErrorWith(mistake.pointer, mistake.value);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("tokenizer.json: "),
                                        HasSubstr(mistake.message_part)));
  }
}

TEST_F(TokenizerJsonTest, IsFoundBesideWeightsThatHaveNoOtherVocabulary) {
  const std::string path = directory_.Write("tokenizer.json", Bert().dump());
  auto found = FindTokenizer(directory_.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->type, "wordpiece");
  EXPECT_EQ(found->vocabulary, path);
  EXPECT_TRUE(found->lower_case);
  EXPECT_EQ(*ReadVocabulary(path), "[PAD]\nzebra\n[UNK]\n##a\nb\n<new>\n");
  // What the tokenizer was loaded with decides over what it was saved with.
  directory_.Write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_FALSE(FindTokenizer(directory_.path())->lower_case);

  json bpe = Bert();
  bpe["model"]["type"] = "BPE";
  directory_.Write("tokenizer.json", bpe.dump());
  found = FindTokenizer(directory_.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->type, "");
  EXPECT_THAT(found->unsupported, HasSubstr("\"BPE\""));
  directory_.Write("vocab.txt", "x");
  EXPECT_EQ(FindTokenizer(directory_.path())->unsupported, "");
  EXPECT_EQ(FindTokenizer(directory_.path())->type, "wordpiece");
}

}  // namespace
}  // namespace etc
