// The check that whole words can be masked, on documents of one sentence of 60
// tokens, of which 9 are to be masked: all of them words of their own, or one
// word.

#include "tasks/pretrain/examples/whole_word_masks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/pretrain/examples/packed_source.h"
#include "tasks/pretrain/examples/pair_source.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/pretrain/random_documents.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// `size` documents: those whose number is a multiple of `spaced` have a word
// for each token, the others one word.
std::vector<ToyDocument> Documents(int32_t size, int32_t spaced) {
  std::vector<ToyDocument> documents;
  for (int32_t d = 0; d < size; ++d) {
    // Odd ids continue a word.
    ToySentence sentence(60, d % spaced == 0 ? 12 : 13);
    sentence.front() = 10 + 2 * d;
    documents.push_back({sentence});
  }
  return documents;
}

class WholeWordMasksTest : public testing::Test {
 protected:
  std::shared_ptr<const TokenStore> Store(
      const std::vector<ToyDocument>& documents) {
    return MakeToyStore(directory_.File("corpus.tokens"), documents);
  }
  std::unique_ptr<PackedSource> Packed(
      const std::vector<ToyDocument>& documents, bool whole_words) {
    auto source = PackedSource::Open(
        Store(documents), {.corpus = {.development_one_in = 0},
                           .packing = {.max_long = 64, .max_global = 16},
                           .max_sentence_share = 1,
                           .example = {.mlm = {.whole_words = whole_words,
                                               .mask_id = 3,
                                               .vocab_size = kToyVocabSize},
                                       .cpc_rate = 0}});
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }

  TemporaryDirectory directory_;
};

TEST_F(WholeWordMasksTest, AreFoundWhereThereAreWords) {
  for (const bool whole_words : {false, true}) {
    const auto warning =
        CheckWholeWordMasks(*Packed(Documents(40, 1), whole_words));
    ASSERT_TRUE(warning.ok()) << warning.status();
    EXPECT_EQ(*warning, "");
  }
}

TEST_F(WholeWordMasksTest, AreRefusedWhereThereAreNone) {
  const std::vector<ToyDocument> documents = Documents(40, 1000);
  // The first one has words.
  const std::vector<ToyDocument> others(documents.begin() + 1, documents.end());
  const auto none = CheckWholeWordMasks(*Packed(others, /*whole_words=*/true));
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(none.status().message(),
              AllOf(HasSubstr("pretrain.whole_words should be false"),
                    HasSubstr("no token is masked")));
  EXPECT_EQ(*CheckWholeWordMasks(*Packed(others, /*whole_words=*/false)), "");
}

TEST_F(WholeWordMasksTest, AreWarnedOfWhereTheyAreFew) {
  EXPECT_THAT(
      *CheckWholeWordMasks(*Packed(Documents(40, 4), /*whole_words=*/true)),
      AllOf(HasSubstr("whole words: 25 % of the tokens"),
            HasSubstr("pretrain.whole_words false")));
}

// Pairs for BERT, too.
TEST_F(WholeWordMasksTest, AreCountedInPairs) {
  const auto pairs =
      PairSource::Open(Store(Documents(40, 1000)),
                       {.corpus = {.development_one_in = 0},
                        .pairs = {.max_length = 64,
                                  .short_sequence_rate = 0,
                                  .cls_id = 1,
                                  .separator_id = 2,
                                  .mlm = {.whole_words = true,
                                          .mask_id = 3,
                                          .vocab_size = kToyVocabSize}}});
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  const auto warning = CheckWholeWordMasks(**pairs);
  EXPECT_FALSE(warning.ok() && warning->empty());
}

}  // namespace
}  // namespace etc
