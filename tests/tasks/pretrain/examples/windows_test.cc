// Windows hold every token of their documents once, in order, and no more than
// an input takes; sentences that are too long are cut at words.

#include "tasks/pretrain/examples/windows.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/pretrain/random_documents.h"

namespace etc {
namespace {

using ::testing::ElementsAre;

// The size that the table's documentation promises.
static_assert(sizeof(Window) == 16);

class WindowsTest : public testing::Test {
 protected:
  std::shared_ptr<const TokenStore> Store(
      const std::vector<ToyDocument>& documents) {
    return MakeToyStore(directory_.File("corpus.tokens"), documents);
  }

  TemporaryDirectory directory_;
};

std::vector<SentenceRange> AllDocuments(const TokenStore& store) {
  return DocumentsOf(store, {.development_one_in = 0});
}

TEST_F(WindowsTest, HoldAllTokensOfTheirDocumentsInOrder) {
  const std::vector<ToyDocument> documents = RandomDocuments(
      {.num_documents = 80, .max_sentences = 40, .max_tokens = 30});
  const auto store = Store(documents);
  const WindowOptions options{
      .max_tokens = 64,
      .max_sentences = 8,
      .sentences = {.max_tokens = 16, .min_graceful = 8}};
  CorpusCounts counts;
  const std::vector<Window> windows =
      *MakeWindows(*store, AllDocuments(*store), options, &counts);
  EXPECT_EQ(counts.windows, static_cast<int64_t>(windows.size()));
  EXPECT_GT(counts.cut_sentences, 0);
  std::vector<int32_t> tokens;
  for (const Window& window : windows) {
    EXPECT_EQ(window.first_token, static_cast<int64_t>(tokens.size()));
    EXPECT_LE(window.num_tokens, 64);
    EXPECT_LE(window.num_sentences, 8);
    const auto part = ReadWindow(*store, window, options);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ(part->pieces.size(), window.num_tokens);
    EXPECT_EQ(part->num_sentences(), window.num_sentences);
    EXPECT_EQ(part->sentence_ends.back(), window.num_tokens);
    int64_t begin = 0;
    for (const int64_t end : part->sentence_ends) {
      EXPECT_GT(end, begin);
      EXPECT_LE(end - begin, 16);
      begin = end;
    }
    tokens.insert(tokens.end(), part->pieces.ids.begin(),
                  part->pieces.ids.end());
  }
  std::vector<int32_t> expected;
  for (const ToyDocument& document : documents) {
    for (const ToySentence& sentence : document) {
      expected.insert(expected.end(), sentence.begin(), sentence.end());
    }
  }
  EXPECT_EQ(tokens, expected);
}

TEST_F(WindowsTest, BeginAndEndWithinCutSentences) {
  // Ten tokens of which every second one continues a word, and two more.
  const auto store =
      Store({{{100, 101, 102, 103, 104, 105, 106, 107, 108, 109}, {110, 112}}});
  const WindowOptions options{
      .max_tokens = 6,
      .max_sentences = 9,
      .sentences = {.max_tokens = 3, .min_graceful = 2}};
  CorpusCounts counts;
  const std::vector<Window> windows =
      *MakeWindows(*store, AllDocuments(*store), options, &counts);
  EXPECT_EQ(counts.cut_sentences, 1);
  // Pieces of 2, 2, 2, 2 and 2 tokens, and a sentence of 2, in two windows.
  ASSERT_EQ(windows.size(), 2);
  const auto first = ReadWindow(*store, windows[0], options);
  EXPECT_THAT(first->pieces.ids, ElementsAre(100, 101, 102, 103, 104, 105));
  EXPECT_THAT(first->sentence_ends, ElementsAre(2, 4, 6));
  const auto second = ReadWindow(*store, windows[1], options);
  EXPECT_THAT(second->pieces.ids, ElementsAre(106, 107, 108, 109, 110, 112));
  EXPECT_THAT(second->pieces.continues_word, ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(second->sentence_ends, ElementsAre(2, 4, 6));
}

TEST_F(WindowsTest, OfOtherOptionsAreNotRead) {
  const auto store = Store({{{10, 12, 14, 16}}});
  const WindowOptions options{
      .max_tokens = 4, .max_sentences = 4, .sentences = {.max_tokens = 4}};
  CorpusCounts counts;
  const std::vector<Window> windows =
      *MakeWindows(*store, AllDocuments(*store), options, &counts);
  WindowOptions other = options;
  other.sentences.max_tokens = 2;
  EXPECT_ANY_THROW((void)ReadWindow(*store, windows[0], other));
  other.sentences.max_tokens = 5;
  EXPECT_ANY_THROW(static_cast<void>(
      MakeWindows(*store, AllDocuments(*store), other, &counts)));
}

// Their sentences are found in the index, whose pages are gone with its bytes.
TEST_F(WindowsTest, OfAFileThatIsWrittenOverAreNotRead) {
  const auto store = Store({{{10, 12, 14, 16}}});
  const WindowOptions options{
      .max_tokens = 4, .max_sentences = 4, .sentences = {.max_tokens = 4}};
  CorpusCounts counts;
  const std::vector<Window> windows =
      *MakeWindows(*store, AllDocuments(*store), options, &counts);
  std::filesystem::resize_file(store->path(), 0);
  EXPECT_EQ(ReadWindow(*store, windows[0], options).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace etc
