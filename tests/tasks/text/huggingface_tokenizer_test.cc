// Any tokenizer.json: small files made here, by hand, with the ids that follow
// from the rules, and the ranges in the original text. Byte-level BPE against
// the definition of its merges on random words, short and long, since both have
// code of their own. What is not supported is refused by its name, and damaged
// files are answered, whatever is in them. Equality with the Python package
// tokenizers on 30,000 odd texts is shown by tests/hugging_face_tokenizers.py.
#include "tasks/text/huggingface/huggingface_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "etc/weights/roberta_vocabulary.h"
#include "etc/weights/text_marks.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/characters.h"
#include "tasks/text/huggingface/mapped_text.h"
#include "tasks/text/huggingface/precompiled_map.h"
#include "tasks/text/load_tokenizer.h"
#include "tests/support/mutation.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/tiny_sentencepiece_model.h"

namespace etc::huggingface {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Strings = std::vector<std::string>;

// --- Files -------------------------------------------------------------------

constexpr std::pair<const char*, const char*> kMerges[] = {
    {"t", "h"},   {"th", "e"}, {"Ġ", "the"},  {"l", "o"}, {"lo", "w"},
    {"Ġ", "low"}, {"e", "r"},  {"low", "er"}, {"Ġ", "Ġ"}};

// RoBERTa's kind: the bytes have the ids 0 to 255, merges follow.
json ByteLevelFile(bool add_prefix_space = false) {
  json vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[ByteCharacter(static_cast<uint8_t>(byte))] = byte;
  }
  json merges = json::array();
  for (const auto& [left, right] : kMerges) {
    merges.push_back(json::array({left, right}));
    vocabulary[absl::StrCat(left, right)] = vocabulary.size();
  }
  const auto size = vocabulary.size();
  return {{"version", "1.0"},
          {"added_tokens",
           {{{"id", size}, {"content", "<s>"}, {"special", true}},
            {{"id", size + 1}, {"content", "</s>"}, {"special", true}},
            {{"id", size + 2},
             {"content", "<mask>"},
             {"special", true},
             {"lstrip", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "ByteLevel"},
            {"add_prefix_space", add_prefix_space},
            {"trim_offsets", true}}},
          {"post_processor",
           {{"type", "RobertaProcessing"},
            {"sep", {"</s>", size + 1}},
            {"cls", {"<s>", size}}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

// The words a, b, ab and some others, each one piece, behind `pre_tokenizer`.
json WordsFile(const json& pre_tokenizer, const json& normalizer = nullptr) {
  return {{"normalizer", normalizer},
          {"pre_tokenizer", pre_tokenizer},
          {"model",
           {{"type", "WordLevel"},
            {"unk_token", "[UNK]"},
            {"vocab", {{"[UNK]", 0}, {"a", 1}, {"b", 2}, {"ab", 3}}}}}};
}

json UnigramFile() {
  return {{"pre_tokenizer", {{"type", "Metaspace"}}},
          {"model",
           {{"type", "Unigram"},
            {"unk_id", 0},
            {"vocab", json::parse(R"([["<unk>", 0], ["▁", -2], ["a", -3],
                ["▁a", -3.5], ["b", -4], ["ab", -4.5]])")}}}};
}

std::unique_ptr<Tokenizer> Parse(const json& file) {
  auto tokenizer = ParseHuggingFaceTokenizer(file.dump(), "tokenizer.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

absl::Status ErrorOf(const json& file) {
  return ParseHuggingFaceTokenizer(file.dump(), "tokenizer.json").status();
}

// Pieces as "spelling begin-end".
Strings Pieces(const Tokenizer& tokenizer, const std::string& text) {
  Strings pieces;
  for (const Token& token : tokenizer.Encode(text)) {
    pieces.push_back(absl::StrCat(tokenizer.Piece(token.id), " ", token.begin,
                                  "-", token.end));
  }
  return pieces;
}

// The parts of `text` that its pieces stand for.
Strings Parts(const Tokenizer& tokenizer, const std::string& text) {
  Strings parts;
  for (const Token& token : tokenizer.Encode(text)) {
    parts.push_back(text.substr(static_cast<size_t>(token.begin),
                                static_cast<size_t>(token.end - token.begin)));
  }
  return parts;
}

// --- Byte-level BPE ----------------------------------------------------------

TEST(HuggingFaceTokenizerTest, SplitsAsGpt2) {
  const std::pair<const char*, Strings> table[] = {
      {"I'll don't", {"I", "'ll", " don", "'t"}},
      {"it'S 'x", {"it", "'", "S", " '", "x"}},
      {"a  b", {"a", " ", " b"}},
      {"a \n\n b  ", {"a", " \n\n", " b", "  "}},
      {"x86_64 ½", {"x", "86", "_", "64", " ½"}},
      {"a\tb", {"a", "\t", "b"}},
      {"a\u00a0\u3000b", {"a", "\u00a0", "\u3000", "b"}},
      {"日本 語!?", {"日本", " 語", "!?"}},
      {"e\u0301", {"e", "\u0301"}},
  };
  for (const auto& [text, words] : table) {
    Strings found;
    VisitGpt2Words(text, [&, whole = std::string(text)](ByteRange word) {
      found.push_back(whole.substr(static_cast<size_t>(word.begin),
                                   static_cast<size_t>(word.end - word.begin)));
    });
    EXPECT_EQ(found, words) << text;
  }
}

TEST(HuggingFaceTokenizerTest, MergesBytes) {
  const auto tokenizer = Parse(ByteLevelFile());
  ASSERT_NE(tokenizer, nullptr);
  // Ranges have no white space at their ends.
  EXPECT_THAT(Pieces(*tokenizer, "the the lower"),
              ElementsAre("the 0-3", "Ġthe 4-7", "Ġlow 8-11", "er 11-13"));
  // Pieces of one character have the whole character.
  EXPECT_THAT(Pieces(*tokenizer, "é "), ElementsAre("Ã 0-2", "© 0-2", "Ġ 2-3"));
  EXPECT_THAT(Pieces(*tokenizer, ""), ElementsAre());
  EXPECT_FALSE(tokenizer->lower_cases());
  EXPECT_TRUE(tokenizer->ContinuesWord(tokenizer->Id("er")));
  EXPECT_FALSE(tokenizer->ContinuesWord(tokenizer->Id("Ġlow")));
  EXPECT_EQ(tokenizer->vocab_size(), 268);
}

TEST(HuggingFaceTokenizerTest, PutsASpaceInFront) {
  const auto tokenizer = Parse(ByteLevelFile(/*add_prefix_space=*/true));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(Pieces(*tokenizer, "the"), ElementsAre("Ġthe 0-3"));
  EXPECT_THAT(Pieces(*tokenizer, " the"), ElementsAre("Ġthe 1-4"));
  // The space stands for nothing.
  EXPECT_THAT(Pieces(*tokenizer, "x"), ElementsAre("Ġ 0-0", "x 0-1"));
  EXPECT_THAT(Pieces(*tokenizer, "the<s>the"),
              ElementsAre("Ġthe 0-3", "<s> 3-6", "Ġthe 6-9"));
}

TEST(HuggingFaceTokenizerTest, DropsWhatIsNotUtf8) {
  const auto tokenizer = Parse(ByteLevelFile());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(Pieces(*tokenizer, "t\xFFh\xC3"), ElementsAre("th 0-3"));
}

// The definition: again and again the first of the pairs with the least rank.
Strings MergedByDefinition(const std::string& word) {
  Strings parts;
  for (const char c : word) {
    parts.emplace_back(c == ' ' ? "Ġ" : std::string(1, c));
  }
  for (bool merged = true; merged;) {
    merged = false;
    for (const auto& [left, right] : kMerges) {
      for (size_t i = 0; i + 1 < parts.size() && !merged; ++i) {
        if (parts[i] == left && parts[i + 1] == right) {
          parts[i] += parts[i + 1];
          parts.erase(parts.begin() + static_cast<int64_t>(i) + 1);
          merged = true;
        }
      }
      if (merged) {
        break;
      }
    }
  }
  return parts;
}

TEST(HuggingFaceTokenizerTest, MergesAsDefinedWhateverTheLength) {
  json file = ByteLevelFile();
  file["pre_tokenizer"]["use_regex"] = false;
  const auto tokenizer = Parse(file);
  ASSERT_NE(tokenizer, nullptr);
  std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp)
  for (const size_t size : {1, 2, 3, 5, 10, 39, 40, 41, 42, 100, 500}) {
    for (int repetition = 0; repetition < 20; ++repetition) {
      std::string word;
      while (word.size() < size) {
        word += "thelowr "[random() % 8];
      }
      Strings pieces;
      for (const Token& token : tokenizer->Encode(word)) {
        pieces.push_back(tokenizer->Piece(token.id));
      }
      ASSERT_EQ(pieces, MergedByDefinition(word)) << word;
    }
  }
}

TEST(HuggingFaceTokenizerTest, SpellsUnknownCharacters) {
  json file = {{"model",
                {{"type", "BPE"},
                 {"unk_token", "?"},
                 {"vocab",
                  {{"?", 0},
                   {"a", 1},
                   {"b", 2},
                   {"ab", 3},
                   {"<0xC3>", 4},
                   {"<0xA9>", 5}}},
                 {"merges", json::array({"a b"})}}}};
  EXPECT_THAT(Pieces(*Parse(file), "abxyb"),
              ElementsAre("ab 0-2", "? 2-3", "? 3-4", "b 4-5"));
  file["model"]["fuse_unk"] = true;
  EXPECT_THAT(Pieces(*Parse(file), "xya"), ElementsAre("? 0-2", "a 2-3"));
  file["model"]["byte_fallback"] = true;
  EXPECT_THAT(Pieces(*Parse(file), "aé"),
              ElementsAre("a 0-1", "<0xC3> 1-3", "<0xA9> 1-3"));
  file["model"].erase("unk_token");
  EXPECT_THAT(Pieces(*Parse(file), "xa"), ElementsAre("a 1-2"));
}

// --- The other models --------------------------------------------------------

TEST(HuggingFaceTokenizerTest, FindsTheBestSegmentation) {
  json file = UnigramFile();
  // -2 - 4.5 against -3.5 - 4.
  EXPECT_THAT(Pieces(*Parse(file), "ab"), ElementsAre("▁ 0-0", "ab 0-2"));
  // Unknown neighbours are one piece.
  EXPECT_THAT(Pieces(*Parse(file), "xé a"),
              ElementsAre("▁ 0-0", "<unk> 0-3", "▁a 4-5"));
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    file["model"]["vocab"].push_back(
        json::array({absl::StrCat("<0x", std::string(1, kDigits[byte / 16]),
                                  std::string(1, kDigits[byte % 16]), ">"),
                     -100}));
  }
  file["model"]["byte_fallback"] = true;
  EXPECT_THAT(Pieces(*Parse(file), "xa"),
              ElementsAre("▁ 0-0", "<0x78> 0-1", "a 1-2"));
}

TEST(HuggingFaceTokenizerTest, TakesTheLongestPiece) {
  json file = {{"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
               {"model",
                {{"type", "WordPiece"},
                 {"unk_token", "[UNK]"},
                 {"continuing_subword_prefix", "@"},
                 {"max_input_chars_per_word", 4},
                 {"vocab", {{"[UNK]", 0}, {"a", 1}, {"@b", 2}, {"@bb", 3}}}}}};
  const auto tokenizer = Parse(file);
  EXPECT_THAT(Pieces(*tokenizer, "abbb, abx abbbb"),
              ElementsAre("a 0-1", "@bb 1-3", "@b 3-4", "[UNK] 4-5",
                          "[UNK] 6-9", "[UNK] 10-15"));
  EXPECT_TRUE(tokenizer->ContinuesWord(2));
  EXPECT_FALSE(tokenizer->ContinuesWord(1));
}

// A suffix says where a word ends, which shows in no piece where one begins.
TEST(HuggingFaceTokenizerTest, KnowsWhichPiecesOfBpeContinueWords) {
  json model = {{"type", "BPE"},
                {"vocab", {{"a", 0}, {"@b", 1}, {"a@b", 2}, {"b", 3}}},
                {"merges", json::array()},
                {"continuing_subword_prefix", "@"}};
  json file = {{"pre_tokenizer", {{"type", "Whitespace"}}}, {"model", model}};
  auto tokenizer = Parse(file);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(Pieces(*tokenizer, "ab b"),
              ElementsAre("a 0-1", "@b 1-2", "b 3-4"));
  EXPECT_TRUE(tokenizer->ContinuesWord(1));
  EXPECT_FALSE(tokenizer->ContinuesWord(0));
  EXPECT_FALSE(tokenizer->ContinuesWord(3));
  file["model"]["continuing_subword_prefix"] = nullptr;
  file["model"]["end_of_word_suffix"] = "@b";
  tokenizer = Parse(file);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_FALSE(tokenizer->ContinuesWord(1));
}

// --- Words -------------------------------------------------------------------

json Split(const char* expression, const char* behavior, bool invert = false) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", expression}}},
          {"behavior", behavior},
          {"invert", invert}};
}

TEST(HuggingFaceTokenizerTest, SplitsWords) {
  const std::pair<json, Strings> table[] = {
      {Split("-", "Removed"), {"a", "b", "c"}},
      {Split("-", "Isolated"), {"a", "-", "-", "b", "-", "c"}},
      {Split("-", "MergedWithPrevious"), {"a-", "-", "b-", "c"}},
      {Split("-", "MergedWithNext"), {"a", "-", "-b", "-c"}},
      {Split("-", "Contiguous"), {"a", "--", "b", "-", "c"}},
      {Split("[a-c]", "Removed", /*invert=*/true), {"a", "b", "c"}},
      {Split(R"(\p{L}(?=-)|\w)", "Isolated"), {"a", "--", "b", "-", "c"}},
      {{{"type", "Split"},
        {"pattern", {{"String", "--"}}},
        {"behavior", "Removed"}},
       {"a", "b-c"}},
      {{{"type", "Punctuation"}}, {"a", "-", "-", "b", "-", "c"}},
      {{{"type", "Whitespace"}}, {"a", "--", "b", "-", "c"}},
      {{{"type", "CharDelimiterSplit"}, {"delimiter", "b"}}, {"a--", "-c"}},
      {{{"type", "WhitespaceSplit"}}, {"a--b-c"}},
  };
  for (const auto& [step, words] : table) {
    EXPECT_EQ(Parts(*Parse(WordsFile(step)), "a--b-c"), words) << step;
  }
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_THAT(
      Parts(*Parse(WordsFile(
                {{"type", "Sequence"},
                 {"pretokenizers", {{{"type", "WhitespaceSplit"}}, digits}}})),
            "a12 ½"),
      ElementsAre("a", "1", "2", "½"));
}

// Expected values are those of tokenizers 0.23.
TEST(HuggingFaceTokenizerTest, SplitsAtEmptyMatches) {
  struct Case {
    const char* expression;
    const char* behavior;
    bool invert;
    const char* text;
    Strings words;
  };
  const char* const thousands = R"((?=(\d{3})+(?!\d)))";
  const char* const humps = "(?<=[a-z])(?=[A-Z])";
  const Strings parts = {"Hello", "World", "Foo"};
  const Case table[] = {
      {thousands, "Isolated", false, "1234567", {"1", "234", "567"}},
      {humps, "Isolated", false, "HelloWorldFoo", parts},
      {humps, "Removed", false, "HelloWorldFoo", parts},
      {humps, "MergedWithPrevious", false, "HelloWorldFoo", parts},
      {humps, "MergedWithNext", false, "HelloWorldFoo", parts},
      {humps, "Contiguous", false, "HelloWorldFoo", parts},
      {humps, "Contiguous", true, "HelloWorldFoo", parts},
      {humps, "Removed", true, "HelloWorldFoo", {}},
      // No empty match stands directly behind another match.
      {"-*", "Isolated", false, "a--b-c", {"a", "--", "b", "-", "c"}},
      {"-*", "MergedWithPrevious", false, "a--b-c", {"a--", "b-", "c"}},
      {"-*", "MergedWithNext", false, "a--b-c", {"a", "--b", "-c"}},
      {"-*", "Removed", true, "a--b-c", {"--", "-"}},
      {"-*", "MergedWithPrevious", true, "a--b-c", {"a", "--b", "-c"}},
      {"-*", "MergedWithNext", true, "a--b-c", {"a--", "b-", "c"}},
      {"(?=-)|b", "Isolated", false, "a--b-c", {"a", "-", "-", "b", "-c"}},
      {"(?=-)|b", "Removed", false, "a--b-c", {"a", "-", "-", "-c"}},
      {"(?=-)|b",
       "MergedWithPrevious",
       false,
       "a--b-c",
       {"a", "-", "-b", "-c"}},
      {"(?=-)|b", "MergedWithNext", false, "a--b-c", {"a", "-", "-", "b-c"}},
      {"(?=-)|b", "MergedWithPrevious", true, "a--b-c", {"a", "-", "-", "b-c"}},
      {"x*", "Isolated", false, "\u00e9\u65e5", {"\u00e9", "\u65e5"}},
  };
  for (const Case& c : table) {
    const auto tokenizer =
        Parse(WordsFile(Split(c.expression, c.behavior, c.invert)));
    ASSERT_NE(tokenizer, nullptr);
    EXPECT_EQ(Parts(*tokenizer, c.text), c.words)
        << c.expression << " " << c.behavior << " " << c.invert;
  }
}

TEST(HuggingFaceTokenizerTest, InsertsAtEmptyMatches) {
  const auto file = [](const char* expression, const char* content) {
    return WordsFile({{"type", "WhitespaceSplit"}},
                     {{"type", "Replace"},
                      {"pattern", {{"Regex", expression}}},
                      {"content", content}});
  };
  EXPECT_THAT(Parts(*Parse(file("(?=[A-Z])", " ")), "aBcB"),
              ElementsAre("a", "Bc", "B"));
  // The only match may be at the beginning.
  EXPECT_THAT(Pieces(*Parse(file("(?=b)", "a")), "b"), ElementsAre("ab 0-1"));
  EXPECT_THAT(Pieces(*Parse(file("x*", "a")), ""), ElementsAre());
}

TEST(HuggingFaceTokenizerTest, RefusesWhatIcuReadsOtherwise) {
  const std::pair<const char*, const char*> table[] = {
      {"[[:alpha:]]", "[:alpha:]"},
      {"[^[:space:]]+", "[:space:]"},
      {"[_[:alnum:]]+", "[:alnum:]"},
      {"[a[b[:digit:]]]", "[:digit:]"},
      {"a(?i)b|c", "(?i)"},
      {"(?:(?i)a)|b", "(?i)"},
      {R"([\p{L}&[ab]])", "&["},
      {"[[a-z]-[a]]", "-["},
      {"[&&a]", "&&"},
      {"[a&&]", "&&]"},
      {"[a&&&b]", "&&&"},
      {"a{2}?", "{2}?"},
      {R"(\p{Word})", "p{Word}"},
      {R"(\p{XDigit})", "p{XDigit}"},
      {R"([^\P{Alnum}])", "P{Alnum}"},
      {R"(\p{Punct})", "p{Punct}"},
      {R"(\p{digit})", "p{digit}"},
      {R"(\p{IsHan})", "p{IsHan}"},
      {R"(\p{Script=Han})", "p{Script=Han}"},
      {R"(\xe2\x96\x81)", "xe2"},
      {R"([a\x80])", "x80"},
  };
  for (const auto& [expression, part] : table) {
    const absl::Status status =
        ErrorOf(WordsFile(Split(expression, "Isolated")));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << expression;
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("pre_tokenizer.pattern.Regex"),
                      HasSubstr(absl::StrCat(part, "\" is not supported"))));
  }
}

// Expressions of published tokenizers, or parts of them, and some others.
TEST(HuggingFaceTokenizerTest, ReadsPublishedExpressions) {
  const char* const kimi =
      R"([\p{Han}]+|[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
      R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t)?|.)";
  const char* const deep_seek =
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
      R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)";
  const std::pair<const char*, Strings> table[] = {
      {kimi, {"Ab", "-", "\u65e5", "&", "c"}},
      {deep_seek, {"Ab", "-", "\u65e5", "&c"}},
      {R"( ?[^(\s|[.,!?]&)]+)", {"Ab-\u65e5", "&", "c"}},
      {R"((?i:'s)|[^\r\n\p{L}\p{N}]?\p{L}+)", {"Ab", "-\u65e5", "&c"}},
      {"(?i)a|B", {"A", "b", "-\u65e5&c"}},
      {R"([A-Z]{1,2}?|\p{Hiragana}|\p{Alphabetic}&)",
       {"A", "b-", "\u65e5&", "c"}},
      {"[a-z&&[^c]]", {"A", "b", "-\u65e5&c"}},
      {"[&:]+", {"Ab-\u65e5", "&", "c"}},
  };
  for (const auto& [expression, words] : table) {
    const auto tokenizer = Parse(WordsFile(Split(expression, "Isolated")));
    ASSERT_NE(tokenizer, nullptr);
    EXPECT_EQ(Parts(*tokenizer, "Ab-\u65e5&c"), words) << expression;
  }
}

TEST(HuggingFaceTokenizerTest, RefusesClassesThatAreTooDeep) {
  const auto nested = [](size_t depth) {
    const std::string expression =
        absl::StrCat(std::string(depth, '['), "a", std::string(depth, ']'));
    return ErrorOf(WordsFile(Split(expression.c_str(), "Isolated")));
  };
  EXPECT_TRUE(nested(64).ok()) << nested(64);
  EXPECT_EQ(nested(65).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(nested(200'000).code(), absl::StatusCode::kUnimplemented);
}

TEST(HuggingFaceTokenizerTest, EndsWhereAnExpressionTakesTooManySteps) {
  const auto tokenizer = Parse(WordsFile(Split("(?:a+)+b", "Isolated")));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THROW(tokenizer->Encode(std::string(52, 'a')), LimitReached);
  EXPECT_THAT(Parts(*tokenizer, "xaab"), ElementsAre("x", "aab"));
}

// Blanks without a line end are kept one by one until none is found, and digits
// try each alternative.
TEST(HuggingFaceTokenizerTest, TakesLongLinesWithPublishedExpressions) {
  const auto tokenizer = Parse(WordsFile(
      Split(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+)"
            R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
            "Isolated")));
  ASSERT_NE(tokenizer, nullptr);
  constexpr size_t kBytes = 1'000'000;
  EXPECT_EQ(tokenizer->Encode(std::string(kBytes, ' ')).size(), 1U);
  EXPECT_EQ(tokenizer->Encode(std::string(kBytes, '1')).size(), kBytes);
}

TEST(HuggingFaceTokenizerTest, FindsAddedTokens) {
  json file = WordsFile({{"type", "WhitespaceSplit"}}, {{"type", "Lowercase"}});
  file["added_tokens"] = {
      {{"id", 4}, {"content", "[X]"}, {"special", true}},
      {{"id", 5}, {"content", "on"}, {"single_word", true}},
      {{"id", 6}, {"content", "wide"}, {"lstrip", true}, {"rstrip", true}},
      {{"id", 7}, {"content", "NEW"}, {"normalized", true}},
      {{"id", 8}, {"content", "[X]Y"}, {"special", true}}};
  const auto tokenizer = Parse(file);
  EXPECT_THAT(Pieces(*tokenizer, "a[X]b"),
              ElementsAre("a 0-1", "[X] 1-4", "b 4-5"));
  EXPECT_THAT(Pieces(*tokenizer, "[X]Y [x]"),
              ElementsAre("[X]Y 0-4", "[UNK] 5-8"));
  EXPECT_THAT(Pieces(*tokenizer, "on aon ON"),
              ElementsAre("on 0-2", "[UNK] 3-6", "on 7-9"));
  EXPECT_THAT(Pieces(*tokenizer, "a wide  b"),
              ElementsAre("a 0-1", "wide 2-6", "b 8-9"));
  EXPECT_THAT(Pieces(*tokenizer, "aNeW new"),
              ElementsAre("a 0-1", "NEW 1-4", "NEW 5-8"));
}

// Each of a run of tokens that are white space has the rest of it.
TEST(HuggingFaceTokenizerTest, EndsWhereAddedTokensShareTooMuch) {
  json file = WordsFile({{"type", "WhitespaceSplit"}});
  file["added_tokens"] = json::array(
      {{{"id", 4}, {"content", " "}, {"special", true}, {"rstrip", true}}});
  const auto tokenizer = Parse(file);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(Pieces(*tokenizer, "a  b"),
              ElementsAre("a 0-1", "  1-3", "  2-3", "b 3-4"));
  constexpr size_t kSome = 10'000;
  EXPECT_EQ(tokenizer->Encode(std::string(kSome, ' ')).size(), kSome);
  EXPECT_THROW(tokenizer->Encode(std::string(1'000'000, ' ')), LimitReached);
}

// A search walks along a piece at each byte of a text.
TEST(HuggingFaceTokenizerTest, RefusesPiecesOfManyKilobytes) {
  const std::string longest(4096, 'a');
  const std::string too_long = longest + "a";
  const auto unigram = [](const std::string& piece) {
    json file = UnigramFile();
    file["model"]["vocab"].push_back(json::array({piece, -5}));
    return file;
  };
  json wordpiece = {{"model",
                     {{"type", "WordPiece"},
                      {"max_input_chars_per_word", 1'000'000'000},
                      {"vocab", {{"[UNK]", 0}, {"a", 1}, {too_long, 2}}}}}};
  json added = WordsFile({{"type", "WhitespaceSplit"}});
  added["added_tokens"] = json::array({{{"id", 4}, {"content", too_long}}});
  json bpe = {{"model",
               {{"type", "BPE"},
                {"vocab", {{"a", 0}}},
                {"merges", json::array()},
                {"continuing_subword_prefix", too_long}}}};
  EXPECT_TRUE(ErrorOf(unigram(longest)).ok());
  for (const json& file : {unigram(too_long), wordpiece, added, bpe}) {
    const absl::Status status = ErrorOf(file);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("tokenizer.json: "),
                      HasSubstr("a piece may have 4096 bytes")));
  }
}

// ICU's own sort of the marks behind a character is quadratic.
TEST(HuggingFaceTokenizerTest, OrdersAnyNumberOfMarks) {
  const auto marks = [](size_t count, const char* mark) {
    std::string all;
    for (size_t i = 0; i < count; ++i) {
      all += mark;
    }
    return all;
  };
  for (const size_t count : {10, 100, 200'000}) {
    const std::string above = marks(count, "\u0301");
    const std::string below = marks(count, "\u0316");
    const std::string one_less = marks(count - 1, "\u0301");
    const std::pair<const char*, std::string> table[] = {
        {"NFD", absl::StrCat("a", below, above)},
        {"NFC", absl::StrCat("\u00e1", below, one_less)}};
    for (const auto& [form, expected] : table) {
      json file = WordsFile({{"type", "WhitespaceSplit"}}, {{"type", form}});
      file["model"]["vocab"][expected] = 4;
      EXPECT_EQ(Parse(file)->Encode(absl::StrCat("a", above, below))[0].id, 4)
          << form << " " << count;
    }
    // Decomposes into marks of two classes.
    json file = WordsFile({{"type", "WhitespaceSplit"}}, {{"type", "NFD"}});
    file["model"]["vocab"]
        [absl::StrCat(marks(count, "\u0f71"), marks(count, "\u0f72"))] = 4;
    EXPECT_EQ(Parse(file)->Encode(marks(count, "\u0f73"))[0].id, 4) << count;
  }
}

TEST(HuggingFaceTokenizerTest, EndsWhereATextGrowsTooLong) {
  const MappedText text("a", /*begin=*/0);
  MappedTextBuilder builder(text);
  const std::string replacement((256 << 20) + 1, 'a');
  EXPECT_THROW(builder.Append(replacement, {.begin = 0, .end = 1}),
               LimitReached);
}

TEST(HuggingFaceTokenizerTest, NormalizesAndKnowsWhere) {
  json words = {{"[UNK]", 0},     {"ab", 1}, {"é", 2},
                {"e", 3},         {"ﬁ", 4},  {"fi", 5},
                {"日", 6},        {"σ", 7},  {"\U0002B820ab", 8},
                {"\U0002B920", 9}};
  const auto pieces = [&](const json& normalizer, const std::string& text) {
    json file = WordsFile({{"type", "WhitespaceSplit"}}, normalizer);
    file["model"]["vocab"] = words;
    return Pieces(*Parse(file), text);
  };
  EXPECT_THAT(pieces({{"type", "NFC"}}, "e\u0301 ﬁ"),
              ElementsAre("é 0-3", "ﬁ 4-7"));
  EXPECT_THAT(pieces({{"type", "NFKC"}}, "ﬁ"), ElementsAre("fi 0-3"));
  EXPECT_THAT(pieces({{"type", "Lowercase"}}, "AB Σ"),
              ElementsAre("ab 0-2", "σ 3-5"));
  EXPECT_THAT(
      pieces({{"type", "Sequence"},
              {"normalizers", {{{"type", "NFD"}}, {{"type", "StripAccents"}}}}},
             "é"),
      ElementsAre("e 0-2"));
  EXPECT_THAT(pieces({{"type", "BertNormalizer"}}, "É\u200d日 A\u0301B"),
              ElementsAre("e 0-2", "日 5-8", "ab 9-13"));
  EXPECT_THAT(pieces({{"type", "BertNormalizer"}}, "\U0002B820ab \U0002B920ab"),
              ElementsAre("\U0002B820ab 0-6", "\U0002B920 7-11", "ab 11-13"));
  EXPECT_THAT(pieces({{"type", "Replace"},
                      {"pattern", {{"String", "x"}}},
                      {"content", "fi"}},
                     "x"),
              ElementsAre("fi 0-1"));
  EXPECT_THAT(pieces({{"type", "Prepend"}, {"prepend", "a"}}, "b"),
              ElementsAre("ab 0-1"));
  EXPECT_THAT(pieces({{"type", "Strip"}}, " ab "), ElementsAre("ab 1-3"));
}

TEST(HuggingFaceTokenizerTest, ReadsRulesOfSentencePiece) {
  EXPECT_FALSE(PrecompiledMap::Parse("", "x").ok());
  EXPECT_FALSE(PrecompiledMap::Parse(std::string("\4\0\0\0", 4), "x").ok());
  EXPECT_FALSE(PrecompiledMap::Parse(std::string("\3\0\0\0abc", 7), "x").ok());
  const auto map = PrecompiledMap::Parse(
      TinyCharsmap({.value = 4, .replacements = std::string("x\0\0\0yz\0", 7)}),
      "x");
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->Find("ab"), "yz");
  EXPECT_EQ(map->Find("b"), std::nullopt);
  EXPECT_EQ(map->Find(""), std::nullopt);
}

// SentencePiece's library follows the same rules without a look.
TEST(HuggingFaceTokenizerTest, RefusesRulesThatLeadElsewhere) {
  // A trie of one unit: each byte of a text leads out of it.
  EXPECT_FALSE(
      PrecompiledMap::Parse(std::string("\4\0\0\0\0\0\0\0", 8), "x").ok());
  EXPECT_TRUE(PrecompiledMap::Parse(TinyCharsmap({}), "x").ok());
  for (const TinyCharsmapOptions& options :
       {TinyCharsmapOptions{.root = 1024}, TinyCharsmapOptions{.value = 3},
        TinyCharsmapOptions{.value = 1},
        TinyCharsmapOptions{.value = 0x7FFFFF00},
        TinyCharsmapOptions{.replacements = "x"},
        TinyCharsmapOptions{.replacements = ""},
        // "a" leads to where it came from: "aaa..." has any number of matches.
        TinyCharsmapOptions{.leaf = 256}}) {
    EXPECT_THAT(
        PrecompiledMap::Parse(TinyCharsmap(options), "x").status().message(),
        HasSubstr("x should have a trie that leads to replacements"));
  }
}

// --- Special pieces ----------------------------------------------------------

TEST(HuggingFaceTokenizerTest, NamesThePiecesAroundAText) {
  const SpecialIds roberta = FindSpecialIds(*Parse(ByteLevelFile()));
  EXPECT_EQ(roberta.cls, 265);
  EXPECT_EQ(roberta.separator, 266);
  EXPECT_EQ(roberta.mask, 267);
  json file = WordsFile({{"type", "WhitespaceSplit"}});
  EXPECT_EQ(FindSpecialIds(*Parse(file)).cls, -1);
  file["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", json::parse(R"([{"SpecialToken": {"id": "A"}},
          {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "B"}}])")},
      {"special_tokens",
       {{"A", {{"id", "A"}, {"ids", json::array({1})}}},
        {"B", {{"id", "B"}, {"ids", json::array({2})}}}}}};
  EXPECT_EQ(FindSpecialIds(*Parse(file)).cls, 1);
  EXPECT_EQ(FindSpecialIds(*Parse(file)).separator, 2);
  file["post_processor"]["special_tokens"]["A"]["ids"] = json::array({9});
  EXPECT_THAT(ErrorOf(file).message(),
              HasSubstr("post_processor.special_tokens.A.ids"));
}

// A template; "A" and "B" are texts, others special pieces of their names.
json TemplateOf(const std::vector<std::string>& parts) {
  json list = json::array();
  for (const std::string& part : parts) {
    const char* const kind =
        part == "A" || part == "B" ? "Sequence" : "SpecialToken";
    list.push_back({{kind, {{"id", part}, {"type_id", 0}}}});
  }
  return list;
}

TEST(HuggingFaceTokenizerTest, NamesThePiecesBetweenTwoTexts) {
  using Ids = std::vector<int32_t>;
  json roberta = ByteLevelFile();
  EXPECT_EQ(FindSpecialIds(*Parse(roberta)).between, Ids({266, 266}));
  roberta["post_processor"]["type"] = "BertProcessing";
  EXPECT_EQ(FindSpecialIds(*Parse(roberta)).between, Ids({266}));
  // Without a post-processor it is RoBERTa's by its names.
  roberta["post_processor"] = {{"type", "ByteLevel"}};
  EXPECT_EQ(FindSpecialIds(*Parse(roberta)).between, Ids({266, 266}));
  EXPECT_EQ(FindSpecialIds(*Parse(roberta)).separator, 266);
  EXPECT_EQ(FindSpecialIds(*Parse(UnigramFile())).between, std::nullopt);

  json file = WordsFile({{"type", "WhitespaceSplit"}});
  json& processor = file["post_processor"];
  processor = {{"type", "TemplateProcessing"},
               {"single", TemplateOf({"a", "A", "b"})},
               {"special_tokens", json::object()}};
  for (const auto& [name, id] : {std::pair("a", 1), std::pair("b", 2)}) {
    processor["special_tokens"][name] = {{"id", name},
                                         {"ids", json::array({id})}};
  }
  EXPECT_EQ(FindSpecialIds(*Parse(file)).between, std::nullopt);
  const std::pair<Strings, std::optional<Ids>> pairs[] = {
      {{"a", "A", "b", "B", "b"}, Ids({2})},
      {{"a", "A", "b", "b", "B", "b"}, Ids({2, 2})},
      {{"a", "A", "b", "a", "b", "B", "b"}, Ids({2, 1, 2})},
      {{"a", "A", "B", "b"}, Ids()},
      {{"A", "B"}, std::nullopt}};
  for (const auto& [parts, between] : pairs) {
    processor["pair"] = TemplateOf(parts);
    EXPECT_EQ(FindSpecialIds(*Parse(file)).between, between) << processor;
  }
  for (const Strings& parts :
       {Strings({"a", "B", "b", "A", "b"}), Strings({"a", "A", "b"}),
        Strings({"a", "B"}), Strings({"A", "b", "A", "B"})}) {
    processor["pair"] = TemplateOf(parts);
    EXPECT_THAT(ErrorOf(file).message(), HasSubstr("post_processor.pair"));
  }
}

// An export writes the pieces by which tasks know a text into the file
// (etc/weights/text_marks.h).
TEST(HuggingFaceTokenizerTest, HasTheSamePiecesAroundTextsInAnExport) {
  json byte_level = ByteLevelFile();
  byte_level["post_processor"] = {{"type", "ByteLevel"}};
  json bert = WordsFile({{"type", "WhitespaceSplit"}});
  bert["model"]["vocab"].update({{"[CLS]", 4}, {"[SEP]", 5}});
  json unigram = UnigramFile();
  unigram["model"]["vocab"].push_back({"<unused_63>", 0});
  unigram["model"]["vocab"].push_back({"<unused_2>", 0});
  json single = bert;
  single["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", TemplateOf({"[CLS]", "A", "b"})},
      {"special_tokens",
       {{"[CLS]", {{"id", "[CLS]"}, {"ids", json::array({4})}}},
        {"b", {{"id", "b"}, {"ids", json::array({2})}}}}}};
  for (json file : {byte_level, bert, unigram, single}) {
    const SpecialIds before = FindSpecialIds(*Parse(file));
    EXPECT_GE(before.cls, 0) << file;
    EXPECT_TRUE(WriteTextMarks(&file)) << file;
    const SpecialIds after = FindSpecialIds(*Parse(file));
    EXPECT_EQ(after.cls, before.cls) << file;
    EXPECT_EQ(after.separator, before.separator) << file;
    EXPECT_EQ(after.between,
              before.between.value_or(std::vector{before.separator}))
        << file;
    EXPECT_FALSE(WriteTextMarks(&file)) << file;
  }
}

// Inputs have one piece before a text and one behind it.
TEST(HuggingFaceTokenizerTest, RefusesTemplatesOfOtherPieces) {
  json file = WordsFile({{"type", "WhitespaceSplit"}});
  file["model"]["vocab"]["<s>"] = 4;
  file["model"]["vocab"]["</s>"] = 5;
  json& processor = file["post_processor"];
  processor = {{"type", "TemplateProcessing"},
               {"special_tokens", json::object()}};
  for (const auto& [name, id] : {std::pair("a", 1), std::pair("b", 2)}) {
    processor["special_tokens"][name] = {{"id", name},
                                         {"ids", json::array({id})}};
  }
  const Strings singles[] = {
      {"a", "b", "A", "b"}, {"a", "A", "b", "a"}, {"a", "A"},     {"A", "b"},
      {"A", "b", "a"},      {"a", "b"},           {"a", "B", "b"}};
  for (const Strings& single : singles) {
    processor["single"] = TemplateOf(single);
    const absl::Status status = ErrorOf(file);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << processor;
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("post_processor.single"),
                      HasSubstr("one special piece before text A")));
  }
  // A template without pieces is like none.
  processor["single"] = TemplateOf({"A"});
  EXPECT_EQ(FindSpecialIds(*Parse(file)).cls, 4);
  processor["pair"] = TemplateOf({"a", "A", "b", "B", "b"});
  EXPECT_THAT(ErrorOf(file).message(), HasSubstr("post_processor.pair"));
  processor["single"] = TemplateOf({"a", "A", "b"});
  EXPECT_EQ(FindSpecialIds(*Parse(file)).cls, 1);
  for (const Strings& pair :
       {Strings({"a", "A", "b", "B", "a"}), Strings({"b", "A", "b", "B", "b"}),
        Strings({"a", "A", "b", "B"}), Strings({"A", "b", "B", "b"}),
        Strings({"a", "a", "A", "b", "B", "b"}),
        Strings({"a", "A", "b", "B", "b", "b"})}) {
    processor["pair"] = TemplateOf(pair);
    const absl::Status status = ErrorOf(file);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << processor;
    EXPECT_THAT(status.message(), HasSubstr("post_processor.pair"));
  }
  json sequence = ByteLevelFile();
  const json roberta = sequence["post_processor"];
  sequence["post_processor"] = {
      {"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}, roberta}}};
  EXPECT_EQ(FindSpecialIds(*Parse(sequence)).cls, 265);
  sequence["post_processor"]["processors"].push_back(roberta);
  EXPECT_THAT(ErrorOf(sequence).message(),
              HasSubstr("post_processor.processors[2]"));
}

// GPT-2's files: vocab.json, with the pieces that a tokenizer.json has among
// its added tokens, and merges.txt.
TEST(HuggingFaceTokenizerTest, ReadsAVocabJsonWithMerges) {
  const json file = ByteLevelFile();
  json vocabulary = file["model"]["vocab"];
  for (const json& added : file["added_tokens"]) {
    vocabulary[added["content"].get<std::string>()] = added["id"];
  }
  std::string merges = "#version: 0.2\n";
  for (const auto& [left, right] : kMerges) {
    absl::StrAppend(&merges, left, " ", right, "\n");
  }
  TemporaryDirectory directory;
  const std::string path = directory.Write("vocab.json", vocabulary.dump());
  directory.Write("merges.txt", merges);
  const auto expected = Parse(file);
  for (const std::string& named : {directory.path(), path}) {
    const auto tokenizer = LoadTokenizer(named);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ((*tokenizer)->vocab_size(), expected->vocab_size());
    for (const char* text :
         {"the lower", "  lowest\tthe", "<s>low <mask></s>", "\u00e9the"}) {
      EXPECT_EQ(Pieces(**tokenizer, text), Pieces(*expected, text));
    }
    const SpecialIds ids = FindSpecialIds(**tokenizer);
    EXPECT_EQ(ids.cls, 265);
    EXPECT_EQ(ids.between, std::vector<int32_t>({266, 266}));
  }
  directory.Write("merges.txt", merges + "x y\n");
  EXPECT_THAT(LoadTokenizer(path).status().message(),
              HasSubstr("merges.txt:11 merges \"x\" and \"y\""));
}

TEST(HuggingFaceTokenizerTest, IsFoundByItsDirectory) {
  TemporaryDirectory directory;
  directory.Write("tokenizer.json", ByteLevelFile().dump());
  const auto tokenizer = LoadTokenizer(directory.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Pieces(**tokenizer, "the lower"),
              ElementsAre("the 0-3", "Ġlow 4-7", "er 7-9"));
}

// --- Refusals ----------------------------------------------------------------

struct BadField {
  std::string pointer;
  json value;
  absl::StatusCode code;
  std::string message_part;
};

TEST(HuggingFaceTokenizerTest, NamesWhatIsWrong) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const auto other = absl::StatusCode::kUnimplemented;
  const BadField table[] = {
      {"/model", nullptr, invalid, "model"},
      {"/model/type", "Other", other, "model.type is \"Other\""},
      {"/model/dropout", 0.1, other, "model.dropout is 0.1"},
      {"/model/new_option", 1, invalid, "has no field \"new_option\""},
      {"/model/merges/0", "a b c", invalid, "model.merges[0] should be two"},
      {"/model/merges/1",
       {"t", "zz"},
       invalid,
       "model.merges[1] merges \"t\" and \"zz\", but \"zz\" is no piece"},
      {"/model/merges", 1, invalid, "model.merges should be a list"},
      {"/model/vocab/th", -1, invalid, "the id of \"th\""},
      {"/model/vocab/th", 99'999, invalid, "the id of \"th\""},
      {"/model/vocab/th", 1.5, invalid, "the id of \"th\""},
      {"/model/vocab/th", 0, invalid, "id 0 is that of"},
      {"/model/unk_token", "none", invalid, "model.unk_token is \"none\""},
      {"/model/continuing_subword_prefix", "##", other, "behind ByteLevel"},
      {"/added_tokens/0/id", 300, invalid,
       "added_tokens[0].id of \"<s>\" should be 265, the next one"},
      {"/added_tokens/0/content", 1, invalid, "added_tokens[0].content"},
      {"/added_tokens", 1, invalid, "added_tokens should be a list"},
      {"/normalizer", {{"type", "Odd"}}, other, "normalizer.type is \"Odd\""},
      {"/normalizer",
       {{"type", "Sequence"},
        {"normalizers", json::array({{{"type", "Odd"}}})}},
       other,
       "normalizer.normalizers[0].type is \"Odd\""},
      {"/normalizer",
       {{"type", "Precompiled"}, {"precompiled_charsmap", "%"}},
       invalid,
       "precompiled_charsmap should be base 64"},
      {"/pre_tokenizer/type", "UnicodeScripts", other,
       "pre_tokenizer.type is \"UnicodeScripts\""},
      {"/pre_tokenizer", Split("(?<name>a)", "Isolated"), other, "(?<n"},
      {"/pre_tokenizer", Split(R"(a\b)", "Isolated"), other, "\\\\b"},
      {"/pre_tokenizer", Split("(a", "Isolated"), invalid,
       "pre_tokenizer.pattern.Regex should be a regular expression"},
      {"/pre_tokenizer", Split("a", "Elsewhere"), other, "Elsewhere"},
      {"/post_processor/type", "Odd", other, "post_processor.type is \"Odd\""},
      {"/post_processor/sep", {"</s>", 3}, invalid, "post_processor.sep"},
  };
  for (const BadField& bad : table) {
    json file = ByteLevelFile();
    file[json::json_pointer(bad.pointer)] = bad.value;
    const absl::Status status = ErrorOf(file);
    EXPECT_EQ(status.code(), bad.code) << bad.pointer << ": " << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("tokenizer.json: "),
                                        HasSubstr(bad.message_part)));
  }
  EXPECT_THAT(
      ParseHuggingFaceTokenizer("{", "tokenizer.json").status().message(),
      HasSubstr("tokenizer.json:1:"));
}

TEST(HuggingFaceTokenizerTest, AnswersToDamagedFiles) {
  json words = WordsFile(Split(R"([^\s\p{L}]?\p{L}+|\d{1,3})", "Isolated"),
                         {{"type", "BertNormalizer"}});
  const std::string files[] = {ByteLevelFile().dump(), UnigramFile().dump(),
                               words.dump()};
  const Strings dictionary = {"{",       "}",      "[",   "]",      "\"",
                              "null",    "-1",     "1e9", "true",   "NFC",
                              "Removed", "\\p{L}", "(?:", "merges", "BPE"};
  const std::string text = "The lower é ab\u0301 <mask> 12\n";
  int64_t read = 0;
  Mutator mutator(3);
  constexpr int kRounds = RoundsOfDamage(3000);
  for (int i = 0; i < kRounds; ++i) {
    const auto tokenizer = ParseHuggingFaceTokenizer(
        mutator.Mutate(files[i % 3], dictionary), "tokenizer.json");
    if (!tokenizer.ok()) {
      ASSERT_THAT(tokenizer.status().message(), HasSubstr("tokenizer.json"));
      continue;
    }
    ++read;
    for (const Token& token : (*tokenizer)->Encode(text)) {
      ASSERT_LT(token.id, (*tokenizer)->vocab_size());
      ASSERT_LE(0, token.begin);
      ASSERT_LE(token.begin, token.end);
      ASSERT_LE(token.end, static_cast<int64_t>(text.size()));
    }
  }
  EXPECT_GT(read, kRounds / 150);
}

}  // namespace
}  // namespace etc::huggingface
