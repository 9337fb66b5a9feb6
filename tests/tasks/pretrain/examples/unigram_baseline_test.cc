// The accuracy of always answering the most frequent token.

#include "tasks/pretrain/examples/unigram_baseline.h"

#include <cstdint>
#include <map>

#include "gtest/gtest.h"
#include "tasks/pretrain/examples/packed_source.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/pretrain/random_documents.h"

namespace etc {
namespace {

// Development examples with given labels.
class LabelSource : public ExampleSource {
 public:
  explicit LabelSource(std::vector<std::vector<int32_t>> labels)
      : labels_(std::move(labels)) {}

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    EXPECT_EQ(request, RequestForEvaluation(request.record));
    auto example = std::make_shared<PretrainExample>();
    example->masked_labels = labels_[static_cast<size_t>(request.record)];
    return Examples{example};
  }

 private:
  std::vector<std::vector<int32_t>> labels_;
};

TEST(UnigramBaselineTest, IsTheShareOfTheMostFrequentTrainingToken) {
  const TemporaryDirectory directory;
  const auto store = MakeToyStore(
      directory.File("corpus.tokens"),
      {{{10, 20, 20}, {20, 30}}, {{10, 10}}, {{10, 10, 10, 10, 10, 10}}});
  UnigramBaselineOptions options{.corpus = {.development_one_in = 0}};
  const LabelSource development({{10, 20}, {}, {30, 10, 10, 20}});
  auto baseline = ComputeUnigramBaseline(*store, development, options);
  ASSERT_TRUE(baseline.ok()) << baseline.status();
  EXPECT_EQ(baseline->token, 10);
  EXPECT_DOUBLE_EQ(baseline->accuracy, 3.0 / 6);
  EXPECT_EQ(baseline->num_labels, 6);

  // Only the first document is read: the limit is reached within it.
  options.max_training_tokens = 4;
  baseline = ComputeUnigramBaseline(*store, development, options);
  EXPECT_EQ(baseline->token, 20);
  EXPECT_DOUBLE_EQ(baseline->accuracy, 2.0 / 6);

  const auto none =
      ComputeUnigramBaseline(*store, LabelSource({{}, {}}), options);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
}

// Held-out documents are not counted, and their masks are those that an
// evaluation has.
TEST(UnigramBaselineTest, CountsTrainingDocumentsOnly) {
  const TemporaryDirectory directory;
  const auto store =
      MakeToyStore(directory.File("corpus.tokens"), RandomDocuments());
  PackedSourceOptions options{
      .corpus = {.development = true, .development_one_in = 3},
      .packing = {.max_long = 64, .max_global = 16},
      .example = {.mlm = {.mask_id = 3, .vocab_size = kToyVocabSize}}};
  const auto development = PackedSource::Open(store, options);
  ASSERT_TRUE(development.ok()) << development.status();
  const auto baseline =
      ComputeUnigramBaseline(*store, **development, {.corpus = options.corpus});
  ASSERT_TRUE(baseline.ok()) << baseline.status();
  options.corpus.development = false;
  std::map<int32_t, int64_t> counts;
  for (const SentenceRange& d : DocumentsOf(*store, options.corpus)) {
    for (int64_t t = store->first_token(d.begin); t < store->first_token(d.end);
         ++t) {
      ++counts[store->token(t)];
    }
  }
  for (const auto& [token, count] : counts) {
    EXPECT_LE(count, counts[baseline->token]) << token;
  }
}

}  // namespace
}  // namespace etc
