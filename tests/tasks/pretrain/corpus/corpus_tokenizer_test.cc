// Properties of a vocabulary that pre-training uses: pieces that continue a
// word, the special pieces, and the settings by which stores and runs are
// compared. Vocabularies of a few pieces; the real ones where they are at hand.

#include "tasks/pretrain/corpus/corpus_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/sha256.h"
#include "etc/weights/roberta_vocabulary.h"
#include "etc/weights/tokenizer_files.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/huggingface_tokenizer.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/text/sentencepiece_tokenizer.h"
#include "tasks/text/wordpiece_tokenizer.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/tiny_sentencepiece_model.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Sha256Of(const std::string& bytes) {
  Sha256 digest;
  digest.Update(bytes);
  return digest.HexDigest();
}

class CorpusTokenizerTest : public testing::Test {
 protected:
  static absl::StatusOr<CorpusTokenizer> WordPiece(
      const std::string& vocabulary, bool lower_case = true) {
    return MakeCorpusTokenizer(
        {.vocabulary = "vocab.txt"},
        *ParseWordPieceTokenizer(vocabulary, "vocab.txt",
                                 {.lower_case = lower_case}));
  }

  absl::StatusOr<CorpusTokenizer> SentencePiece(
      const std::vector<std::pair<std::string, float>>& pieces,
      bool split_punctuation, const std::string& mask_piece = "") {
    const TokenizerConfig config = {
        .type = "sentencepiece",
        .vocabulary = directory_.Write("tiny.model",
                                       TinySentencePieceModel(pieces).bytes()),
        .split_punctuation = split_punctuation};
    return MakeCorpusTokenizer(
        config,
        *LoadSentencePieceTokenizer(config.vocabulary,
                                    {.split_punctuation = split_punctuation}),
        mask_piece);
  }

  TemporaryDirectory directory_;
};

TEST_F(CorpusTokenizerTest, KnowsThePiecesOfWordPiece) {
  const std::string vocabulary =
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ncat\n##s\n#\n##\n";
  const auto made = WordPiece(vocabulary);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->is_continuation, ElementsAre(0, 0, 0, 0, 0, 0, 1, 0, 1));
  const TokenStoreSettings& settings = made->settings;
  EXPECT_EQ(settings.tokenizer_kind, TokenizerKind::kWordPiece);
  EXPECT_EQ(settings.vocab_size, 9);
  EXPECT_EQ(settings.unknown_id, 1);
  EXPECT_EQ(settings.cls_id, 2);
  EXPECT_EQ(settings.sep_id, 3);
  EXPECT_EQ(settings.mask_id, 4);
  EXPECT_TRUE(settings.lower_case);
  EXPECT_EQ(settings.vocabulary_sha256, Sha256Of(vocabulary));

  // Line ends are none of the vocabulary; case is.
  const auto windows = WordPiece(
      "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\ncat\r\n##s\r\n#"
      "\r\n##");
  EXPECT_EQ(windows->settings, settings);
  const auto cased = WordPiece(vocabulary, /*lower_case=*/false);
  EXPECT_NE(cased->settings, settings);
}

TEST_F(CorpusTokenizerTest, KnowsHowItsVocabularyIsUsed) {
  const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ncat\n";
  const auto settings = [&](const WordPieceOptions& options) {
    return MakeCorpusTokenizer(
               {.vocabulary = "vocab.txt"},
               *ParseWordPieceTokenizer(vocabulary, "vocab.txt", options))
        ->settings;
  };
  const TokenStoreSettings plain = settings({});
  EXPECT_EQ(plain.wordpiece_options, "");
  EXPECT_EQ(settings({.strip_accents = true}), plain);
  for (const WordPieceOptions& options :
       {WordPieceOptions{.strip_accents = false},
        WordPieceOptions{.tokenize_chinese_chars = false},
        WordPieceOptions{.max_word_code_points = 100},
        WordPieceOptions{.added_tokens = {{.id = 5, .content = "cat"}}}}) {
    const TokenStoreSettings other = settings(options);
    EXPECT_THAT(CheckSameTokenizer(other, plain, "a.tokens", "v.txt").message(),
                HasSubstr("its wordpiece_options is"));
    const auto read =
        ParseTokenStoreSettings(TokenStoreSettingsToJson(other), "a.tokens");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, other);
  }
}

TEST_F(CorpusTokenizerTest, KnowsThePiecesOfSentencePiece) {
  const auto made = SentencePiece({{"▁the", -2.0F},
                                   {",", -3.0F},
                                   {"s▁", -3.0F},
                                   {"▁", -3.0F},
                                   {"<mask>", -9.0F}},
                                  /*split_punctuation=*/false);
  ASSERT_TRUE(made.ok()) << made.status();
  // <unk>, <s> and </s> come first.
  EXPECT_THAT(made->is_continuation, ElementsAre(1, 1, 1, 0, 1, 1, 0, 1));
  EXPECT_EQ(made->settings.tokenizer_kind, TokenizerKind::kSentencePiece);
  EXPECT_EQ(made->settings.unknown_id, 0);
  EXPECT_EQ(made->settings.cls_id, -1);
  EXPECT_EQ(made->settings.mask_id, 7);
  EXPECT_EQ(made->settings.vocabulary_sha256,
            Sha256Of(*ReadFile(directory_.File("tiny.model"))));

  const auto split = SentencePiece({{"▁the", -2.0F}, {"[MASK]", -9.0F}},
                                   /*split_punctuation=*/true);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_TRUE(split->settings.split_punctuation);
}

// A vocab.json is used with its merges and options, as the tokenizer.json that
// a checkpoint has in its place.
TEST_F(CorpusTokenizerTest, KnowsAllFilesOfAByteLevelVocabulary) {
  nlohmann::json pieces = {
      {"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}, {"<mask>", 4}};
  for (int byte = 0; byte < 256; ++byte) {
    pieces[ByteCharacter(static_cast<uint8_t>(byte))] = 5 + byte;
  }
  pieces["th"] = pieces.size();
  pieces["he"] = pieces.size();
  const std::string vocabulary = directory_.Write("vocab.json", pieces.dump());
  directory_.Write("merges.txt", "t h\nh e\n");
  const auto settings_of = [](const std::string& path) {
    auto tokenizer = LoadHuggingFaceTokenizer(path);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return MakeCorpusTokenizer({.type = "huggingface", .vocabulary = path},
                               *std::move(tokenizer))
        ->settings;
  };
  const TokenStoreSettings settings = settings_of(vocabulary);

  TemporaryDirectory checkpoint;
  ASSERT_TRUE(WriteTokenizer({.type = "huggingface"},
                             *ReadVocabulary("huggingface", vocabulary),
                             checkpoint.path())
                  .ok());
  EXPECT_EQ(settings_of(checkpoint.File("tokenizer.json")), settings);

  directory_.Write("merges.txt", "h e\nt h\n");
  EXPECT_NE(settings_of(vocabulary), settings);
  directory_.Write("merges.txt", "t h\nh e\n");
  EXPECT_EQ(settings_of(vocabulary), settings);
  directory_.Write("tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_NE(settings_of(vocabulary), settings);
}

TEST_F(CorpusTokenizerTest, RefusesAVocabularyWithoutMask) {
  absl::Status status = WordPiece("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("vocab.txt: the vocabulary (5 pieces) should "
                              "have \"[MASK]\""),
                    HasSubstr("--mask-piece names another")));

  status = SentencePiece({{"▁a", -2.0F}, {"<unused>", -9.0F}}, false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("should have \"[MASK]\" or \"<mask>\""));
  const auto named =
      SentencePiece({{"▁a", -2.0F}, {"<unused>", -9.0F}}, false, "<unused>");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->settings.mask_id, 4);
}

// model.md 9.4; `sha256sum` of the published vocab.txt.
TEST_F(CorpusTokenizerTest, KnowsTheVocabularyOfBert) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "data/vocab/bert-uncased/vocab.txt");
  const auto made =
      MakeCorpusTokenizer({.vocabulary = path}, *LoadTokenizer(path));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->settings.vocab_size, 30522);
  EXPECT_EQ(made->settings.unknown_id, 100);
  EXPECT_EQ(made->settings.cls_id, 101);
  EXPECT_EQ(made->settings.sep_id, 102);
  EXPECT_EQ(made->settings.mask_id, 103);
  EXPECT_EQ(made->settings.vocabulary_sha256, Sha256Of(*ReadFile(path)));
}

}  // namespace
}  // namespace etc
