// The WordPiece tokenizer against doc/formats.md 4.1 to 4.4 and doc/model.md 9:
// pieces, ids and byte ranges on small vocabularies made here, a table of
// malformed vocabularies, the ids that BERT's real vocabulary must have, and
// the promises about ranges on 20,000 mutated texts with a fixed seed.
#include "tasks/text/wordpiece_tokenizer.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/text/piece_trie.h"
#include "tests/support/shared_data.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kSpecial[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";

std::unique_ptr<Tokenizer> MakeTokenizer(const std::string& pieces,
                                         const WordPieceOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      ParseWordPieceTokenizer(kSpecial + pieces, "vocab.txt", options);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

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

std::vector<std::string> Pieces(const Tokenizer& tokenizer,
                                absl::string_view text) {
  std::vector<std::string> pieces;
  for (const Token& piece : tokenizer.Encode(text)) {
    pieces.push_back(tokenizer.Piece(piece.id));
  }
  return pieces;
}

// --- Added tokens
// -------------------------------------------------------------

// Ids from 4, behind the special pieces.
AddedToken Added(int64_t id, const std::string& content) {
  AddedToken token;
  token.id = id;
  token.content = content;
  return token;
}

TEST(AddedTokensTest, AreWholeWhereverTheyStand) {
  const auto tokenizer = MakeTokenizer("[ENT0]\n[ENT1]\na\n##b\n",
                                       {.added_tokens = {Added(4, "[ENT0]")}});
  EXPECT_THAT(Show(*tokenizer, "[ENT0] a[ENT0]Ab[ENT0]"),
              ElementsAre("[ENT0]@0-6", "a@7-8", "[ENT0]@8-14", "a@14-15",
                          "##b@15-16", "[ENT0]@16-22"));
  // One that was not added is text, as are the special pieces.
  EXPECT_THAT(Pieces(*tokenizer, "[ENT1]"),
              ElementsAre("[UNK]", "[UNK]", "[UNK]"));
  EXPECT_THAT(Pieces(*tokenizer, "[ent0]"),
              ElementsAre("[UNK]", "[UNK]", "[UNK]"));
  EXPECT_THAT(Pieces(*tokenizer, "[SEP]"),
              ElementsAre("[UNK]", "[UNK]", "[UNK]"));
}

TEST(AddedTokensTest, LongestOfSeveralWins) {
  const auto tokenizer =
      MakeTokenizer("<a>\n<a><b>\nc\n",
                    {.added_tokens = {Added(4, "<a>"), Added(5, "<a><b>")}});
  EXPECT_THAT(Show(*tokenizer, "<a><b><a>c"),
              ElementsAre("<a><b>@0-6", "<a>@6-9", "c@9-10"));
}

TEST(AddedTokensTest, SingleWordsAreTextWithinWords) {
  AddedToken word = Added(4, "foo");
  word.single_word = true;
  const auto tokenizer =
      MakeTokenizer("foo\nx\n##foo\n##x\n", {.added_tokens = {word}});
  EXPECT_THAT(Show(*tokenizer, "foo,foo"),
              ElementsAre("foo@0-3", "[UNK]@3-4", "foo@4-7"));
  EXPECT_THAT(Show(*tokenizer, "xfoo"), ElementsAre("x@0-1", "##foo@1-4"));
  EXPECT_THAT(
      Show(*tokenizer, "foox foo_ éfoo"),
      ElementsAre("foo@0-3", "##x@3-4", "foo@5-8", "[UNK]@8-9", "[UNK]@10-15"));
}

TEST(AddedTokensTest, OutsideOfTheVocabularyTheyAreNoPiecesOfWords) {
  AddedToken word = Added(4, "foo");
  word.single_word = true;
  const std::string pieces = "foo\nf\n##o\n##x\n";
  const auto within = MakeTokenizer(pieces, {.added_tokens = {word}});
  EXPECT_THAT(Pieces(*within, "foo foox FOO"),
              ElementsAre("foo", "foo", "##x", "foo"));
  word.outside = true;
  const auto outside = MakeTokenizer(pieces, {.added_tokens = {word}});
  EXPECT_THAT(Pieces(*outside, "foo foox FOO"),
              ElementsAre("foo", "f", "##o", "##o", "##x", "f", "##o", "##o"));
  EXPECT_EQ(outside->Id("foo"), 4);
}

TEST(AddedTokensTest, NormalizedOnesAreFoundInWhatTheTextBecomes) {
  AddedToken token = Added(4, "Été");
  token.normalized = true;
  const auto uncased = MakeTokenizer("Été\nx\n", {.added_tokens = {token}});
  EXPECT_THAT(Show(*uncased, "x ETE x\u00c9te\u0301x"),
              ElementsAre("x@0-1", "Été@2-5", "x@6-7", "Été@7-11", "x@13-14"));
  const auto cased =
      MakeTokenizer("Été\nx\n", {.lower_case = false, .added_tokens = {token}});
  EXPECT_THAT(Pieces(*cased, "ETE Été"), ElementsAre("[UNK]", "Été"));
}

TEST(AddedTokensTest, WithABlankForbidCuttingTexts) {
  const auto with =
      MakeTokenizer("new york\n", {.added_tokens = {Added(4, "new york")}});
  EXPECT_EQ(with->cutting_places().blanks, "");
  EXPECT_THAT(Show(*with, "new york"), ElementsAre("new york@0-8"));
  const auto without =
      MakeTokenizer("york\n", {.added_tokens = {Added(4, "york")}});
  EXPECT_NE(without->cutting_places().blanks, "");
}

TEST(AddedTokensTest, HaveTheIdsOfTheVocabulary) {
  EXPECT_THAT(
      ParseWordPieceTokenizer(absl::StrCat(kSpecial, "a\n"), "vocab.txt",
                              {.added_tokens = {Added(3, "a")}})
          .status()
          .message(),
      HasSubstr("added token \"a\" has the id 3"));
}

TEST(PieceTrieTest, FindsTheLongestPiece) {
  PieceTrie trie;
  EXPECT_EQ(trie.Add("a", 3), -1);
  EXPECT_EQ(trie.Add("abc", 4), -1);
  EXPECT_EQ(trie.Add("abc", 5), 4);
  EXPECT_EQ(trie.Id("abc"), 4);
  EXPECT_EQ(trie.Id("ab"), -1);
  EXPECT_EQ(trie.Id("x"), -1);
  EXPECT_EQ(trie.Longest(PieceTrie::kRoot, "abcd").length, 3);
  EXPECT_EQ(trie.Longest(PieceTrie::kRoot, "abd").length, 1);
  EXPECT_EQ(trie.Longest(PieceTrie::kRoot, "abd").id, 3);
  EXPECT_EQ(trie.Longest(PieceTrie::kRoot, "bc").id, -1);
  EXPECT_EQ(trie.Longest(PieceTrie::kRoot, "").id, -1);
  const PieceTrie::Node after_a = trie.Walk(PieceTrie::kRoot, "a");
  EXPECT_EQ(trie.Longest(after_a, "bcd").id, 4);
  EXPECT_EQ(trie.Longest(after_a, "").id, -1);
  EXPECT_EQ(trie.Walk(PieceTrie::kRoot, "xyz"), PieceTrie::kNowhere);
  EXPECT_EQ(trie.Longest(PieceTrie::kNowhere, "abc").id, -1);
}

TEST(WordPieceTokenizerTest, CutsTheLongestPieceFromTheLeft) {
  const auto tokenizer = MakeTokenizer("un\n##aff\n##able\n##a\nunaf\n##f");
  EXPECT_THAT(Show(*tokenizer, "Un unaff"),
              ElementsAre("un@0-2", "unaf@3-7", "##f@7-8"));
  const auto small = MakeTokenizer("un\n##aff\n##able");
  EXPECT_THAT(Show(*small, "unaffable"),
              ElementsAre("un@0-2", "##aff@2-5", "##able@5-9"));
}

TEST(WordPieceTokenizerTest, GivesOneUnknownForTheWholeWord) {
  const auto tokenizer = MakeTokenizer("un\n##aff\n##able\n##");
  EXPECT_THAT(Show(*tokenizer, "un unaffableX un"),
              ElementsAre("un@0-2", "[UNK]@3-13", "un@14-16"));
  // Continuation pieces do not begin a word, first pieces do not go on one,
  // and "##" alone is no continuation.
  EXPECT_THAT(Pieces(*tokenizer, "able unun unx"),
              ElementsAre("[UNK]", "[UNK]", "[UNK]"));
}

TEST(WordPieceTokenizerTest, CutsOnlyWholeWordsWithoutContinuations) {
  const auto tokenizer = MakeTokenizer("a\nb");
  EXPECT_THAT(Pieces(*tokenizer, "a b ab"), ElementsAre("a", "b", "[UNK]"));
}

TEST(WordPieceTokenizerTest, LimitsWordsInCodePoints) {
  const auto tokenizer = MakeTokenizer("a\n##a\nд\n##д");
  EXPECT_EQ(tokenizer->Encode(std::string(200, 'a')).size(), 200);
  EXPECT_THAT(Show(*tokenizer, std::string(201, 'a')),
              ElementsAre("[UNK]@0-201"));
  std::string two_byte_letters;
  for (int i = 0; i < 200; ++i) {
    two_byte_letters += "Д";
  }
  EXPECT_EQ(tokenizer->Encode(two_byte_letters).size(), 200);
  EXPECT_THAT(Show(*tokenizer, two_byte_letters + "Д"),
              ElementsAre("[UNK]@0-402"));
  const auto short_words = MakeTokenizer("a\n##a", {.max_word_code_points = 2});
  EXPECT_THAT(Pieces(*short_words, "aa aaa"), ElementsAre("a", "##a", "[UNK]"));
}

TEST(WordPieceTokenizerTest, TakesSpecialTokensInTextForText) {
  const auto tokenizer = MakeTokenizer("[\n]\nsep\nunk\n#");
  EXPECT_THAT(Pieces(*tokenizer, "[SEP]"), ElementsAre("[", "sep", "]"));
  EXPECT_THAT(Pieces(*tokenizer, "##"), ElementsAre("#", "#"));
}

TEST(WordPieceTokenizerTest, KeepsCaseOnDemand) {
  const auto cased = MakeTokenizer("Été\nété\ne", {.lower_case = false});
  EXPECT_THAT(Pieces(*cased, "Été été e"), ElementsAre("Été", "été", "e"));
  EXPECT_FALSE(cased->lower_cases());
  const auto uncased = MakeTokenizer("ete\ne");
  EXPECT_THAT(Pieces(*uncased, "Été été E"), ElementsAre("ete", "ete", "e"));
  EXPECT_TRUE(uncased->lower_cases());
}

TEST(WordPieceTokenizerTest, RangesCoverWhatPiecesComeFrom) {
  const auto tokenizer =
      MakeTokenizer("caf\n##e\ni\n##s\n\u1112\n##\u1161\u11AB\n日\nnaive");
  EXPECT_THAT(
      Show(*tokenizer, "\uFEFFCAFÉ \u0130s 한 日日"),
      ElementsAre("caf@3-6", "##e@6-8", "i@9-11", "##s@11-12", "\u1112@13-16",
                  "##\u1161\u11AB@13-16", "日@17-20", "日@20-23"));
  EXPECT_THAT(Show(*tokenizer, "na\u00ADi\u0308ve"), ElementsAre("naive@0-9"));
}

TEST(WordPieceTokenizerTest, EncodesNothingAsNothing) {
  const auto tokenizer = MakeTokenizer("a");
  EXPECT_THAT(tokenizer->Encode(""), IsEmpty());
  EXPECT_THAT(tokenizer->Encode("\r\n \u00A0\uFEFF\xFF\u0301"), IsEmpty());
}

TEST(WordPieceTokenizerTest, NamesItsPieces) {
  const auto tokenizer = MakeTokenizer("a\n##b");
  EXPECT_EQ(tokenizer->vocab_size(), 6);
  EXPECT_EQ(tokenizer->Id("[PAD]"), 0);
  EXPECT_EQ(tokenizer->Id("##b"), 5);
  EXPECT_EQ(tokenizer->Id("##"), -1);
  EXPECT_EQ(tokenizer->Id("[MASK]"), -1);
  EXPECT_EQ(tokenizer->Id(""), -1);
  EXPECT_EQ(tokenizer->Piece(1), "[UNK]");
  EXPECT_THROW(tokenizer->Piece(6), std::out_of_range);
  EXPECT_THROW(tokenizer->Piece(-1), std::out_of_range);
}

TEST(WordPieceVocabularyTest, AcceptsWhatEditorsDoToAFile) {
  for (const std::string vocabulary :
       {"[PAD]\n[UNK]\n[CLS]\n[SEP]\nlast",
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\nlast\n",
        "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nlast\r\n",
        "\xEF\xBB\xBF[PAD]\r\n[UNK]\n[CLS]\n[SEP]\nlast\n\r\n"}) {
    const auto tokenizer = ParseWordPieceTokenizer(vocabulary, "vocab.txt");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ((*tokenizer)->vocab_size(), 5);
    EXPECT_EQ((*tokenizer)->Id("[PAD]"), 0);
    EXPECT_EQ((*tokenizer)->Id("last"), 4);
  }
}

struct MalformedVocabulary {
  std::string name;
  std::string contents;
  absl::StatusCode code;
  std::string message;
};

class MalformedVocabularyTest
    : public testing::TestWithParam<MalformedVocabulary> {};

TEST_P(MalformedVocabularyTest, IsRefusedWithTheReason) {
  const auto tokenizer =
      ParseWordPieceTokenizer(GetParam().contents, "a/vocab.txt");
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), GetParam().code);
  EXPECT_THAT(std::string(tokenizer.status().message()),
              HasSubstr(GetParam().message));
  EXPECT_LT(tokenizer.status().message().size(), 400);
}

using absl::StatusCode;
INSTANTIATE_TEST_SUITE_P(
    Cases, MalformedVocabularyTest,
    testing::ValuesIn(std::vector<MalformedVocabulary>{
        {"Empty", "", StatusCode::kInvalidArgument,
         "a/vocab.txt: the vocabulary (0 pieces) should have [PAD]"},
        {"OnlyLineEnds", "\r\n\n\n", StatusCode::kInvalidArgument,
         "should have [PAD]"},
        {"NoPad", "[UNK]\n[CLS]\n[SEP]\n", StatusCode::kInvalidArgument,
         "(3 pieces) should have [PAD]"},
        {"NoUnknown", "[PAD]\n[CLS]\n[SEP]\n", StatusCode::kInvalidArgument,
         "should have [UNK]"},
        {"NoCls", "[PAD]\n[UNK]\n[SEP]\n", StatusCode::kInvalidArgument,
         "should have [CLS]"},
        {"NoSep", "[PAD]\n[UNK]\n[CLS]\n", StatusCode::kInvalidArgument,
         "should have [SEP]"},
        {"OtherCase", "[pad]\n[UNK]\n[CLS]\n[SEP]\n",
         StatusCode::kInvalidArgument, "should have [PAD]"},
        {"EmptyInteriorLine", absl::StrCat(kSpecial, "a\n\nb\n"),
         StatusCode::kInvalidArgument, "a/vocab.txt:6: "},
        {"EmptyInteriorLineOfCrlf", absl::StrCat(kSpecial, "a\r\n\r\nb\r\n"),
         StatusCode::kInvalidArgument, "a/vocab.txt:6: "},
        {"EmptyFirstLine", absl::StrCat("\n", kSpecial),
         StatusCode::kInvalidArgument, "a/vocab.txt:1: "},
        {"Duplicate", absl::StrCat(kSpecial, "foo\nb\nfoo\n"),
         StatusCode::kInvalidArgument,
         "a/vocab.txt:7: \"foo\" is in line 5 already"},
        {"DuplicateButForCarriageReturn",
         absl::StrCat(kSpecial, "foo\nfoo\r\n"), StatusCode::kInvalidArgument,
         "is in line 5 already"},
        {"NotUtf8", absl::StrCat(kSpecial, "f\xFFo\n"),
         StatusCode::kInvalidArgument,
         "a/vocab.txt:5: a piece should be UTF-8, but \"f\\xffo\" is not"},
        {"HugeLine", absl::StrCat(kSpecial, std::string(4097, 'x'), "\n"),
         StatusCode::kResourceExhausted,
         "a/vocab.txt:5: a piece may have 4096 bytes, but this one has 4097"},
        {"DuplicateLongLine",
         absl::StrCat(kSpecial, std::string(4096, 'x'), "\n",
                      std::string(4096, 'x')),
         StatusCode::kInvalidArgument, "x...\" is in line 5 already"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(WordPieceTokenizerTest, HasTheIdsOfBertsVocabulary) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "data/vocab/bert-uncased/vocab.txt");
  const auto loaded = LoadTokenizer(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Tokenizer& tokenizer = **loaded;
  EXPECT_EQ(tokenizer.vocab_size(), 30522);
  // doc/model.md 9.4, "Known ids".
  EXPECT_EQ(tokenizer.Id("[PAD]"), 0);
  EXPECT_EQ(tokenizer.Id("[unused0]"), 1);
  EXPECT_EQ(tokenizer.Id("[unused4]"), 5);
  EXPECT_EQ(tokenizer.Id("[UNK]"), 100);
  EXPECT_EQ(tokenizer.Id("[CLS]"), 101);
  EXPECT_EQ(tokenizer.Id("[SEP]"), 102);
  EXPECT_EQ(tokenizer.Id("[MASK]"), 103);
  EXPECT_THAT(Show(tokenizer, "located_in Embeddings, Zürich."),
              ElementsAre("located@0-7", "_@7-8", "in@8-10", "em@11-13",
                          "##bed@13-16", "##ding@16-20", "##s@20-21", ",@21-22",
                          "zurich@23-30", ".@30-31"));
}

// A text full of what goes wrong in texts.
std::string RandomText(std::mt19937* random) {
  static const std::vector<std::string> kParts = {
      "the ",     "Unaffable",
      "don't",    "U.S.A.",
      "é",        "e\u0301",
      "한국",     "日本",
      "\u0130",   "ΑΣ ",
      "😀",        "\uFEFF",
      "\r\n",     "\u00A0",
      "\u200D",   "[SEP]",
      "##s",      "\u2028",
      "ß",        "\u0345",
      " ",        std::string(1, '\0'),
      "\u226E",   "12,345",
      "\xF0\x9F", "\uFFFD"};
  std::string text;
  for (size_t parts = (*random)() % 12; parts > 0; --parts) {
    text += kParts[(*random)() % kParts.size()];
  }
  for (size_t changes = (*random)() % 4; changes > 0 && !text.empty();
       --changes) {
    const size_t at = (*random)() % text.size();
    switch ((*random)() % 3) {
      case 0:
        text[at] = static_cast<char>((*random)());
        break;
      case 1:
        text.erase(at, 1);
        break;
      default:
        text.insert(at, 1, static_cast<char>((*random)()));
    }
  }
  return text;
}

TEST(WordPieceTokenizerTest, KeepsItsPromisesOnAnyBytes) {
  std::vector<std::string> vocabulary = {
      "the", "un",  "##aff", "##able", "日",  "ας",       "i",
      "e",   "##e", "##s",   "12",     "345", "##\u1161", "\u1112"};
  for (char c = '!'; c <= '~'; ++c) {
    if (c != 'i' && c != 'e') {
      vocabulary.push_back(std::string(1, c));
    }
    if (c >= 'a' && c <= 'd') {
      vocabulary.push_back(absl::StrCat("##", std::string(1, c)));
    }
  }
  for (const bool lower_case : {true, false}) {
    const auto tokenizer = MakeTokenizer(absl::StrJoin(vocabulary, "\n"),
                                         {.lower_case = lower_case});
    std::mt19937 random(11);
    for (int trial = 0; trial < 20000; ++trial) {
      const std::string text = RandomText(&random);
      // Exactly sized heap memory: reading past the end is seen.
      const std::vector<char> bytes(text.begin(), text.end());
      int64_t previous_begin = 0;
      int64_t previous_end = 0;
      for (const Token& piece :
           tokenizer->Encode({bytes.data(), bytes.size()})) {
        ASSERT_GE(piece.id, 0);
        ASSERT_LT(piece.id, tokenizer->vocab_size());
        ASSERT_GE(piece.begin, previous_begin);
        ASSERT_GE(piece.end, previous_end);
        ASSERT_LT(piece.begin, piece.end);
        ASSERT_LE(piece.end, static_cast<int64_t>(text.size()));
        previous_begin = piece.begin;
        previous_end = piece.end;
      }
    }
  }
}

TEST(WordPieceTokenizerTest, RangesOfAsciiAreThePieces) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "data/vocab/bert-uncased/vocab.txt");
  const auto tokenizer = LoadTokenizer(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::mt19937 random(12);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      text += static_cast<char>(random() % 5 == 0 ? ' ' : 'a' + random() % 26);
    }
    for (const Token& piece : (*tokenizer)->Encode(text)) {
      std::string spelt = (*tokenizer)->Piece(piece.id);
      if (spelt == "[UNK]") {
        continue;
      }
      spelt = spelt.rfind("##", 0) == 0 ? spelt.substr(2) : spelt;
      ASSERT_EQ(text.substr(piece.begin, piece.end - piece.begin), spelt);
    }
  }
}

}  // namespace
}  // namespace etc
