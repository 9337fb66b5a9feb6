#include "tasks/pretrain/examples/unigram_baseline.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/pretrain/pretrain_example.h"

namespace etc {
namespace {

// The most frequent token of the training part.
absl::StatusOr<int32_t> MostFrequentTrainingToken(
    const TokenStore& store, const UnigramBaselineOptions& options) {
  CorpusPartOptions training = options.corpus;
  training.development = false;
  CorpusCounts counts;
  ETC_ASSIGN_OR_RETURN(const std::vector<SentenceRange> documents,
                       SelectDocuments(store, training, &counts));
  std::vector<int64_t> frequencies(
      static_cast<size_t>(store.settings().vocab_size), 0);
  int64_t num_tokens = 0;
  for (const SentenceRange& document : documents) {
    if (num_tokens >= options.max_training_tokens) {
      break;
    }
    ETC_RETURN_IF_ERROR(store.CheckUnchanged());
    const int64_t begin = store.first_token(document.begin);
    const int64_t end = store.first_token(document.end);
    ETC_RETURN_IF_ERROR(store.CheckTokens(begin, end));
    for (int64_t i = begin; i < end; ++i) {
      ++frequencies[static_cast<size_t>(store.token(i))];
    }
    num_tokens += end - begin;
  }
  const auto most = std::max_element(frequencies.begin(), frequencies.end());
  return static_cast<int32_t>(most - frequencies.begin());
}

}  // namespace

absl::StatusOr<UnigramBaseline> ComputeUnigramBaseline(
    const TokenStore& store, const ExampleSource& development,
    const UnigramBaselineOptions& options) {
  UnigramBaseline baseline;
  ETC_ASSIGN_OR_RETURN(baseline.token,
                       MostFrequentTrainingToken(store, options));
  int64_t hits = 0;
  for (int64_t record = 0; record < development.size(); ++record) {
    ETC_ASSIGN_OR_RETURN(const Examples examples,
                         development.Make(RequestForEvaluation(record)));
    for (const auto& example : examples) {
      const std::vector<int32_t>& labels =
          dynamic_cast<const PretrainExample&>(*example).masked_labels;
      hits += std::count(labels.begin(), labels.end(), baseline.token);
      baseline.num_labels += static_cast<int64_t>(labels.size());
    }
  }
  if (baseline.num_labels == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        store.path(), ": the development examples have no masked token"));
  }
  baseline.accuracy =
      static_cast<double>(hits) / static_cast<double>(baseline.num_labels);
  return baseline;
}

}  // namespace etc
