// Training of SentencePiece models: ids of the special pieces, the same model
// each time, text from pieces and translations, refusals; and where Multi30k
// lies beside the checkout the vocabulary and the counts of doc/translation.md
// 6, which are SentencePiece 0.1.97's. How SentencePiece chooses pieces is not
// tested.

#include "tasks/translation/sentencepiece_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "tasks/text/sentencepiece_loader.h"
#include "tasks/translation/vocabulary.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string PieceOf(const SentencePieceModel& model, int32_t id) {
  size_t size = 0;
  const char* text = model.Piece(id, &size);
  return {text, size};
}

std::vector<int32_t> IdsOf(const SentencePieceModel& model,
                           const std::string& text) {
  std::vector<int32_t> ids;
  EXPECT_TRUE(model.Encode(
      text.data(), text.size(), &ids,
      [](void* context, const SentencePiece& piece) {
        static_cast<std::vector<int32_t>*>(context)->push_back(piece.id);
      }));
  return ids;
}

class SentencePieceTrainingTest : public testing::Test {
 protected:
  // 16 lines of more than 20 characters.
  static std::string Text() {
    std::string text;
    for (const char* subject : {"the cat", "a dog", "the bird", "a mouse"}) {
      for (const char* verb : {"sees", "hears", "follows", "loves"}) {
        absl::StrAppend(&text, subject, " ", verb, " the house.\n");
      }
    }
    return text;
  }
  std::string WriteText() { return directory_.Write("text", Text()); }

  // Pieces of a line that are unknown to a model of `training`.
  int64_t CountUnknown(const SentencePieceTraining& training,
                       const std::string& line) {
    const auto trained = TrainSentencePiece(training);
    EXPECT_TRUE(trained.ok()) << trained.status();
    const auto model = LoadSentencePieceModel(trained->model, "trained");
    EXPECT_TRUE(model.ok()) << model.status();
    const auto counts =
        CountPieces(**model, directory_.Write("line", line + "\n"));
    EXPECT_TRUE(counts.ok()) << counts.status();
    return counts->unknown;
  }

  std::string MessageOf(const SentencePieceTraining& training) {
    const auto trained = TrainSentencePiece(training);
    EXPECT_EQ(trained.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(trained.status().message());
  }

  TemporaryDirectory directory_;
};

TEST_F(SentencePieceTrainingTest, GivesFairseqsIdsAndTheSameModelTwice) {
  const std::string text = WriteText();
  // The unigram model finds no more pieces than 29.
  for (const auto& [type, size] :
       {std::pair("bpe", 40), std::pair("unigram", 28)}) {
    const SentencePieceTraining training = {
        .files = {text}, .type = type, .vocab_size = size};
    const auto trained = TrainSentencePiece(training);
    ASSERT_TRUE(trained.ok()) << trained.status();
    EXPECT_EQ(trained->lines, 16);
    EXPECT_EQ(trained->model, TrainSentencePiece(training)->model) << type;
    const auto model = LoadSentencePieceModel(trained->model, "trained");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->size(), size);
    EXPECT_THAT((std::vector{PieceOf(**model, 0), PieceOf(**model, 1),
                             PieceOf(**model, 2), PieceOf(**model, 3)}),
                ElementsAre("<s>", "<pad>", "</s>", "<unk>"));
    const std::string sentence = "the mouse hears a bird.";
    const std::vector<int32_t> ids = IdsOf(**model, sentence);
    EXPECT_LT(ids.size(), sentence.size());
    EXPECT_EQ(DecodePieces(**model, ids).value(), sentence);
    const auto counts = CountPieces(**model, text);
    ASSERT_TRUE(counts.ok()) << counts.status();
    EXPECT_EQ(counts->lines, 16);
    EXPECT_EQ(counts->unknown, 0);
    EXPECT_GT(counts->pieces, counts->lines * 4);
    EXPECT_GE(counts->longest * counts->lines, counts->pieces);
  }
}

TEST_F(SentencePieceTrainingTest, HasAMaskThatNoTextIsEncodedAs) {
  for (const auto& [type, size] :
       {std::pair("bpe", 41), std::pair("unigram", 29)}) {
    const auto trained = TrainSentencePiece({.files = {WriteText()},
                                             .type = type,
                                             .vocab_size = size,
                                             .mask = true});
    ASSERT_TRUE(trained.ok()) << trained.status();
    const auto model = LoadSentencePieceModel(trained->model, "trained");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->size(), size);
    EXPECT_EQ(PieceOf(**model, 4), "<mask>");
    EXPECT_THAT(IdsOf(**model, "the <mask> sees"), Not(Contains(4)));
  }
}

TEST_F(SentencePieceTrainingTest, DecodesSpecialPiecesAsNothing) {
  const auto trained =
      TrainSentencePiece({.files = {WriteText()}, .vocab_size = 40});
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto model = LoadSentencePieceModel(trained->model, "trained");
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<int32_t> ids = IdsOf(**model, "a cat");
  ids.insert(ids.begin(), {0, 2, 1});
  ids.push_back(2);
  EXPECT_EQ(DecodePieces(**model, ids).value(), "a cat");
  ids.push_back(3);
  EXPECT_EQ(DecodePieces(**model, ids).value(), "a cat \u2047 ");
  EXPECT_EQ(DecodePieces(**model, {}).value(), "");
  for (const int32_t bad : {-1, 40}) {
    EXPECT_EQ(DecodePieces(**model, {4, bad}).status().message(),
              absl::StrCat("piece ", bad,
                           " should be in [0, 40), the "
                           "vocabulary"));
  }
  EXPECT_EQ(
      CountPieces(**model, directory_.Write("odd", "cat\nx\u00e9\n"))->unknown,
      1);
}

TEST_F(SentencePieceTrainingTest, DecodesTranslations) {
  const auto trained = TrainSentencePiece(
      {.files = {WriteText()}, .vocab_size = 40, .mask = true});
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto vocabulary = LoadTranslationVocabulary(
      {.type = "sentencepiece",
       .vocabulary = directory_.Write("m.model", trained->model)});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  const auto model = LoadSentencePieceModel(trained->model, "trained");
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string mark = "\u2581";
  const int64_t blank = (*model)->Id(mark.data(), mark.size());
  const int64_t letter = (*model)->Id("e", 1);
  ASSERT_NE(blank, 3);
  ASSERT_NE(letter, 3);
  const auto decode = [&](const std::vector<int64_t>& ids) {
    return (*vocabulary)->Decode(ids);
  };
  EXPECT_EQ(decode({0, blank, letter, 2, blank, letter, 1, 40, -1}), "e e");
  EXPECT_EQ(decode({blank, blank, letter, blank}), "e ");
  EXPECT_EQ(decode({3, letter, 3}), " \u2047 e \u2047 ");
  EXPECT_EQ(decode({}), "");
  // <mask> is a control piece.
  EXPECT_EQ(decode({4}), "");
  EXPECT_EQ(decode({4, blank, letter, 4, blank, letter}), "e e");
}

TEST_F(SentencePieceTrainingTest, DecodesBytesToCharacters) {
  const auto module = OpenSentencePieceModule();
  ASSERT_TRUE(module.ok()) << module.status();
  struct Training {
    int64_t left = 100;
    std::string model;
    std::string error;
  } training;
  const SentencePieceTrainingCalls calls = {
      .context = &training,
      .next =
          [](void* context, const char** text, size_t* size) {
            *text = "the cat sees a dog";
            *size = 18;
            return --static_cast<Training*>(context)->left >= 0;
          },
      .receive =
          [](void* context, const char* bytes, size_t size) {
            static_cast<Training*>(context)->model.assign(bytes, size);
          },
      .report =
          [](void* context, const char* message) {
            static_cast<Training*>(context)->error = message;
          }};
  ASSERT_TRUE((*module)->train(
      "model_type=bpe vocab_size=280 bos_id=0 pad_id=1 eos_id=2 unk_id=3 "
      "byte_fallback=true num_threads=1",
      calls))
      << training.error;
  const auto vocabulary = LoadTranslationVocabulary(
      {.type = "sentencepiece",
       .vocabulary = directory_.Write("m.model", training.model)});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_FALSE((*vocabulary)->is_tokenized());
  EXPECT_EQ((*vocabulary)->TextOf("the  cat@@ "), "the  cat@@ ");
  for (const std::string text :
       {"the cat", "\u65e5\u672c", "a caf\u00e9 \u65e5 dog", "\u00e9 a"}) {
    const std::vector<int32_t> ids = (*vocabulary)->Encode(text);
    const std::vector<int64_t> wide(ids.begin(), ids.end());
    EXPECT_EQ((*vocabulary)->Decode(wide), text);
  }
  // A translation is a line of the output.
  const auto model = LoadSentencePieceModel(training.model, "trained");
  ASSERT_TRUE(model.ok()) << model.status();
  const auto byte = [&](const char* piece) -> int64_t {
    return (*model)->Id(piece, 6);
  };
  EXPECT_EQ((*vocabulary)
                ->Decode({byte("<0x41>"), byte("<0x0A>"), byte("<0x42>"),
                          byte("<0x0D>")}),
            "A B ");
}

// One character in more than 3000 is a share of less than 0.0005.
TEST_F(SentencePieceTrainingTest, HasPiecesForTheCoveredCharacters) {
  std::string text = "caf\u00e9\n";
  for (int i = 0; i < 10; ++i) {
    text += Text();
  }
  const std::string path = directory_.Write("rare", text);
  EXPECT_EQ(CountUnknown({.files = {path}, .vocab_size = 30}, "\u00e9"), 0);
  EXPECT_EQ(CountUnknown(
                {.files = {path}, .vocab_size = 30, .character_coverage = 0.98},
                "\u00e9"),
            1);
}

// SentencePiece itself leaves out lines of more than 4192 bytes.
TEST_F(SentencePieceTrainingTest, LearnsFromLinesOfAnyLength) {
  std::string text = Text();
  for (int i = 0; i < 1000; ++i) {
    text += "the zoo ";
  }
  EXPECT_EQ(CountUnknown({.files = {directory_.Write("long", text + "\n")},
                          .vocab_size = 30},
                         "zoo"),
            0);
}

// Text without blanks, such as Chinese, is one word.
TEST_F(SentencePieceTrainingTest, RefusesWordsThatBpeCannotCount) {
  const auto write = [&](int64_t characters) {
    std::string text = Text();
    for (int64_t i = 0; i < characters; ++i) {
      text += i % 2 == 0 ? "\u65e5" : "\u672c";
    }
    return directory_.Write("word", text + "\n");
  };
  EXPECT_THAT(MessageOf({.files = {write(33'500)}, .vocab_size = 40}),
              HasSubstr("word:17: a word for bpe should have at most 32000 "
                        "characters, but one has 33500: split it, or choose "
                        "--type unigram"));
  for (const auto& [type, characters, size] :
       {std::tuple("bpe", 32'000, 40), std::tuple("unigram", 33'500, 30)}) {
    const auto trained = TrainSentencePiece(
        {.files = {write(characters)}, .type = type, .vocab_size = size});
    EXPECT_TRUE(trained.ok()) << type << trained.status();
  }
}

TEST_F(SentencePieceTrainingTest, RefusesWhatGivesNoVocabulary) {
  const std::string text = WriteText();
  EXPECT_THAT(MessageOf({.files = {text}}),
              HasSubstr("no vocabulary of 8000 pieces can be made of 16 lines: "
                        "Vocabulary size too high"));
  EXPECT_THAT(MessageOf({.files = {text}, .vocab_size = 4}),
              HasSubstr("[5, 1000000], but is 4"));
  EXPECT_THAT(MessageOf({.files = {text}, .type = "word"}),
              HasSubstr("\"bpe\" or \"unigram\", but is \"word\""));
  EXPECT_THAT(MessageOf({.files = {text}, .character_coverage = 0.5}),
              HasSubstr("[0.98, 1], but is 0.5"));
  EXPECT_THAT(MessageOf({}), HasSubstr("at least one file"));
  EXPECT_THAT(MessageOf({.files = {directory_.Write("none", "")}}),
              HasSubstr("none: should have lines of text"));
  EXPECT_THAT(MessageOf({.files = {text, directory_.Write("b", "a\n\xFF\n")}}),
              HasSubstr("b:2: should be UTF-8"));
  EXPECT_THAT(MessageOf({.files = {directory_.Write("r", "a\u2585\n")}}),
              HasSubstr("r:1: should not have U+2585"));
  EXPECT_EQ(TrainSentencePiece({.files = {directory_.File("absent")}})
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

TEST_F(SentencePieceTrainingTest, HasTheCountsOfMulti30k) {
  ETC_SHARED_DATA_OR_SKIP(const std::string english, "data/multi30k/train.en");
  ETC_SHARED_DATA_OR_SKIP(const std::string german, "data/multi30k/train.de");
  const auto trained = TrainSentencePiece({.files = {english, german}});
  ASSERT_TRUE(trained.ok()) << trained.status();
  EXPECT_EQ(trained->lines, 58'000);
  const auto model = LoadSentencePieceModel(trained->model, "trained");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->size(), 8000);
  EXPECT_THAT((std::vector{PieceOf(**model, 4), PieceOf(**model, 5),
                           PieceOf(**model, 6), PieceOf(**model, 7)}),
              ElementsAre("in", "▁a", "en", "er"));
  EXPECT_THAT(
      IdsOf(**model, "Two young, White males are outside near many bushes."),
      ElementsAre(161, 216, 7930, 5397, 3960, 131, 457, 574, 1857, 6088, 7916));
  const auto counts_en = CountPieces(**model, english);
  const auto counts_de = CountPieces(**model, german);
  ASSERT_TRUE(counts_en.ok() && counts_de.ok());
  EXPECT_EQ(counts_en->pieces, 443'043);
  EXPECT_EQ(counts_de->pieces, 457'325);
  EXPECT_EQ(counts_en->longest, 49);
  EXPECT_EQ(counts_de->longest, 53);
  EXPECT_EQ(
      CountPieces(**model, SharedDataPath("data/multi30k/test_2016_flickr.de"))
          ->pieces,
      15'298);
  // All pieces, where the golden list is there too.
  const absl::StatusOr<std::string> golden =
      ReadFile(SharedDataPath("golden/translation/spm/bpe8000_0197.vocab"));
  if (golden.ok()) {
    const std::vector<std::string> lines = absl::StrSplit(*golden, '\n');
    for (int32_t id = 0; id < 8000; ++id) {
      const std::vector<std::string> fields = absl::StrSplit(lines[id], '\t');
      ASSERT_EQ(PieceOf(**model, id), fields[0]) << id;
    }
  }
}

}  // namespace
}  // namespace etc
