// Division of a corpus into pieces and documents, in the three formats
// (doc/pretraining.md 1 and 8): the ends of sentences, paragraphs, documents.
// BERT's rules are the official ones, those of running text ours. Batches must
// not depend on how the file comes, and lines are counted for messages.

#include "tasks/pretrain/corpus/corpus_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/gzip_member.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class CorpusReaderTest : public testing::Test {
 protected:
  // "<line>:<text>" of each piece, line feeds as "/", and "|" behind each
  // document.
  std::vector<std::string> Read(CorpusOptions options) {
    CorpusReader reader(std::move(options));
    std::vector<std::string> shown;
    CorpusBatch batch;
    while (true) {
      const absl::StatusOr<bool> has_more = reader.Next(&batch);
      EXPECT_TRUE(has_more.ok()) << has_more.status();
      if (!has_more.ok() || !*has_more) {
        return shown;
      }
      for (const CorpusPiece& piece : batch.pieces) {
        if (piece.begin < piece.end) {
          shown.push_back(absl::StrCat(
              piece.line, ":",
              absl::StrReplaceAll(
                  batch.text.substr(piece.begin, piece.end - piece.begin),
                  {{"\n", "/"}})));
        }
        // Several in a row are one.
        if (piece.ends_document && !shown.empty() && shown.back() != "|") {
          shown.emplace_back("|");
        }
      }
    }
  }

  std::vector<std::string> ReadText(const std::string& text,
                                    CorpusOptions options) {
    options.files = {directory_.Write("corpus.txt", text)};
    return Read(std::move(options));
  }

  TemporaryDirectory directory_;
};

TEST_F(CorpusReaderTest, TakesASentenceALineAndEndsDocumentsAtBlankLines) {
  EXPECT_THAT(
      ReadText("one\n  two \t\n\n \t \nthree\r\n\r\nfour", {}),
      ElementsAre("1:one", "2:two", "|", "5:three", "|", "7:four", "|"));
  EXPECT_THAT(ReadText("\xEF\xBB\xBF"
                       "one\n",
                       {}),
              ElementsAre("1:one", "|"));
  EXPECT_THAT(ReadText("", {}), IsEmpty());
  EXPECT_THAT(ReadText("\n \n\n", {}), IsEmpty());
}

TEST_F(CorpusReaderTest, EndsADocumentAtTheEndOfAFileUnlessGlued) {
  const std::vector<std::string> files = {directory_.Write("a", "one\n\ntwo\n"),
                                          directory_.Write("b", "three\n"),
                                          directory_.Write("c", "\nfour")};
  EXPECT_THAT(
      Read({.files = files}),
      ElementsAre("1:one", "|", "3:two", "|", "1:three", "|", "2:four", "|"));
  // The official program's order.
  EXPECT_THAT(Read({.files = files, .glue_files = true}),
              ElementsAre("1:one", "|", "3:two", "1:three", "|", "2:four"));
}

TEST_F(CorpusReaderTest, JoinsLinesToParagraphs) {
  const std::string text = "a\nb\n\nc\n\n\nd\r\ne\n\n\n\n\nf";
  const CorpusFormat kText = CorpusFormat::kText;
  EXPECT_THAT(ReadText(text, {.format = kText}),
              ElementsAre("1:a/b", "4:c", "7:d/e", "13:f", "|"));
  EXPECT_THAT(ReadText(text, {.format = kText, .blank_lines = 1}),
              ElementsAre("1:a/b", "|", "4:c", "|", "7:d/e", "|", "13:f", "|"));
  EXPECT_THAT(ReadText(text, {.format = kText, .blank_lines = 2}),
              ElementsAre("1:a/b", "4:c", "|", "7:d/e", "|", "13:f", "|"));
  EXPECT_THAT(ReadText(text, {.format = kText, .blank_lines = 3}),
              ElementsAre("1:a/b", "4:c", "7:d/e", "|", "13:f", "|"));
}

TEST_F(CorpusReaderTest, KnowsTheLayoutOfWikiText) {
  EXPECT_THAT(
      ReadText(" \n = Cat = \n \n A cat . \n = = Food = = \n Milk . \n \n"
               " = Dog = \n A dog . \n",
               {.format = CorpusFormat::kText, .wikitext = true}),
      ElementsAre("2: = Cat = ", "4: A cat . ", "5: = = Food = = ",
                  "6: Milk . ", "|", "8: = Dog = ", "9: A dog . ", "|"));
}

TEST_F(CorpusReaderTest, KnowsTitles) {
  for (const char* title : {" = Cat = ", "= Cat and dog =", "= A = B ="}) {
    EXPECT_TRUE(IsWikiTitle(title)) << title;
  }
  for (const char* other : {" = = Food = = ", "=Cat=", "= =", "=", "", "a = b",
                            "= = = Milk = = =", "= Cat"}) {
    EXPECT_FALSE(IsWikiTitle(other)) << other;
  }
}

TEST_F(CorpusReaderTest, TakesARecordALine) {
  EXPECT_THAT(
      ReadText("{\"a\": 1}\n\n {} \n", {.format = CorpusFormat::kJsonLines}),
      ElementsAre("1:{\"a\": 1}", "|", "3: {} ", "|"));
}

// Members of many sizes, whose borders fall anywhere in lines.
TEST_F(CorpusReaderTest, ReadsGzipLikePlainFiles) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) {
    absl::StrAppend(&text, "line ", i, i % 50 == 0 ? "\n\n" : "\n");
  }
  const std::vector<std::string> plain = ReadText(text, {});
  EXPECT_GT(plain.size(), 60'000u);
  const size_t third = text.size() / 3;
  const std::string packed = GzipMember(text.substr(0, third)) +
                             GzipMember("") + GzipMember(text.substr(third));
  EXPECT_EQ(Read({.files = {directory_.Write("packed", packed)}}), plain);

  CorpusReader reader({.files = {directory_.Write(
                           "cut", packed.substr(0, packed.size() - 9))}});
  CorpusBatch batch;
  absl::StatusOr<bool> has_more = true;
  while (has_more.ok() && *has_more) {
    has_more = reader.Next(&batch);
  }
  EXPECT_EQ(has_more.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(has_more.status().message(), HasSubstr(directory_.File("cut")));
}

TEST_F(CorpusReaderTest, CutsBatchesAtPiecesAndCountsBytes) {
  std::string text;
  for (int i = 0; i < 30'000; ++i) {
    absl::StrAppend(&text, "a sentence of some bytes, number ", i, "\n");
  }
  const std::vector<std::string> files = {directory_.Write("a", text),
                                          directory_.Write("b", "end\n")};
  CorpusReader reader({.files = files});
  EXPECT_EQ(*reader.CountBytes(), text.size() + 4);
  CorpusBatch batch;
  int64_t batches = 0;
  while (*reader.Next(&batch)) {
    ++batches;
    EXPECT_LT(batch.text.size(), (size_t{1} << 18) + 100);
    EXPECT_LE(batch.bytes_read, text.size() + 4);
  }
  EXPECT_EQ(batches, 6);
}

TEST_F(CorpusReaderTest, CutsAParagraphWithoutEndAtLineEnds) {
  std::string text;
  while (text.size() < 3'000'000) {
    text += "a line of a file that has no blank ones\n";
  }
  EXPECT_EQ(ReadText(text, {.format = CorpusFormat::kText}).size(), 3u + 1);
}

TEST_F(CorpusReaderTest, RefusesALineThatIsTooLong) {
  const std::string path =
      directory_.Write("long", "one\n" + std::string(100, 'x') + "\nthree\n");
  CorpusReader reader({.files = {path}, .max_line_bytes = 99});
  CorpusBatch batch;
  const absl::Status status = reader.Next(&batch).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            path +
                ":2: a line should have at most 99 bytes, but this one has "
                "more");
  // Also one that goes on beyond what is read at once.
  const std::string endless =
      directory_.Write("endless", std::string(3'000'000, 'x'));
  CorpusReader other({.files = {endless}, .max_line_bytes = 2'000'000});
  EXPECT_EQ(other.Next(&batch).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// Named before anything is tokenized, and not read as noise.
TEST_F(CorpusReaderTest, RefusesWhatOtherProgramsHavePacked) {
  std::string tar(1024, '\0');
  tar.replace(0, 5, "a.txt");
  tar.replace(257, 5, "ustar");
  const std::string plain = directory_.Write("plain", "text\n");
  for (const auto& [start, message] :
       std::vector<std::pair<std::string, std::string>>{
           {std::string("\xfd"
                        "7zXZ\0",
                        6),
            "should be text, but is packed by xz: unpack it first"},
           {"BZh91AY&SY\x94", "is packed by bzip2"},
           {"\x28\xb5\x2f\xfd$", "is packed by zstd"},
           {"PK\x03\x04\x14", "is packed by zip"},
           {tar, "is packed by tar"},
           {GzipMember(tar), "is packed by tar"},
           {GzipMember(GzipMember("text\n")), "is packed by gzip"},
           {std::string("\xff\xfex\0", 4), "begins as UTF-16 does"},
           {std::string("\xfe\xff\0a", 4), "begins as UTF-16 does"},
           {std::string("\xff\xfe\0\0a\0\0\0", 8), "begins as UTF-32 does"},
           {std::string("\0\0\xfe\xff\0\0\0a", 8), "begins as UTF-32 does"}}) {
    const std::string path = directory_.Write("corpus", start);
    const absl::Status status =
        CorpusReader({.files = {plain, path}}).CountBytes().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(path + " "), HasSubstr(message)));
  }
  // A text that speaks of them.
  const std::string text = "BZh9\nustar\nPK\n";
  EXPECT_THAT(ReadText(text, {}),
              ElementsAre("1:BZh9", "2:ustar", "3:PK", "|"));
}

// Its bytes are not known before. A signal ends the waiting for them.
TEST_F(CorpusReaderTest, WaitsForStandardInputUntilItIsStopped) {
  const std::atomic<bool> stop = true;
  CorpusReader reader({.files = {kCorpusOnStandardInput}}, &stop);
  EXPECT_EQ(*reader.CountBytes(), 0u);
  CorpusBatch batch;
  EXPECT_EQ(reader.Next(&batch).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(CorpusReaderTest, NamesAFileThatIsNotThere) {
  CorpusReader reader({.files = {"/nowhere/a.txt"}});
  EXPECT_THAT(reader.CountBytes().status().message(),
              HasSubstr("/nowhere/a.txt"));
}

}  // namespace
}  // namespace etc
