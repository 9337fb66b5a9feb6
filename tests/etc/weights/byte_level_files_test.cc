// vocab.json with merges.txt, as GPT-2 and older checkpoints of RoBERTa have
// them: the tokenizer.json that they are read as, field by field; the files
// beside them; and each mistake by its file and line. The pieces of texts are
// those of tests/tasks/text/huggingface_tokenizer_test.cc and
// tests/random_pairs.py.
#include "etc/weights/byte_level_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "base/json_text.h"
#include "etc/weights/roberta_vocabulary.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/vocabulary_size.h"
#include "nlohmann/json.hpp"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

constexpr char kMerges[] = "#version: 0.2\nt h\nth e\n\u0120 the\n";

// Bytes from 4 on, behind RoBERTa's first pieces, and the merged pieces.
json RobertaVocabulary() {
  json vocabulary = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}};
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[ByteCharacter(static_cast<uint8_t>(byte))] = 4 + byte;
  }
  for (const char* piece : {"th", "the", "\u0120the", "model", "<mask>"}) {
    vocabulary[piece] = vocabulary.size();
  }
  return vocabulary;
}

class ByteLevelFilesTest : public testing::Test {
 protected:
  void Write(const json& vocabulary, const std::string& merges = kMerges) {
    directory_.Write("vocab.json", vocabulary.dump());
    directory_.Write("merges.txt", merges);
  }
  absl::StatusOr<json> Read() {
    return ReadTokenizerJsonOrByteLevel(directory_.File("vocab.json"));
  }
  absl::Status Error() { return Read().status(); }

  TemporaryDirectory directory_;
};

json Contents(const json& added_tokens) {
  json contents = json::array();
  for (const json& token : added_tokens) {
    contents.push_back(token["content"]);
  }
  return contents;
}

TEST_F(ByteLevelFilesTest, AreRobertasTokenizerJson) {
  Write(RobertaVocabulary());
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)["model"]["type"], "BPE");
  EXPECT_EQ((*read)["model"]["vocab"], RobertaVocabulary());
  EXPECT_EQ((*read)["model"]["merges"],
            json::parse(R"([["t", "h"], ["th", "e"], ["\u0120", "the"]])"));
  EXPECT_EQ((*read)["pre_tokenizer"]["type"], "ByteLevel");
  EXPECT_EQ((*read)["pre_tokenizer"]["add_prefix_space"], false);
  EXPECT_EQ((*read)["post_processor"]["type"], "RobertaProcessing");
  EXPECT_EQ((*read)["post_processor"]["sep"], json::parse(R"(["</s>", 2])"));
  EXPECT_EQ((*read)["post_processor"]["cls"], json::parse(R"(["<s>", 0])"));
  EXPECT_EQ(Contents((*read)["added_tokens"]),
            json::parse(R"(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])"));
  EXPECT_EQ((*read)["added_tokens"][4]["lstrip"], true);
  EXPECT_EQ((*read)["added_tokens"][4]["id"], 264);
  EXPECT_EQ((*read)["added_tokens"][0]["lstrip"], false);
}

TEST_F(ByteLevelFilesTest, OfGpt2HaveNoPiecesAroundTexts) {
  json vocabulary = RobertaVocabulary();
  for (const char* piece : {"<s>", "<pad>", "</s>", "<unk>", "<mask>"}) {
    vocabulary.erase(piece);
  }
  vocabulary["<|endoftext|>"] = 0;
  // Without a first line, with CRLF and empty lines at the end.
  Write(vocabulary, "t h\r\nth e\r\n\n\n");
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)["model"]["merges"].size(), 2u);
  EXPECT_EQ((*read)["post_processor"], nullptr);
  EXPECT_EQ(Contents((*read)["added_tokens"]),
            json::parse(R"(["<|endoftext|>"])"));
}

TEST_F(ByteLevelFilesTest, ObeyTheFilesBesideThem) {
  Write(RobertaVocabulary());
  directory_.Write("tokenizer_config.json", R"({
      "tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": true,
      "added_tokens_decoder": {
          "264": {"content": "<mask>", "lstrip": false, "special": true},
          "265": {"content": "<new>", "rstrip": true}}})");
  directory_.Write("added_tokens.json", R"({"<newer>": 266, "<new>": 265})");
  auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)["pre_tokenizer"]["add_prefix_space"], true);
  const json& added = (*read)["added_tokens"];
  EXPECT_EQ(Contents(added), json::parse(R"(["<s>", "<pad>", "</s>", "<unk>",
      "<mask>", "<new>", "<newer>"])"));
  EXPECT_EQ(added[4]["lstrip"], false);
  EXPECT_EQ(added[5]["rstrip"], true);
  EXPECT_EQ(added[6]["id"], 266);

  const std::pair<const char*, const char*> mistakes[] = {
      {"added_tokens.json", R"({"<newer>": "266"})"},
      {"added_tokens.json", R"({"<newer>": 18446744073709551615})"},
      {"added_tokens.json", "[]"},
      {"tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})"},
      {"tokenizer_config.json", R"({"add_prefix_space": 1})"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": []})"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"a":
          {"content": "b"}}})"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"-1":
          {"content": "b"}}})"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"265":
          {"content": "b", "lstrip": "yes"}}})"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {
          "265": {"content": "b"}, "266": {"content": "b"}}})"}};
  for (const auto& [file, contents] : mistakes) {
    directory_.Write("added_tokens.json", "{}");
    directory_.Write("tokenizer_config.json", "{}");
    directory_.Write(file, contents);
    EXPECT_THAT(Error().message(), HasSubstr(directory_.File(file)))
        << contents;
  }
  directory_.Write("tokenizer_config.json", R"({"tokenizer_class": null})");
  EXPECT_TRUE(Read().ok()) << Error();
}

TEST_F(ByteLevelFilesTest, NameTheLineOfAMistake) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"#version: 0.2\nt h\nth x\n",
       "merges.txt:3 merges \"th\" and \"x\", but \"thx\" is no piece of "},
      {"t h\nthh e\n", "merges.txt:2 merges \"thh\" and \"e\", but \"thh\" is"},
      {"t h e\n", "merges.txt:1: a merge should be two pieces with a space "},
      {"t h\n\nth e\n", "merges.txt:2: a merge should be two pieces"},
      {"th\n", "merges.txt:1: a merge should be two pieces"}};
  for (const auto& [merges, message] : mistakes) {
    Write(RobertaVocabulary(), merges);
    EXPECT_EQ(Error().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Error().message(), HasSubstr(message));
  }
  json vocabulary = RobertaVocabulary();
  vocabulary["th"] = -1;
  Write(vocabulary);
  EXPECT_THAT(Error().message(),
              AllOf(HasSubstr("vocab.json"), HasSubstr("\"th\""),
                    HasSubstr("whole number from 0 to 2147483647, but is "
                              "-1")));
  Write(json::array());
  EXPECT_THAT(Error().message(), HasSubstr("should be an object of pieces"));
}

TEST_F(ByteLevelFilesTest, RefuseOtherKinds) {
  json vocabulary = RobertaVocabulary();
  vocabulary.erase("A");
  Write(vocabulary);
  EXPECT_EQ(Error().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Error().message(), HasSubstr("none for byte 65 (\"A\")"));
  vocabulary = RobertaVocabulary();
  vocabulary["a</w>"] = vocabulary.size();
  Write(vocabulary);
  EXPECT_EQ(Error().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Error().message(), HasSubstr("ends of words"));
}

TEST_F(ByteLevelFilesTest, AreFoundByDirectoryAndName) {
  const std::string path =
      directory_.Write("vocab.json", RobertaVocabulary().dump());
  directory_.Write("merges.txt", kMerges);
  for (const std::string& named : {directory_.path(), path}) {
    const auto found = DescribeTokenizerAt(named);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->type, "huggingface");
    EXPECT_EQ(found->vocabulary, path);
    EXPECT_EQ(*CountPieces(*found), 265);
    const auto contents = ReadVocabulary(found->type, path);
    ASSERT_TRUE(contents.ok()) << contents.status();
    EXPECT_EQ(json::parse(*contents), *Read());
    // Checkpoints have it as a tokenizer.json.
    TemporaryDirectory written;
    ASSERT_TRUE(WriteTokenizer(*found, *contents, written.path()).ok());
    EXPECT_THAT(FindTokenizer(written.path())->vocabulary,
                EndsWith("tokenizer.json"));
  }
  EXPECT_THAT(FilesBesideVocabulary("huggingface", path),
              ElementsAre(directory_.File("merges.txt")));
  EXPECT_THAT(
      DescribeTokenizerAt(directory_.File("merges.txt")).status().message(),
      HasSubstr("merges of a vocab.json"));
  // A tokenizer.json says more.
  directory_.Write("tokenizer.json", JsonText(*Read()));
  EXPECT_THAT(FindTokenizer(directory_.path())->vocabulary,
              EndsWith("tokenizer.json"));
}

TEST_F(ByteLevelFilesTest, MayHaveAPrefix) {
  const std::string path =
      directory_.Write("roberta-base-vocab.json", RobertaVocabulary().dump());
  EXPECT_THAT(DescribeTokenizerAt(path).status().message(),
              HasSubstr("roberta-base-merges.txt, but there is no such file"));
  directory_.Write("roberta-base-merges.txt", kMerges);
  const auto found = DescribeTokenizerAt(path);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->type, "huggingface");
  EXPECT_EQ(MergesOf("a/vocab.txt"), "");
}

TEST_F(ByteLevelFilesTest, ALinkThatLeadsNowhereIsNoAbsentFile) {
  directory_.Write("vocab.json", RobertaVocabulary().dump());
  const std::string merges = directory_.File("merges.txt");
  std::filesystem::create_symlink("nowhere", merges);
  EXPECT_THAT(Error().message(), HasSubstr("cannot open " + merges));
}

TEST_F(ByteLevelFilesTest, AreBothNeeded) {
  directory_.Write("vocab.json", RobertaVocabulary().dump());
  EXPECT_THAT(FindTokenizer(directory_.path())->unsupported,
              HasSubstr("vocab.json should have merges.txt beside it"));
  EXPECT_THAT(DescribeTokenizerAt(directory_.path()).status().message(),
              HasSubstr("vocab.json should have merges.txt beside it"));
  TemporaryDirectory other;
  other.Write("merges.txt", kMerges);
  EXPECT_THAT(FindTokenizer(other.path())->unsupported,
              HasSubstr("merges.txt should have vocab.json beside it"));
}

}  // namespace
}  // namespace etc
