// The SentencePiece tokenizer (doc/model.md 9.4, doc/formats.md 4.7): ids and
// byte ranges, the digit-comma rule, words encoded on their own, and what
// happens without a model, with one that leads the library out of its memory,
// or without the module. Most of it on a model of a few pieces made here; the
// ids of a real one are those that SentencePiece 0.1.97's spm_encode gives.
// SentencePiece's own segmentation is not tested.
#include "tasks/text/sentencepiece_tokenizer.h"

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/tiny_sentencepiece_model.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SentencePieceTokenizerTest : public testing::Test {
 protected:
  std::unique_ptr<Tokenizer> Load(const SentencePieceOptions& options = {}) {
    const TinySentencePieceModel model({{"▁", -4.0F},     // 3
                                        {"▁the", -2.0F},  // 4
                                        {"▁men", -2.0F},
                                        {"▁12", -3.0F},
                                        {"▁12,", -2.5F},
                                        {"12,", -2.6F},
                                        {"12", -3.1F},
                                        {"a", -3.0F},
                                        {"▁a", -2.9F},
                                        {",", -3.0F},
                                        {"²,", -2.5F},
                                        {"²", -3.0F},
                                        {"don", -3.0F},
                                        {"'", -3.0F},
                                        {"t", -3.0F},
                                        {"Ü", -3.0F}});
    absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
        LoadSentencePieceTokenizer(
            directory_.Write("tiny.model", model.bytes()), options);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return *std::move(tokenizer);
  }

  TemporaryDirectory directory_;
};

// "piece@begin-end" for each piece.
std::vector<std::string> Show(const Tokenizer& tokenizer,
                              absl::string_view text) {
  std::vector<std::string> shown;
  for (const Token& piece : tokenizer.Encode(text)) {
    shown.push_back(absl::StrCat(tokenizer.Piece(piece.id), "@", piece.begin,
                                 "-", piece.end));
  }
  return shown;
}

TEST_F(SentencePieceTokenizerTest, GivesPiecesWithTheirBytes) {
  const auto tokenizer = Load();
  EXPECT_THAT(Show(*tokenizer, "the men"), ElementsAre("▁the@0-3", "▁men@3-7"));
  // A run of spaces is one mark; the first mark stands for nothing.
  EXPECT_THAT(Show(*tokenizer, "  the   men "),
              ElementsAre("▁the@2-5", "▁men@5-11"));
  EXPECT_THAT(Show(*tokenizer, "Ü日Üa"),
              ElementsAre("▁@0-0", "Ü@0-2", "<unk>@2-5", "Ü@5-7", "a@7-8"));
  EXPECT_THAT(tokenizer->Encode(""), IsEmpty());
}

TEST_F(SentencePieceTokenizerTest, NamesItsPieces) {
  const auto tokenizer = Load();
  EXPECT_EQ(tokenizer->vocab_size(), 19);
  EXPECT_EQ(tokenizer->Id("▁the"), 4);
  EXPECT_EQ(tokenizer->Id("<unk>"), 0);
  EXPECT_EQ(tokenizer->Id("</s>"), 2);
  EXPECT_EQ(tokenizer->Id("the"), -1);
  EXPECT_EQ(tokenizer->Id(""), -1);
  EXPECT_EQ(tokenizer->Piece(4), "▁the");
  EXPECT_THROW(tokenizer->Piece(19), std::out_of_range);
  EXPECT_THROW(tokenizer->Piece(-1), std::out_of_range);
  EXPECT_FALSE(tokenizer->lower_cases());
}

TEST_F(SentencePieceTokenizerTest, TakesDigitsAndCommaApart) {
  const auto tokenizer = Load();
  EXPECT_THAT(Show(*tokenizer, "the 12, men"),
              ElementsAre("▁the@0-3", "▁12@3-6", ",@6-7", "▁men@7-11"));
  // Not without a digit.
  EXPECT_THAT(Show(*tokenizer, "a,"), ElementsAre("▁a@0-1", ",@1-2"));
}

TEST_F(SentencePieceTokenizerTest, KeepsTheNewMarkWithinAWordAsTheOriginal) {
  // "12," has no mark; encoding "12" anew brings one (doc/wikihop.md 2.2).
  const auto tokenizer = Load();
  EXPECT_THAT(Show(*tokenizer, "a12,"),
              ElementsAre("▁a@0-1", "▁12@1-3", ",@3-4"));
  // "²" is a digit for Python; its mark is a piece of its own.
  EXPECT_THAT(Show(*tokenizer, "a²,"),
              ElementsAre("▁a@0-1", "▁@1-1", "²@1-3", ",@3-4"));
}

TEST_F(SentencePieceTokenizerTest, EncodesWordsOnTheirOwnOnDemand) {
  const auto whole = Load();
  EXPECT_THAT(Show(*whole, "don't Üa"),
              ElementsAre("▁@0-0", "don@0-3", "'@3-4", "t@4-5", "▁@5-6",
                          "Ü@6-8", "a@8-9"));
  // Each word gets a mark of its own; case and accents stay.
  const auto words = Load({.split_punctuation = true});
  EXPECT_THAT(Show(*words, "don't Üa"),
              ElementsAre("▁@0-0", "don@0-3", "▁@3-3", "'@3-4", "▁@4-4",
                          "t@4-5", "▁@6-6", "Ü@6-8", "a@8-9"));
  // Punctuation stands alone, so the digit-comma rule has nothing to do.
  EXPECT_THAT(Show(*words, "a12,"),
              ElementsAre("▁a@0-1", "12@1-3", "▁@3-3", ",@3-4"));
  EXPECT_THAT(words->Encode(" \u200B\xFF "), IsEmpty());
}

TEST_F(SentencePieceTokenizerTest, DropsIllFormedBytes) {
  const auto tokenizer = Load();
  EXPECT_THAT(Show(*tokenizer,
                   "\xFFthe\xE2\x82 m\xFF"
                   "en\xC0"),
              ElementsAre("▁the@1-4", "▁men@6-11"));
  EXPECT_THAT(tokenizer->Encode("\xFF\xFE"), IsEmpty());
}

TEST_F(SentencePieceTokenizerTest, KeepsItsPromisesOnAnyBytes) {
  const std::vector<std::string> parts = {"the ",
                                          "12,",
                                          "²,",
                                          " ",
                                          "Ü",
                                          "日",
                                          "\xFF",
                                          "a",
                                          "▁",
                                          "don't",
                                          std::string(1, '\0'),
                                          "\xE2\x82",
                                          "\r\n",
                                          "\u00A0",
                                          "e\u0301",
                                          "😀"};
  for (const bool split_punctuation : {false, true}) {
    const auto tokenizer = Load({.split_punctuation = split_punctuation});
    std::mt19937 random(3);
    for (int trial = 0; trial < 5000; ++trial) {
      std::string text;
      for (size_t i = random() % 10; i > 0; --i) {
        text += parts[random() % parts.size()];
      }
      int64_t previous = 0;
      for (const Token& piece : tokenizer->Encode(text)) {
        ASSERT_GE(piece.id, 0);
        ASSERT_LT(piece.id, tokenizer->vocab_size());
        ASSERT_GE(piece.begin, previous) << text;
        ASSERT_GE(piece.end, piece.begin) << text;
        ASSERT_LE(piece.end, static_cast<int64_t>(text.size())) << text;
        previous = piece.begin;
      }
    }
  }
}

TEST_F(SentencePieceTokenizerTest, IsSharedByThreads) {
  const auto tokenizer = Load();
  const std::vector<std::string> expected =
      Show(*tokenizer, "the 12, men a12,");
  std::vector<std::vector<std::string>> shown(4);
  std::vector<std::thread> threads;
  for (auto& of_thread : shown) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        of_thread = Show(*tokenizer, "the 12, men a12,");
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(shown, testing::Each(expected));
}

TEST_F(SentencePieceTokenizerTest, RefusesWhatIsNoModel) {
  EXPECT_EQ(
      LoadSentencePieceTokenizer(directory_.File("none.model")).status().code(),
      absl::StatusCode::kNotFound);
  const std::string whole =
      TinySentencePieceModel({{"▁a", -1.0F}, {"b", -1.0F}}).bytes();
  for (const std::string& bytes :
       {std::string(), std::string("no model at all"),
        whole.substr(0, whole.size() / 2), std::string(100, '\xFF')}) {
    const std::string path = directory_.Write("broken.model", bytes);
    const auto tokenizer = LoadSentencePieceTokenizer(path);
    EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(tokenizer.status().message()),
                AllOf(HasSubstr(absl::StrCat(
                          path,
                          ": should be a SentencePiece model, but is "
                          "none")),
                      Not(HasSubstr(".cc("))));
  }
}

// The library follows these without a look at where they lead: the first ones
// end it, or its tokens have what its memory holds.
TEST_F(SentencePieceTokenizerTest, RefusesModelsThatLeadOutOfTheMemory) {
  const auto load = [this](const TinySentencePieceModel& model) {
    return LoadSentencePieceTokenizer(
        directory_.Write("odd.model", model.bytes()));
  };
  const std::vector<std::pair<std::string, float>> pieces = {
      {"▁", -1.0F}, {"a", -2.0F}, {"x", -2.0F}};
  const auto fine = load(TinySentencePieceModel(pieces, TinyCharsmap({})));
  ASSERT_TRUE(fine.ok()) << fine.status();
  EXPECT_THAT(Show(**fine, "a"), ElementsAre("▁@0-0", "x@0-1"));
  for (const TinyCharsmapOptions& options :
       {TinyCharsmapOptions{.root = 0x3FFF00},
        TinyCharsmapOptions{.value = 0x7FFFFF00},
        TinyCharsmapOptions{.replacements = "no end"},
        TinyCharsmapOptions{.leaf = 256}}) {
    const absl::Status status =
        load(TinySentencePieceModel(pieces, TinyCharsmap(options))).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("odd.model: should be a SentencePiece model"),
                      HasSubstr("normalizer_spec.precompiled_charsmap should "
                                "have a trie")));
  }
  std::vector<std::pair<std::string, float>> defined = {{"▁", -1.0F}};
  while (defined.size() < 65) {
    defined.emplace_back(std::string(defined.size(), 'a'), 0.0F);
  }
  defined.emplace_back(std::string(63, 'a') + 'b', 0.0F);
  const auto load_defined = [&] {
    return load(TinySentencePieceModel(defined, /*charsmap=*/"",
                                       TinySentencePieceModel::kUserDefined))
        .status();
  };
  EXPECT_TRUE(load_defined().ok()) << load_defined();
  defined.emplace_back(std::string(65, 'a'), 0.0F);
  EXPECT_THAT(std::string(load_defined().message()),
              HasSubstr("at most 64 pieces that users defined should begin "
                        "with one another, but 65 do"));
}

TEST_F(SentencePieceTokenizerTest, RefusesPiecesOfManyKilobytes) {
  const std::string model = directory_.Write(
      "long.model",
      TinySentencePieceModel({{std::string(4097, 'a'), -1.0F}}).bytes());
  const absl::Status status = LoadSentencePieceTokenizer(model).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            absl::StrCat(model,
                         ": pieces: a piece may have 4096 bytes, but "
                         "this one has 4097"));
}

TEST_F(SentencePieceTokenizerTest, SaysThatTheModuleIsAbsentOrAnother) {
  const std::string model = directory_.Write(
      "tiny.model", TinySentencePieceModel({{"a", -1.0F}}).bytes());
  const std::string absent = directory_.File("absent.so");
  auto tokenizer = LoadSentencePieceTokenizer(model, {.module_path = absent});
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(absent));
  tokenizer = LoadSentencePieceTokenizer(
      model, {.module_path = directory_.Write("text.so", "not a library")});
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr("text.so"));
  tokenizer = LoadSentencePieceTokenizer(model, {.module_path = "libm.so.6"});
  EXPECT_THAT(std::string(tokenizer.status().message()),
              HasSubstr("libm.so.6: is no module of RealETC"));
}

TEST(RealSentencePieceModelTest, HasItsIds) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "data/vocab/sentencepiece/albert_spiece.model");
  const auto loaded = LoadSentencePieceTokenizer(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Tokenizer& tokenizer = **loaded;
  EXPECT_EQ(tokenizer.vocab_size(), 30000);
  EXPECT_EQ(tokenizer.Id("<pad>"), 0);
  EXPECT_EQ(tokenizer.Id("[CLS]"), 2);
  EXPECT_EQ(tokenizer.Id("[MASK]"), 4);
  // Whole pieces "▁1999," and "▁12,000": the first is taken apart.
  EXPECT_THAT(Show(tokenizer, "in 1999, 12,000 men"),
              ElementsAre("▁in@0-2", "▁1999@2-7", ",@7-8", "▁12,000@8-15",
                          "▁men@15-19"));
  // The normalizer makes "1999," of full-width digits: all parts have the
  // whole range.
  EXPECT_THAT(Show(tokenizer, "in １９９９，"),
              ElementsAre("▁in@0-2", "▁1999@2-18", ",@2-18"));
}

}  // namespace
}  // namespace etc
