// The vocabulary in the directory of weights, under each project's name
// (doc/formats.md 2.8), and its use: statements of each file beside it are
// obeyed or refused by name, and files that contradict one another are refused.
// HuggingFace's tokenizer.json (doc/formats.md 4.6): the same lines as a
// vocab.txt, and a clear refusal of a tokenizer other than BERT's.
#include "etc/weights/tokenizer_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "etc/weights/output_directory.h"
#include "etc/weights/tokenizer_json.h"
#include "etc/weights/vocabulary_size.h"
#include "nlohmann/json.hpp"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// --- The files -------------------------------------------------------------

// Readers would find the files of another vocabulary beside the weights.
TEST(TokenizerFilesTest, NoWeightsAreWrittenBesideAnyOfTheFiles) {
  for (const char* name :
       {"sentencepiece.bpe.model", "tokenizer.json", "vocab.json", "merges.txt",
        "dict.txt", "dict.de.txt", "tokenizer_config.json",
        "special_tokens_map.json", "added_tokens.json", "config.json"}) {
    TemporaryDirectory directory;
    directory.Write(name, "{}");
    EXPECT_TRUE(absl::IsAlreadyExists(CheckNoWeightsIn(directory.path())))
        << name;
  }
}

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
    EXPECT_TRUE(absl::IsAlreadyExists(CheckNoWeightsIn(directory.path())))
        << name;
    // Found from the directory, a file in it, and a prefix of files in it.
    for (const std::string& path :
         {directory.path(), directory.Write("model.safetensors", ""),
          directory.File("model.ckpt")}) {
      const auto found = FindTokenizer(path);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(found->type, type);
      EXPECT_EQ(found->vocabulary, vocabulary);
      EXPECT_EQ(found->wordpiece,
                WordPieceOptions{.lower_case = found->type == "wordpiece"});
      EXPECT_FALSE(found->split_punctuation);
    }
  }
  TemporaryDirectory empty;
  EXPECT_EQ(FindTokenizer(empty.path())->type, "");
}

// XLM-RoBERTa's ids are those of the pieces plus 1.
TEST(TokenizerFilesTest, TakesNoIdsOfASentencepieceBpeModel) {
  TemporaryDirectory directory;
  directory.Write("sentencepiece.bpe.model", "x");
  const auto alone = FindTokenizer(directory.path());
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->type, "");
  EXPECT_THAT(alone->unsupported,
              AllOf(HasSubstr("sentencepiece.bpe.model has other ids"),
                    HasSubstr("tokenizer.json")));
  // It is refused if it is named, too.
  EXPECT_EQ(
      DescribeTokenizerAt(directory.File("sentencepiece.bpe.model")).status(),
      absl::UnimplementedError(alone->unsupported));
  const std::string statements =
      directory.Write("tokenizer.json", R"({"model": {"type": "Unigram"}})");
  const auto found = FindTokenizer(directory.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->type, "huggingface");
  EXPECT_EQ(found->vocabulary, statements);
}

TEST(TokenizerFilesTest, ReadsBackTheTokenizerItWrites) {
  TemporaryDirectory directory;
  const TokenizerFiles written = {.type = "sentencepiece",
                                  .split_punctuation = true};
  ASSERT_TRUE(WriteTokenizer(written, "pieces", directory.path()).ok());
  const auto found = FindTokenizer(directory.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->type, "sentencepiece");
  EXPECT_EQ(*ReadFile(found->vocabulary), "pieces");
  EXPECT_TRUE(found->split_punctuation);
}

// A checkpoint takes it as it is, however large, unread.
TEST(TokenizerFilesTest, WritesATokenizerJsonAlone) {
  TemporaryDirectory directory;
  ASSERT_TRUE(
      WriteTokenizer({.type = "huggingface"}, "{", directory.path()).ok());
  EXPECT_EQ(*ReadFile(directory.File("tokenizer.json")), "{");
  EXPECT_FALSE(
      std::filesystem::exists(directory.File("tokenizer_config.json")));
}

TEST(TokenizerFilesTest, ReadsBackAllOptionsOfWordPiece) {
  const AddedToken entity = {.id = 2, .content = "[ENT0]", .special = true};
  const AddedToken word = {.id = 3,
                           .content = "Foo",
                           .single_word = true,
                           .normalized = true,
                           .lstrip = true,
                           .rstrip = true};
  for (const WordPieceOptions& options :
       {WordPieceOptions{}, WordPieceOptions{.lower_case = false},
        WordPieceOptions{.strip_accents = false},
        WordPieceOptions{.tokenize_chinese_chars = false},
        WordPieceOptions{.clean_text = false},
        WordPieceOptions{.max_word_code_points = 7},
        WordPieceOptions{.added_tokens = {entity, word}}}) {
    TemporaryDirectory directory;
    ASSERT_TRUE(WriteTokenizer({.type = "wordpiece", .wordpiece = options},
                               "[PAD]\na\n[ENT0]\nFoo\n", directory.path())
                    .ok());
    const auto found = FindTokenizer(directory.path());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->wordpiece, options) << WordPieceOptionsToJson(options);
    // transformers takes the class of the kind of the model without it.
    EXPECT_EQ(json::parse(*ReadFile(directory.File("tokenizer_config.json")))
                  .value("tokenizer_class", ""),
              "BertTokenizer");
  }
}

TEST(TokenizerFilesTest, TakesTheOptionThatOnlyTheOfficialFolderNames) {
  TemporaryDirectory directory;
  const std::string folder = directory.File("etc_large_split_punctuation");
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(
      WriteFileAtomically(folder + "/vocab_gpt_for_etc.model", "x").ok());
  EXPECT_TRUE(FindTokenizer(folder)->split_punctuation);
  EXPECT_TRUE(FindTokenizer(folder + "/.")->split_punctuation);
  // Not those of other folders, nor of what lies within it.
  for (const char* name : {"/mine", "/no_split_punctuation"}) {
    std::filesystem::create_directory(folder + name);
    ASSERT_TRUE(
        WriteFileAtomically(folder + name + "/vocab_gpt_for_etc.model", "x")
            .ok());
    EXPECT_FALSE(FindTokenizer(folder + name)->split_punctuation) << name;
  }
}

TEST(TokenizerFilesTest, RefusesTokenizerOptionsOfAnotherType) {
  TemporaryDirectory directory;
  directory.Write("vocab.txt", "x");
  directory.Write("tokenizer_config.json", R"({"do_lower_case": "no"})");
  EXPECT_THAT(
      FindTokenizer(directory.path()).status().ToString(),
      AllOf(HasSubstr("tokenizer_config.json"), HasSubstr("do_lower_case")));
}

// "[ENT0]" never is a part of a word, "Foo" would be one if it were a line.
TEST(TokenizerFilesTest, WritesNoLinesThatWouldBecomePiecesOfWords) {
  const std::string lines = "[PAD]\na\n[ENT0]\nFoo\n[ENT1]\n";
  TokenizerFiles tokenizer = {
      .type = "wordpiece",
      .wordpiece = {
          .added_tokens = {{.id = 2, .content = "[ENT0]", .outside = true},
                           {.id = 3, .content = "Foo", .outside = true},
                           {.id = 4, .content = "[ENT1]", .outside = true}}}};
  TemporaryDirectory directory;
  const std::string vocabulary = directory.File("vocab.txt");
  ASSERT_TRUE(WriteTokenizer(tokenizer, lines, directory.path()).ok());
  EXPECT_EQ(*ReadFile(vocabulary), "[PAD]\na\n[ENT0]\n");
  EXPECT_EQ(*ReadVocabulary("wordpiece", vocabulary), lines);
  const auto found = FindTokenizer(directory.path());
  ASSERT_TRUE(found.ok()) << found.status();
  tokenizer.wordpiece.added_tokens[0].outside = false;
  EXPECT_EQ(found->wordpiece, tokenizer.wordpiece);
}

// "##x" would be cut out of "ax".
TEST(TokenizerFilesTest, WritesNoLinesThatWouldContinueWords) {
  TemporaryDirectory directory;
  const TokenizerFiles tokenizer = {
      .type = "wordpiece",
      .wordpiece = {
          .added_tokens = {{.id = 2, .content = "##x", .outside = true}}}};
  ASSERT_TRUE(
      WriteTokenizer(tokenizer, "[PAD]\na\n##x\n", directory.path()).ok());
  EXPECT_EQ(*ReadFile(directory.File("vocab.txt")), "[PAD]\na\n");
  EXPECT_EQ(FindTokenizer(directory.path())->wordpiece, tokenizer.wordpiece);
}

TEST(TokenizerFilesTest, CountsLinesAsTheyAreRead) {
  TemporaryDirectory directory;
  for (const char* lines :
       {"[PAD]\na", "\uFEFF[PAD]\r\na\r\n\r\n", "[PAD]\na\n\n"}) {
    const std::string path = directory.Write("vocab.txt", lines);
    EXPECT_EQ(*CountPieces({.type = "wordpiece", .vocabulary = path}), 2);
  }
}

TEST(TokenizerFilesTest, ReadsThePiecesOfASentencePieceModel) {
  TemporaryDirectory directory;
  // A piece "ab" with its score, an empty one, and a field that is skipped.
  const std::string path = directory.Write(
      "x.model",
      absl::StrCat("\x0A\x09\x0A\x02", "ab", "\x15", std::string(4, '\0'),
                   absl::string_view("\x0A\0", 2), "\x12\x01z"));
  const auto pieces = ReadSentencePieces(path);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  EXPECT_THAT(*pieces, ElementsAre("ab", ""));
  EXPECT_EQ(*CountPieces({.type = "sentencepiece", .vocabulary = path}), 2);
  EXPECT_THAT(
      ReadSentencePieces(directory.Write("y.model", "\x0A\x09z")).status(),
      testing::Property(&absl::Status::message,
                        HasSubstr("y.model is no SentencePiece model")));
}

// --- tokenizer.json
// -----------------------------------------------------------

// Written as transformers writes it, with ids in another order than pieces, and
// one piece that is only among the added ones.
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
  absl::StatusOr<TokenizerJson> Read(const json& contents) {
    return ReadTokenizerJson(
        directory_.Write("tokenizer.json", contents.dump()));
  }

  WordPieceOptions Options(const json& contents) {
    const auto tokenizer = DescribeTokenizer(
        "wordpiece", directory_.Write("tokenizer.json", contents.dump()));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return tokenizer.ok() ? tokenizer->wordpiece : WordPieceOptions();
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
}

TEST_F(TokenizerJsonTest, FoldsAsTheNormalizerSays) {
  json contents = Bert();
  json& normalizer = contents["normalizer"];
  normalizer["strip_accents"] = true;
  EXPECT_TRUE(Options(contents).lower_case);
  EXPECT_EQ(Options(contents).strip_accents, true);
  normalizer["lowercase"] = false;
  EXPECT_FALSE(Options(contents).lower_case);
  normalizer["strip_accents"] = nullptr;
  EXPECT_FALSE(Options(contents).lower_case);
  EXPECT_EQ(Options(contents).strip_accents, std::nullopt);
  // Without one text stays as it is.
  normalizer = nullptr;
  EXPECT_FALSE(Options(contents).lower_case);
  EXPECT_FALSE(Options(contents).tokenize_chinese_chars);
  EXPECT_FALSE(Options(contents).clean_text);
  contents.erase("normalizer");
  EXPECT_FALSE(Options(contents).lower_case);
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
       "model.type is \"Unigram\", but only \"WordPiece\" is supported as "
       "\"wordpiece\"; \"huggingface\" has others"},
      {"/model",
       {{"type", "BPE"}, {"vocab", json::object()}, {"merges", json::array()}},
       "model.type is \"BPE\", but only \"WordPiece\" is supported as"},
      {"/model/continuing_subword_prefix", "@@", "\"##\""},
      {"/model/unk_token", "<unk>", "\"[UNK]\""},
      {"/normalizer", {{"type", "NFC"}}, "BertNormalizer"},
      {"/pre_tokenizer", {{"type", "Whitespace"}}, "BertPreTokenizer"},
      // HuggingFace takes the whole text for one word.
      {"/pre_tokenizer", nullptr, "but only \"BertPreTokenizer\""},
      {"/model/vocab/two\nlines", 6, "model.vocab: the piece with the id 6"},
      {"/model/vocab/", 6, "is \"\", but only a line that is not empty"},
      {"/added_tokens/1/content", "\n", "added_tokens[1]: the piece with the"},
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
      {"/added_tokens", 1, "added_tokens should be an array"},
      {"/added_tokens/0/id", 1, "should be 0, as in model.vocab, but is 1"},
      {"/added_tokens/0/content", 7, "added_tokens[0].content"},
      {"/normalizer/lowercase", "yes", "normalizer.lowercase"},
      {"/model/max_input_chars_per_word", 0, "should be at least 1, but is 0"},
      {"/added_tokens/1/content", "", "added_tokens[1].content"},
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
  EXPECT_TRUE(found->wordpiece.lower_case);
  EXPECT_EQ(*ReadVocabulary("wordpiece", path),
            "[PAD]\nzebra\n[UNK]\n##a\nb\n<new>\n");

  json other = Bert();
  other["model"]["type"] = "Other";
  directory_.Write("tokenizer.json", other.dump());
  found = FindTokenizer(directory_.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->type, "");
  EXPECT_THAT(found->unsupported, HasSubstr("\"Other\""));
}

// One more than 2^63 - 1 is no number, and nothing has that many pieces.
TEST_F(TokenizerJsonTest, CountsNoPiecesByIdsThatCannotBe) {
  json bpe = Bert();
  bpe["model"]["type"] = "BPE";
  bpe["added_tokens"][1]["id"] = std::numeric_limits<int64_t>::max();
  const std::string path = directory_.Write("tokenizer.json", bpe.dump());
  EXPECT_EQ(*CountTokenizerJsonPieces(path), 5);
}

TEST_F(TokenizerJsonTest, CountsNoAddedTokensThatAreNoArray) {
  json bpe = Bert();
  bpe["model"]["type"] = "BPE";
  for (const json& added : {json("[MASK]"), json({{"[MASK]", 5}}), json(1)}) {
    bpe["added_tokens"] = added;
    const std::string path = directory_.Write("tokenizer.json", bpe.dump());
    const absl::Status status = CountTokenizerJsonPieces(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("added_tokens should be an array"));
  }
}

TEST_F(TokenizerJsonTest, OfAnotherKindIsHuggingFaces) {
  json bpe = Bert();
  bpe["model"]["type"] = "BPE";
  const std::string contents = bpe.dump();
  const std::string path = directory_.Write("tokenizer.json", contents);
  for (const std::string& named : {directory_.path(), path}) {
    const auto found = DescribeTokenizerAt(named);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->type, "huggingface");
    EXPECT_EQ(found->vocabulary, path);
    EXPECT_EQ(*ReadVocabulary(found->type, path), contents);
    EXPECT_EQ(*CountPieces(*found), 6);
    TemporaryDirectory written;
    ASSERT_TRUE(WriteTokenizer(*found, contents, written.path()).ok());
    EXPECT_EQ(*ReadFile(written.File(VocabularyFileName(found->type)), 1 << 20),
              contents);
    EXPECT_EQ(FindTokenizer(written.path())->type, "huggingface");
  }
}

// vocab.txt has a piece in each line; "\n" fits into none.
TEST_F(TokenizerJsonTest, WithALineBreakInAPieceIsHuggingFaces) {
  json contents = Bert();
  contents["added_tokens"][1]["content"] = "\n";
  const std::string path = directory_.Write("tokenizer.json", contents.dump());
  for (const std::string& named : {directory_.path(), path}) {
    const auto found = DescribeTokenizerAt(named);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->type, "huggingface");
    EXPECT_EQ(found->vocabulary, path);
    EXPECT_EQ(*CountPieces(*found), 6);
  }
}

// --- The number of pieces ---------------------------------------------------

// Tables are rounded up to multiples of 128 at most.
TEST(VocabularySizeTest, IsThatOfTheTableOrALittleLess) {
  const auto status = [](int64_t pieces, size_t expected_warnings) {
    std::vector<std::string> warnings;
    const absl::Status checked =
        CheckVocabularySize("vocab.txt", pieces, 1024, &warnings);
    EXPECT_EQ(warnings.size(), expected_warnings) << pieces;
    return checked;
  };
  EXPECT_TRUE(status(1024, 0).ok());
  EXPECT_TRUE(status(1023, 1).ok());
  EXPECT_TRUE(status(897, 1).ok());
  for (const int64_t pieces : {0, 896, 1025}) {
    const absl::Status refused = status(pieces, 0);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.message(),
                AllOf(HasSubstr(absl::StrCat("vocab.txt has ", pieces)),
                      HasSubstr("vocab_size is 1024")));
  }
}

// --- What several files say
// ---------------------------------------------------

constexpr char kPieces[] = "[PAD]\nzebra\n[UNK]\n##a\nb\n";

class StatementsTest : public testing::Test {
 protected:
  StatementsTest() { directory_.Write("vocab.txt", kPieces); }

  void Write(const std::string& name, const json& contents) {
    directory_.Write(name, contents.dump());
  }
  TokenizerFiles Find() {
    const auto found = FindTokenizer(directory_.path());
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : TokenizerFiles();
  }
  WordPieceOptions Options() { return Find().wordpiece; }
  std::string Error() {
    return std::string(FindTokenizer(directory_.path()).status().message());
  }

  TemporaryDirectory directory_;
};

TEST_F(StatementsTest, OptionsOfTokenizerConfigAreObeyed) {
  Write("tokenizer_config.json", {{"tokenizer_class", "BertTokenizer"},
                                  {"do_lower_case", true},
                                  {"strip_accents", nullptr},
                                  {"tokenize_chinese_chars", true},
                                  {"do_basic_tokenize", true},
                                  {"never_split", nullptr},
                                  {"cls_token", "[CLS]"},
                                  {"mask_token", {{"content", "[MASK]"}}}});
  // HuggingFace's limit where it says no other.
  EXPECT_EQ(Options(), (WordPieceOptions{.max_word_code_points = 100}));
  Write("tokenizer_config.json", {{"do_lower_case", false},
                                  {"strip_accents", true},
                                  {"tokenize_chinese_chars", false},
                                  {"clean_text", false},
                                  {"max_input_chars_per_word", 5}});
  EXPECT_EQ(Options(), (WordPieceOptions{.lower_case = false,
                                         .strip_accents = true,
                                         .tokenize_chinese_chars = false,
                                         .clean_text = false,
                                         .max_word_code_points = 5}));
}

TEST_F(StatementsTest, WhatIsNotSupportedIsRefusedByName) {
  const std::pair<json, std::string> table[] = {
      {{{"do_basic_tokenize", false}}, "do_basic_tokenize is false"},
      {{{"never_split", {"a"}}}, "never_split is a list"},
      {{{"tokenizer_class", "BertJapaneseTokenizer"}},
       "tokenizer_class is \"BertJapaneseTokenizer\""},
      {{{"tokenizer_class", "PreTrainedTokenizerFast"}},
       "tokenizer_class is \"PreTrainedTokenizerFast\""},
      {{{"word_tokenizer_type", "mecab"}}, "word_tokenizer_type is \"mecab\""},
      {{{"subword_tokenizer_type", "character"}}, "subword_tokenizer_type"},
      {{{"wordpieces_prefix", "@"}}, "wordpieces_prefix is \"@\""},
      {{{"split_special_tokens", true}}, "split_special_tokens is true"},
      {{{"unk_token", "<unk>"}}, "unk_token is \"<unk>\""},
      {{{"sep_token", {{"content", "</s>"}}}}, "sep_token is \"</s>\""},
  };
  for (const auto& [config, message] : table) {
    Write("tokenizer_config.json", config);
    const TokenizerFiles found = Find();
    EXPECT_EQ(found.type, "");
    EXPECT_THAT(found.unsupported,
                AllOf(HasSubstr("tokenizer_config.json"), HasSubstr(message)));
    EXPECT_EQ(DescribeTokenizer("wordpiece", directory_.File("vocab.txt"))
                  .status()
                  .message(),
              found.unsupported);
  }
}

TEST_F(StatementsTest, ClassesThatAreBertsUnderAnotherNameAreTaken) {
  for (const char* name : {"BertTokenizer", "BertTokenizerFast",
                           "DistilBertTokenizerFast", "ElectraTokenizer"}) {
    Write("tokenizer_config.json", {{"tokenizer_class", name}});
    EXPECT_EQ(Find().unsupported, "");
  }
  // config.json may name the class if tokenizer_config.json names none.
  Write("config.json", {{"tokenizer_class", "BertJapaneseTokenizer"}});
  EXPECT_EQ(Find().unsupported, "");
  Write("tokenizer_config.json", json::object());
  EXPECT_THAT(Find().unsupported, HasSubstr("config.json: tokenizer_class"));
  // Another program's file of that name says nothing.
  directory_.Write("config.json", "not JSON");
  EXPECT_EQ(Find().unsupported, "");
}

// As a snapshot of HuggingFace's cache has them if its links were copied, but
// not their targets.
TEST_F(StatementsTest, ALinkThatLeadsNowhereIsNoAbsentFile) {
  for (const char* name : {"tokenizer_config.json", "tokenizer.json",
                           "added_tokens.json", "special_tokens_map.json"}) {
    const std::string link = directory_.File(name);
    std::filesystem::create_symlink("nowhere", link);
    EXPECT_THAT(Error(), HasSubstr("cannot open " + link));
    std::filesystem::remove(link);
  }
}

TEST_F(StatementsTest, TokenizerJsonBesideVocabTxtIsRead) {
  json contents = Bert();
  contents["normalizer"]["lowercase"] = false;
  contents["normalizer"]["handle_chinese_chars"] = false;
  contents["normalizer"]["clean_text"] = false;
  contents["normalizer"]["strip_accents"] = true;
  contents["model"]["max_input_chars_per_word"] = 9;
  Write("tokenizer.json", contents);
  const TokenizerFiles found = Find();
  EXPECT_EQ(found.vocabulary, directory_.File("vocab.txt"));
  EXPECT_EQ(found.wordpiece,
            (WordPieceOptions{.lower_case = false,
                              .strip_accents = true,
                              .tokenize_chinese_chars = false,
                              .clean_text = false,
                              .max_word_code_points = 9,
                              .added_tokens = {{.id = 5,
                                                .content = "<new>",
                                                .normalized = true,
                                                .outside = true}}}));
  // Its added tokens stand behind the lines of vocab.txt.
  EXPECT_EQ(*ReadVocabulary("wordpiece", found.vocabulary),
            std::string(kPieces) + "<new>\n");
}

TEST_F(StatementsTest, FilesThatContradictEachOtherAreRefused) {
  const std::pair<json, std::string> table[] = {
      {{{"do_lower_case", false}}, "normalizer.lowercase is true"},
      {{{"tokenize_chinese_chars", false}},
       "normalizer.handle_chinese_chars is true"},
      {{{"max_input_chars_per_word", 200}},
       "model.max_input_chars_per_word is 100"},
      {{{"added_tokens_decoder", {{"4", {{"content", "<new>"}}}}}},
       "the id of \"<new>\""},
      {{{"added_tokens_decoder", {{"5", {{"content", "<old>"}}}}}},
       "\"<old>\""},
      {{{"added_tokens_decoder",
         {{"5", {{"content", "<new>"}, {"single_word", true}}}}}},
       "single_word of \"<new>\""},
      {{{"additional_special_tokens", {"<other>"}}},
       "\"<other>\", which is no piece of the vocabulary"},
  };
  Write("tokenizer.json", Bert());
  for (const auto& [config, message] : table) {
    Write("tokenizer_config.json", config);
    EXPECT_THAT(Error(),
                AllOf(HasSubstr("tokenizer_config.json"), HasSubstr(message)));
  }
}

TEST_F(StatementsTest, AnotherVocabularyInTokenizerJsonIsRefused) {
  Write("tokenizer.json", Bert());
  directory_.Write("vocab.txt", "[PAD]\nzebra\n[UNK]\n##b\nb\n");
  EXPECT_THAT(Error(), AllOf(HasSubstr("vocab.txt:4: the piece is \"##b\""),
                             HasSubstr("it is \"##a\"")));
  directory_.Write("vocab.txt", "[PAD]\nzebra\n[UNK]\n##a\n");
  EXPECT_THAT(Error(), HasSubstr("vocab.txt:5: the piece is missing"));
  directory_.Write("vocab.txt", std::string(kPieces) + "<new>\nmore\n");
  EXPECT_THAT(Error(), HasSubstr("vocab.txt:7: the piece is \"more\""));
  json bpe = Bert();
  bpe["model"]["type"] = "BPE";
  Write("tokenizer.json", bpe);
  EXPECT_EQ(Find().type, "huggingface");
}

TEST_F(StatementsTest, AddedTokensAreFoundInEachFile) {
  const AddedToken special = {
      .id = 5, .content = "[ENT0]", .special = true, .outside = true};
  const AddedToken plain = {
      .id = 6, .content = "Foo", .normalized = true, .outside = true};
  const std::string lines = std::string(kPieces) + "[ENT0]\nFoo\n";
  const std::string vocabulary = directory_.File("vocab.txt");
  // transformers 4
  Write("tokenizer_config.json",
        {{"added_tokens_decoder",
          {{"6", {{"content", "Foo"}}},
           {"0", {{"content", "[PAD]"}, {"special", true}}},
           {"5", {{"content", "[ENT0]"}, {"special", true}}}}}});
  EXPECT_THAT(Options().added_tokens, ElementsAre(special, plain));
  EXPECT_EQ(*ReadVocabulary("wordpiece", vocabulary), lines);
  // and before
  std::filesystem::remove(directory_.File("tokenizer_config.json"));
  Write("added_tokens.json", {{"Foo", 6}, {"[ENT0]", 5}});
  Write("special_tokens_map.json",
        {{"additional_special_tokens", {"[ENT0]"}}, {"sep_token", "[SEP]"}});
  EXPECT_THAT(Options().added_tokens, ElementsAre(special, plain));
  EXPECT_EQ(*ReadVocabulary("wordpiece", vocabulary), lines);
  // Pieces of the vocabulary, by name alone
  std::filesystem::remove(directory_.File("added_tokens.json"));
  std::filesystem::remove(directory_.File("special_tokens_map.json"));
  Write("tokenizer_config.json", {{"extra_special_tokens", {"zebra"}}});
  EXPECT_THAT(
      Options().added_tokens,
      ElementsAre(AddedToken{.id = 1, .content = "zebra", .special = true}));
  EXPECT_EQ(*ReadVocabulary("wordpiece", vocabulary), kPieces);
}

// A change of any of these is one of the tokens of a text.
TEST_F(StatementsTest, AllFilesBesideAVocabularyAreKnown) {
  const std::string vocabulary = directory_.File("vocab.txt");
  EXPECT_THAT(FilesBesideVocabulary("wordpiece", vocabulary), IsEmpty());
  std::vector<std::string> files;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json",
                           "special_tokens_map.json", "added_tokens.json"}) {
    files.push_back(directory_.Write(name, "{}"));
    EXPECT_THAT(FilesBesideVocabulary("wordpiece", vocabulary),
                testing::UnorderedElementsAreArray(files));
  }
  // Only the class of the tokenizer is read there.
  directory_.Write("config.json", R"({"model_type": "bert"})");
  EXPECT_THAT(FilesBesideVocabulary("wordpiece", vocabulary),
              testing::UnorderedElementsAreArray(files));
  files.push_back(directory_.Write("config.json",
                                   R"({"tokenizer_class": "BertTokenizer"})"));
  EXPECT_THAT(FilesBesideVocabulary("wordpiece", vocabulary),
              testing::UnorderedElementsAreArray(files));
}

TEST_F(StatementsTest, FilesThatAreNotReadBesideAVocabularyAreNotListed) {
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "added_tokens.json", "merges.txt"}) {
    std::filesystem::create_symlink("nowhere", directory_.File(name));
  }
  const auto listed = [&](const std::string& type, const char* vocabulary) {
    std::vector<std::string> names;
    for (const std::string& path :
         FilesBesideVocabulary(type, directory_.File(vocabulary))) {
      names.push_back(std::filesystem::path(path).filename().string());
    }
    return names;
  };
  EXPECT_THAT(listed("huggingface", "tokenizer.json"), IsEmpty());
  EXPECT_THAT(
      listed("huggingface", "vocab.json"),
      ElementsAre("tokenizer_config.json", "added_tokens.json", "merges.txt"));
  EXPECT_THAT(listed("sentencepiece", "tokenizer.model"),
              ElementsAre("tokenizer_config.json"));
  EXPECT_THAT(listed("dictionary", "dict.txt"), IsEmpty());
  EXPECT_THAT(listed("wordpiece", "bert.json"),
              ElementsAre("tokenizer_config.json", "special_tokens_map.json",
                          "added_tokens.json"));
}

TEST_F(StatementsTest, AddedTokensThatCannotBeAreRefused) {
  const std::pair<json, std::string> table[] = {
      {{{"[ENT0]", 6}}, "has the id 6, but should have"},
      {{{"[ENT0]", 4}}, "has the id 4, which is that of \"b\""},
      {{{"zebra", 5}}, "\"zebra\" has the id 5"},
      {{{"[ENT0]", -1}}, "a whole number from 0"},
      {{{"[ENT0]", std::numeric_limits<uint64_t>::max()}},
       "a whole number from 0 to 2147483647, but is 18446744073709551615"},
      {{{"[ENT0]", "5"}}, "a whole number from 0"},
      {{{"a\nb", 5}}, "has a line break"},
      {{{"a", 5}, {"b2", 5}}, "they should say the same"},
  };
  for (const auto& [tokens, message] : table) {
    Write("added_tokens.json", tokens);
    EXPECT_THAT(Error(),
                AllOf(HasSubstr("added_tokens.json"), HasSubstr(message)));
  }
}

TEST_F(StatementsTest, IdsOfTheDecoderAreWholeNumbersFrom0) {
  for (const char* id : {"-1", "2147483648", "18446744073709551615", "a"}) {
    Write("tokenizer_config.json",
          {{"added_tokens_decoder", {{id, {{"content", "newword"}}}}}});
    EXPECT_THAT(
        Error(),
        AllOf(HasSubstr("tokenizer_config.json: added_tokens_decoder"),
              HasSubstr("whole numbers from 0 to 2147483647"), HasSubstr(id)));
  }
}

TEST_F(StatementsTest, ManyAddedTokensStandBehindTheVocabulary) {
  json tokens = json::object();
  std::string lines = kPieces;
  for (int i = 0; i < 50'000; ++i) {
    const std::string content = absl::StrCat("[ENT", i, "]");
    tokens[content] = 5 + i;
    absl::StrAppend(&lines, content, "\n");
  }
  Write("added_tokens.json", tokens);
  EXPECT_EQ(Options().added_tokens.size(), 50'000u);
  EXPECT_EQ(*ReadVocabulary("wordpiece", directory_.File("vocab.txt")), lines);
}

TEST_F(StatementsTest, AVocabularyWithCapitalsIsCasedUnlessAFileSaysOtherwise) {
  const auto lower_cases = [this](const std::string& lines) {
    directory_.Write("vocab.txt", lines);
    return Options().lower_case;
  };
  EXPECT_TRUE(lower_cases(kPieces));
  EXPECT_THAT(TokenizerWarnings(Find()), IsEmpty());
  // Capitals in pieces that stand for no text do not count.
  EXPECT_TRUE(lower_cases("[PAD]\n[unused0]\n<S>\n[ENT0]\n"));
  // Nor do those that have no lower case, and stay in lower-cased text.
  EXPECT_TRUE(lower_cases(std::string(kPieces) + "\u211D\n##\u211D\n"));
  EXPECT_THAT(TokenizerWarnings(Find()), IsEmpty());
  for (const std::string capital :
       {"Bank", "##A", "\u00c9cole", "\u041c\u043e\u0441\u043a\u0432\u0430"}) {
    EXPECT_FALSE(lower_cases(kPieces + capital + "\n")) << capital;
    EXPECT_THAT(TokenizerWarnings(Find()),
                ElementsAre(AllOf(HasSubstr("vocab.txt has 1 piece with"),
                                  HasSubstr("taken for a cased one"))));
  }
  Write("tokenizer_config.json", {{"do_lower_case", true}});
  EXPECT_TRUE(Options().lower_case);
  EXPECT_THAT(TokenizerWarnings(Find()), IsEmpty());
}

TEST(TokenizerFilesTest, TakesBertsUncasedVocabularyForWhatItIs) {
  ETC_SHARED_DATA_OR_SKIP(const std::string official,
                          "data/vocab/bert-uncased/vocab.txt");
  const auto found = DescribeTokenizer("wordpiece", official);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->wordpiece.lower_case);
  EXPECT_THAT(TokenizerWarnings(*found), IsEmpty());
}

TEST_F(StatementsTest, TheUserDecidesWhatNoFileSays) {
  directory_.Write("vocab.txt", std::string(kPieces) + "Bank\n");
  TokenizerFiles found = Find();
  ASSERT_TRUE(SetCase(true, "tokenizer.lower_case is true", &found).ok());
  EXPECT_TRUE(found.wordpiece.lower_case);
  EXPECT_THAT(TokenizerWarnings(found),
              ElementsAre(HasSubstr("they are never used")));
  ASSERT_TRUE(SetCase(false, "--cased", &found).ok());
  EXPECT_THAT(TokenizerWarnings(found), IsEmpty());

  Write("tokenizer_config.json", {{"do_lower_case", true}});
  found = Find();
  EXPECT_TRUE(SetCase(true, "", &found).ok());
  EXPECT_THAT(SetCase(false, "--cased is given", &found).message(),
              AllOf(HasSubstr("--cased is given, but"),
                    HasSubstr("tokenizer_config.json: do_lower_case is true")));
}

// A named vocabulary takes the place of the one beside the weights.
TEST_F(StatementsTest, AVocabularyTakesWhatOnlyTheFilesOfWeightsState) {
  Write("tokenizer_config.json", {{"do_lower_case", true},
                                  {"strip_accents", false},
                                  {"tokenize_chinese_chars", false},
                                  {"clean_text", false},
                                  {"tokenizer_class", "BertTokenizer"}});
  Write("added_tokens.json", {{"[ENT0]", 5}});
  const TokenizerFiles source = Find();
  TemporaryDirectory other;
  const std::string vocabulary = other.Write("words.txt", "[PAD]\nBank\n");
  const auto completed = [&] {
    TokenizerFiles named = *DescribeTokenizer("wordpiece", vocabulary);
    TakeUnstated(source, &named);
    return named;
  };
  WordPieceOptions expected = source.wordpiece;
  expected.added_tokens.clear();  // their ids are of the other vocabulary
  TokenizerFiles named = completed();
  EXPECT_EQ(named.wordpiece, expected);
  EXPECT_THAT(TokenizerWarnings(named), IsEmpty());
  // The files of the weights count as if they lay beside it.
  EXPECT_THAT(SetCase(false, "--cased is given", &named).message(),
              HasSubstr("tokenizer_config.json: do_lower_case is true"));
  other.Write("tokenizer_config.json",
              R"({"do_lower_case": false, "max_input_chars_per_word": 7})");
  expected.lower_case = false;
  expected.max_word_code_points = 7;
  EXPECT_EQ(completed().wordpiece, expected);
}

// Accents that it does not state follow lower case.
TEST_F(StatementsTest, AVocabularyWithATokenizerJsonTakesNothing) {
  Write("tokenizer_config.json", {{"strip_accents", false}});
  TemporaryDirectory other;
  const std::string named = other.Write("tokenizer.json", Bert().dump());
  const std::string lines = other.Write("vocab.txt", kPieces);
  for (const std::string& vocabulary : {named, lines}) {
    TokenizerFiles tokenizer = *DescribeTokenizer("wordpiece", vocabulary);
    const WordPieceOptions own = tokenizer.wordpiece;
    TakeUnstatedBeside(directory_.path(), &tokenizer);
    EXPECT_EQ(tokenizer.wordpiece, own) << vocabulary;
  }
}

TEST_F(StatementsTest, AVocabularyKeepsWhatItsOwnFilesState) {
  directory_.Write("tokenizer.model", "x");
  Write("tokenizer_config.json", {{"split_punctuation", true}});
  const auto source =
      DescribeTokenizer("sentencepiece", directory_.File("tokenizer.model"));
  ASSERT_TRUE(source.ok()) << source.status();
  TemporaryDirectory other;
  const std::string model = other.Write("other.model", "x");
  TokenizerFiles named = *DescribeTokenizer("sentencepiece", model);
  TakeUnstated(*source, &named);
  EXPECT_TRUE(named.split_punctuation);
  other.Write("tokenizer_config.json", R"({"split_punctuation": false})");
  named = *DescribeTokenizer("sentencepiece", model);
  TakeUnstated(*source, &named);
  EXPECT_FALSE(named.split_punctuation);
}

TEST_F(StatementsTest, ASentencePieceModelHasNoClassOfItsOwn) {
  const std::string model = directory_.Write("other.model", "x");
  Write("tokenizer_config.json", {{"split_punctuation", true}});
  EXPECT_TRUE(DescribeTokenizer("sentencepiece", model)->split_punctuation);
  EXPECT_FALSE(DescribeTokenizer("sentencepiece", model)->wordpiece.lower_case);
  Write("tokenizer_config.json", {{"do_lower_case", true}});
  EXPECT_THAT(DescribeTokenizer("sentencepiece", model).status().message(),
              HasSubstr("do_lower_case is true, but only false is supported"));
  Write("tokenizer_config.json", {{"tokenizer_class", "AlbertTokenizer"}});
  EXPECT_THAT(DescribeTokenizer("sentencepiece", model).status().message(),
              HasSubstr("tokenizer_class is \"AlbertTokenizer\""));
  Write("tokenizer_config.json", {{"tokenizer_class", "RobertaTokenizer"}});
  EXPECT_TRUE(DescribeTokenizer("sentencepiece", model).ok());
  for (const char* const type : {"wordpiece", "huggingface"}) {
    EXPECT_EQ(DescribeTokenizer(type, model).status().message(),
              absl::StrCat(model,
                           " is a SentencePiece model: tokenizer.type should "
                           "be \"sentencepiece\", but is \"",
                           type, "\""));
  }
}

}  // namespace
}  // namespace etc
