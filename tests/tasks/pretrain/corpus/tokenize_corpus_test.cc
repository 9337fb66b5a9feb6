// Texts made into token stores: the sentences and documents of a store for each
// format, that it is the same on any number of threads, the counts, and the
// errors for a corpus that cannot be used. Vocabularies of a few words; corpora
// of a few lines, or of a few batches (256 KiB each) where threads matter.

#include "tasks/pretrain/corpus/tokenize_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/random.h"
#include "nlohmann/json.hpp"
#include "tasks/pretrain/corpus/text_hash.h"
#include "tasks/pretrain/corpus/token_store.h"
#include "tasks/text/huggingface/huggingface_tokenizer.h"
#include "tasks/text/wordpiece_tokenizer.h"
#include "tests/support/gzip_member.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr char kVocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\ncat\ndog\nsat\nran\n##ing\nmr\n.\n"
    "the\n";

class TokenizeCorpusTest : public testing::Test {
 protected:
  CorpusTokenizer WordPiece(const std::string& vocabulary = kVocabulary) {
    auto made =
        MakeCorpusTokenizer({.vocabulary = "vocab.txt"},
                            *ParseWordPieceTokenizer(vocabulary, "vocab.txt"));
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  std::string Store() const { return directory_.File("corpus.tokens"); }

  // The pieces of the store that `options` make: "a b/c" are two sentences,
  // "+" is in front of continuations.
  std::vector<std::string> Documents(const TokenizeOptions& options,
                                     const CorpusTokenizer& tokenizer) {
    last_ = {};
    const auto result = TokenizeCorpus(tokenizer, options, Store());
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) {
      return {};
    }
    last_ = *result;
    const auto store = *TokenStore::Open(Store());
    EXPECT_TRUE(store->CheckTokens(0, store->num_tokens()).ok());
    std::vector<std::string> documents;
    for (int64_t d = 0; d < store->num_documents(); ++d) {
      std::vector<std::string> sentences;
      for (int64_t s = store->first_sentence(d);
           s < store->first_sentence(d + 1); ++s) {
        std::vector<std::string> pieces;
        for (int64_t t = store->first_token(s); t < store->first_token(s + 1);
             ++t) {
          pieces.push_back(
              absl::StrCat(store->is_continuation(t) ? "+" : "",
                           tokenizer.tokenizer->Piece(store->token(t))));
        }
        sentences.push_back(absl::StrJoin(pieces, " "));
      }
      documents.push_back(absl::StrJoin(sentences, "/"));
    }
    return documents;
  }

  std::vector<std::string> DocumentsOf(const std::string& text,
                                       TokenizeOptions options = {}) {
    options.corpus.files = {directory_.Write("corpus.txt", text)};
    return Documents(options, WordPiece());
  }

  absl::Status StatusOf(const std::string& text, TokenizeOptions options = {}) {
    options.corpus.files = {directory_.Write("corpus.txt", text)};
    const absl::Status status =
        TokenizeCorpus(WordPiece(), options, Store()).status();
    EXPECT_FALSE(std::filesystem::exists(Store()));
    return status;
  }

  TemporaryDirectory directory_;
  TokenizedCorpus last_;
};

// --- Formats ----------------------------------------------------------------

TEST_F(TokenizeCorpusTest, MakesSentencesOfLines) {
  EXPECT_THAT(DocumentsOf("The cat.\n\x01\n A dog. It ran.\n\n\n\nsating\n"),
              ElementsAre("the cat ./a dog . [UNK] ran .", "sat +##ing"));
  EXPECT_EQ(last_.documents, 2);
  EXPECT_EQ(last_.sentences, 3);
  EXPECT_EQ(last_.tokens, 11);
  EXPECT_EQ(last_.unknown, 1);
  EXPECT_EQ(last_.longest_sentence, 6);
  EXPECT_EQ(last_.replaced, 0);
  EXPECT_EQ(last_.bytes_read, last_.num_bytes);
  EXPECT_EQ((*TokenStore::Open(Store()))->settings().sentences, "lines");
}

TEST_F(TokenizeCorpusTest, SplitsRunningText) {
  const std::string text =
      "The cat\nsat. Mr. Dog\nran\n\nA cat. A dog.\n\n\n\nThe dog.";
  TokenizeOptions options = {.corpus = {.format = CorpusFormat::kText}};
  EXPECT_THAT(DocumentsOf(text, options),
              ElementsAre("the cat sat ./mr . dog ran/a cat ./a dog ./the dog "
                          "."));
  options.corpus.blank_lines = 3;
  EXPECT_THAT(
      DocumentsOf(text, options),
      ElementsAre("the cat sat ./mr . dog ran/a cat ./a dog .", "the dog ."));
  EXPECT_EQ((*TokenStore::Open(Store()))->settings().sentences, "icu");
}

// Line ends are white space like any other: they have no piece, though the
// vocabulary has one for them.
TEST_F(TokenizeCorpusTest, BeginsSentencesBehindBlanksAsOtherWords) {
  nlohmann::json vocabulary = {{"<mask>", 0}};
  for (const char* piece : {"A", "n", "B", "e", ".", "\u0120", "\u010A", "An",
                            "Be", "\u0120An", "\u0120Be"}) {
    vocabulary[piece] = vocabulary.size();
  }
  const std::string path = directory_.Write(
      "tokenizer.json",
      nlohmann::json{{"added_tokens",
                      {{{"id", 0}, {"content", "<mask>"}, {"special", true}}}},
                     {"pre_tokenizer",
                      {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                     {"model",
                      {{"type", "BPE"},
                       {"vocab", vocabulary},
                       {"merges", {"A n", "B e", "\u0120 An", "\u0120 Be"}}}}}
          .dump());
  auto tokenizer = LoadHuggingFaceTokenizer(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  auto made = MakeCorpusTokenizer({.type = "huggingface", .vocabulary = path},
                                  *std::move(tokenizer));
  ASSERT_TRUE(made.ok()) << made.status();
  TokenizeOptions options;
  options.corpus = {.files = {directory_.Write(
                        "corpus.txt", "An Be. Be \n  An.\nBe\nBe.\n\nBe.")},
                    .format = CorpusFormat::kText};
  EXPECT_THAT(Documents(options, *made),
              ElementsAre("+An \u0120Be +./\u0120Be \u0120An +./\u0120Be "
                          "\u0120Be +./+Be +."));
}

TEST_F(TokenizeCorpusTest, TakesDocumentsFromJson) {
  const TokenizeOptions options = {
      .corpus = {.format = CorpusFormat::kJsonLines, .field = "body"}};
  EXPECT_THAT(
      DocumentsOf(R"({"body": "The cat sat. A dog\nran.\n \nThe dog", "id": 1})"
                  "\n\n"
                  R"({"id": 2, "body": ""})"
                  "\n"
                  R"({"body": "\u0061 cat."})",
                  options),
      ElementsAre("the cat sat ./a dog ran ./the dog", "a cat ."));
}

TEST_F(TokenizeCorpusTest, ReadsSeveralFilesPlainOrPacked) {
  TokenizeOptions options;
  options.corpus.files = {directory_.Write("a", "the cat\n\na dog"),
                          directory_.Write("b", GzipMember("ran\n\nsat\n"))};
  EXPECT_THAT(Documents(options, WordPiece()),
              ElementsAre("the cat", "a dog", "ran", "sat"));
  options.corpus.glue_files = true;
  EXPECT_THAT(Documents(options, WordPiece()),
              ElementsAre("the cat", "a dog/ran", "sat"));
  EXPECT_EQ(last_.documents, 3);
}

// Sentences without tokens of this vocabulary, which may have some of another,
// are in the hash of their document alone: within it, at its ends, and behind a
// document of no others.
TEST_F(TokenizeCorpusTest, HashesTheTextOfDocuments) {
  const auto hash_of = [](const std::vector<std::string>& sentences) {
    uint64_t hash = 0;
    for (const std::string& sentence : sentences) {
      hash = AddToDocumentHash(hash, HashText(sentence));
    }
    return hash;
  };
  EXPECT_THAT(
      DocumentsOf("The cat.\n\x01\nA dog.\n\n\x02\n\n\x03\nran\n\x04\n\nsat\n"),
      ElementsAre("the cat ./a dog .", "ran", "sat"));
  const auto store = *TokenStore::Open(Store());
  EXPECT_EQ(store->document_hash(0), hash_of({"The cat.", "\x01", "A dog."}));
  EXPECT_EQ(store->document_hash(1), hash_of({"\x03", "ran", "\x04"}));
  EXPECT_EQ(store->document_hash(2), hash_of({"sat"}));
}

// --- UTF-8 ------------------------------------------------------------------

TEST_F(TokenizeCorpusTest, ReplacesAndCountsWhatIsNotUtf8) {
  // BERT's tokenizer deletes U+FFFD.
  EXPECT_THAT(DocumentsOf("the c\xFF"
                          "at\nd\xE5\x8D"
                          "og \xC0\x80\n"),
              ElementsAre("the cat/dog"));
  EXPECT_EQ(last_.replaced, 1 + 1 + 2);
  const ReplacedText replaced = ReplaceIllFormed(
      "a\xE5\x8D"
      "b\xF0\x9F\x98\x80");
  EXPECT_EQ(replaced.text, "a\uFFFDb\U0001F600");
  EXPECT_EQ(replaced.replaced, 1);
}

// Python's json.dumps writes text that was cut within an emoji so.
TEST_F(TokenizeCorpusTest, ReplacesAndCountsHalvesOfSurrogatePairs) {
  const TokenizeOptions options = {
      .corpus = {.format = CorpusFormat::kJsonLines, .field = "body"}};
  EXPECT_THAT(DocumentsOf(R"({"body": "the c\ud83dat"})", options),
              ElementsAre("the cat"));
  EXPECT_EQ(last_.replaced, 1);
  EXPECT_THAT(DocumentsOf(R"({"body": "\uDE00\uD83D\ud83dran \uD83D"})"
                          "\n"
                          R"({"body": "a\uD83D\uD83D\uDE00 \\\uD83Dcat"})",
                          options),
              ElementsAre("ran", "[UNK] [UNK] cat"));
  EXPECT_EQ(last_.replaced, 4 + 2);
  // An escaped backslash, and a pair.
  EXPECT_THAT(
      DocumentsOf(R"({"body": "dog \\ud83d \ud83d\ude00 \"ran"})", options),
      ElementsAre("dog [UNK] [UNK] [UNK] [UNK] ran"));
  EXPECT_EQ(last_.replaced, 0);
}

TEST_F(TokenizeCorpusTest, CountsWhatItReplacesByFile) {
  const std::string few = directory_.Write("few",
                                           "c\xFF"
                                           "at\n");
  const std::string many = directory_.Write("many", "\xE9t\xE9\n\ndog\xFF\n");
  Documents(
      {.corpus = {.files = {directory_.Write("none", "dog\n"), few, many}}},
      WordPiece());
  EXPECT_THAT(last_.replaced_by_file, ElementsAre(Pair(few, 1), Pair(many, 3)));
  EXPECT_EQ(last_.replaced, 4);
}

TEST_F(TokenizeCorpusTest, RefusesWhatIsNotUtf8IfAsked) {
  const absl::Status status =
      StatusOf("the cat\n\nd\xFFog\n", {.invalid_utf8 = InvalidUtf8::kError});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("corpus.txt:3: the text should be "
                                          "UTF-8"));
  // The line within a paragraph.
  EXPECT_THAT(StatusOf("a\n\nthe cat\nsat.\nA d\xFFog\n\xFF\n",
                       {.corpus = {.format = CorpusFormat::kText},
                        .invalid_utf8 = InvalidUtf8::kError})
                  .message(),
              HasSubstr("corpus.txt:5: the text should be UTF-8"));
  EXPECT_THAT(StatusOf("{\"text\": \"a\"}\n{\"text\": \"c\\ud83dat\"}\n",
                       {.corpus = {.format = CorpusFormat::kJsonLines},
                        .invalid_utf8 = InvalidUtf8::kError})
                  .message(),
              HasSubstr("corpus.txt:2:1:"));
}

// --- Threads ----------------------------------------------------------------

// Some batches of documents and sentences of various lengths.
std::string LongText() {
  const std::vector<std::string> words = {"the ",    "cat ", "dog ",
                                          "sat ",    "ran ", "sating ",
                                          "zebra. ", "\n",   "\n\n"};
  std::string text;
  for (uint64_t i = 0; text.size() < 2'000'000; ++i) {
    text += words[CombineSeeds({3, i}) % words.size()];
  }
  return text;
}

TEST_F(TokenizeCorpusTest, IsTheSameOnAnyNumberOfThreads) {
  const std::string text = directory_.Write("long.txt", LongText());
  for (const CorpusFormat format : {CorpusFormat::kBert, CorpusFormat::kText}) {
    std::string first;
    for (const int64_t threads : {1, 2, 4}) {
      const TokenizeOptions options = {
          .corpus = {.files = {text, text}, .format = format},
          .threads = threads};
      const auto result = TokenizeCorpus(WordPiece(), options, Store());
      ASSERT_TRUE(result.ok()) << result.status();
      const std::string bytes = *ReadFile(Store());
      first = first.empty() ? bytes : first;
      EXPECT_TRUE(bytes == first) << threads;
    }
    EXPECT_GT(first.size(), 1'000'000u);
  }
}

TEST_F(TokenizeCorpusTest, ReportsTheFirstErrorInTheOrderOfTheCorpus) {
  const std::string good = directory_.Write("good", LongText());
  const std::string bad = directory_.Write("bad", "a\nb\xFF\n");
  for (int i = 0; i < 5; ++i) {
    const absl::Status status =
        TokenizeCorpus(WordPiece(),
                       {.corpus = {.files = {good, bad, bad}},
                        .invalid_utf8 = InvalidUtf8::kError,
                        .threads = 4},
                       Store())
            .status();
    EXPECT_THAT(status.message(), HasSubstr(bad + ":2: "));
  }
  EXPECT_FALSE(std::filesystem::exists(Store()));
}

TEST_F(TokenizeCorpusTest, ReportsProgressAndStops) {
  std::atomic<bool> stop = false;
  int calls = 0;
  const absl::Status status =
      TokenizeCorpus(WordPiece(),
                     {.corpus = {.files = {directory_.Write("a", LongText())}},
                      .threads = 2,
                      .progress =
                          [&](const TokenizedCorpus& so_far) {
                            ++calls;
                            EXPECT_GT(so_far.bytes_read, 0u);
                            EXPECT_LT(so_far.bytes_read, so_far.num_bytes);
                            stop = calls == 3;
                          },
                      .stop = &stop},
                     Store())
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 3);
  std::filesystem::remove(directory_.File("a"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

// --- Mistakes ---------------------------------------------------------------

TEST_F(TokenizeCorpusTest, RefusesAnEmptyCorpus) {
  for (const char* text : {"", "\n\n", " \n\x01\n"}) {
    const absl::Status status = StatusOf(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("the corpus is empty: 1 file"));
  }
}

TEST_F(TokenizeCorpusTest, LeavesOutBadLinesIfAsked) {
  TokenizeOptions options = {.corpus = {.format = CorpusFormat::kJsonLines},
                             .bad_lines = BadLines::kSkip};
  EXPECT_THAT(DocumentsOf("null\n{\"text\": \"a cat\"}\n{\"text\": 5}\n"
                          "{\"text\": \"a\n{\"text\": \"the dog\"}\n",
                          options),
              ElementsAre("a cat", "the dog"));
  EXPECT_EQ(last_.bad_lines, 3);
  EXPECT_THAT(last_.first_bad_line, HasSubstr("corpus.txt:1: the line should "
                                              "be a JSON object"));
  // Replacements in them count for nothing.
  EXPECT_THAT(DocumentsOf("{\"text\": \"the\xFF dog\"}\n{\"text\": \"\xFF\n"
                          "{\"body\": \"\\ud83d\"}\n",
                          options),
              ElementsAre("the dog"));
  EXPECT_EQ(last_.bad_lines, 2);
  EXPECT_EQ(last_.replaced, 1);
  // Also for their bytes.
  options.invalid_utf8 = InvalidUtf8::kError;
  EXPECT_THAT(
      DocumentsOf("{\"text\": \"a cat\"}\n{\"text\": \"\xFF\"}\n", options),
      ElementsAre("a cat"));
  EXPECT_EQ(last_.bad_lines, 1);
  EXPECT_THAT(last_.first_bad_line, HasSubstr("corpus.txt:2: "));
  std::filesystem::remove(Store());
  EXPECT_THAT(StatusOf("null\n", options).message(),
              HasSubstr("with 5 bytes have no sentence with tokens; 1 line "
                        "left out, the first: "));
}

TEST_F(TokenizeCorpusTest, NamesTheLineWithoutTheField) {
  const TokenizeOptions options = {
      .corpus = {.format = CorpusFormat::kJsonLines}};
  struct Case {
    std::string line;
    std::string message_part;
  };
  for (const Case& c : std::vector<Case>{
           {R"({"txt": "a", "id": 1})", "but its fields are: \"id\", \"txt\""},
           {"{}", "but its fields are: "},
           {R"({"text": 5})", "but it is number"},
           {R"(["a"])", "but is array"},
           {R"({"text": "a")", "corpus.txt:2:1:"}}) {
    const absl::Status status =
        StatusOf("{\"text\": \"a cat\"}\n" + c.line + "\n", options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.line;
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("corpus.txt:2:"), HasSubstr(c.message_part)));
  }
}

}  // namespace
}  // namespace etc
