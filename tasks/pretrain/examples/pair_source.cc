#include "tasks/pretrain/examples/pair_source.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/pretrain/pretrain_example.h"

namespace etc {
namespace {

int64_t CountLongSentences(const TokenStore& store,
                           const std::vector<SentenceRange>& documents,
                           int64_t most) {
  int64_t count = 0;
  for (const SentenceRange& document : documents) {
    for (int64_t s = document.begin; s < document.end; ++s) {
      count += store.first_token(s + 1) - store.first_token(s) > most ? 1 : 0;
    }
  }
  return count;
}

std::shared_ptr<PretrainExample> ToExample(SentencePair pair,
                                           const PairSourceOptions& options) {
  auto example = std::make_shared<PretrainExample>();
  example->global_token_ids = std::move(pair.tokens);
  example->global_type_ids = std::move(pair.types);
  example->masked_positions = std::move(pair.masked.positions);
  example->masked_labels = std::move(pair.masked.labels);
  example->masks_wanted = pair.masked.wanted;
  if (options.pairs.next_sentence) {
    example->next_sentence = pair.random_next ? 1 : 0;
  }
  example->pattern = UnrestrictedPattern(
      /*long_length=*/0, example->global_length(), options.pattern.local_radius,
      options.pattern.relative_pos_max_distance);
  return example;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PairSource>> PairSource::Open(
    std::shared_ptr<const TokenStore> store, const PairSourceOptions& options) {
  CorpusCounts counts;
  ETC_ASSIGN_OR_RETURN(std::vector<SentenceRange> documents,
                       SelectDocuments(*store, options.corpus, &counts));
  if (options.pairs.next_sentence && documents.size() == 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        store->path(), ": the ",
        options.corpus.development ? "development" : "training",
        " part has one document, but next-sentence prediction (mlm_nsp) needs ",
        "two, to draw a random next text from the other; max_sentences divides "
        "longer documents"));
  }
  counts.cut_sentences =
      CountLongSentences(*store, documents, options.pairs.room());
  std::unique_ptr<PairSource> source(
      new PairSource(std::move(store), options, std::move(documents), counts));
  ETC_RETURN_IF_ERROR(source->MixDocuments());
  ETC_RETURN_IF_ERROR(source->ExpectPairs());
  return source;
}

PairSource::PairSource(std::shared_ptr<const TokenStore> store,
                       const PairSourceOptions& options,
                       std::vector<SentenceRange> documents,
                       CorpusCounts counts)
    : store_(std::move(store)),
      options_(options),
      seed_(options.corpus.development ? 0 : options.seed),
      num_versions_(options.corpus.development
                        ? std::min<int64_t>(options.static_versions, 1)
                        : options.static_versions),
      mixed_documents_(options.corpus.development ? 1
                                                  : options.mixed_documents),
      documents_(store_.get(), std::move(documents)),
      counts_(counts) {}

absl::Status PairSource::MixDocuments() {
  if (mixed_documents_ == 1) {
    return absl::OkStatus();
  }
  if (num_versions() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("static_versions make ", num_versions(),
                           " versions of documents, but at most 2^31 - 1 can "
                           "be mixed");
  }
  order_ =
      KeyedDraws({seed_, static_cast<uint64_t>(DrawPurpose::kDocumentOrder)})
          .Permutation(static_cast<int32_t>(num_versions()));
  return absl::OkStatus();
}

int64_t PairSource::num_versions() const {
  return documents_.size() * std::max<int64_t>(num_versions_, 1);
}

int64_t PairSource::size() const {
  return (num_versions() + mixed_documents_ - 1) / mixed_documents_;
}

absl::Status PairSource::ExpectPairs() {
  constexpr int64_t kDocuments = 100;
  constexpr size_t kPairs = 2000;
  Examples examples;
  int64_t tokens = 0;
  const int64_t interval = std::max<int64_t>(documents_.size() / kDocuments, 1);
  for (int64_t d = 0; d < documents_.size() && examples.size() < kPairs;
       d += interval) {
    ETC_RETURN_IF_ERROR(AddPairs(d, /*key=*/0, &examples));
    const SentenceRange range = documents_.Range(d);
    tokens += store_->first_token(range.end) - store_->first_token(range.begin);
  }
  const double per_token = static_cast<double>(examples.size()) /
                           static_cast<double>(std::max<int64_t>(tokens, 1));
  expected_examples_ =
      std::llround(per_token * static_cast<double>(counts_.tokens)) *
      std::max<int64_t>(num_versions_, 1);
  return absl::OkStatus();
}

absl::Status PairSource::AddPairs(int64_t version, uint64_t key,
                                  Examples* examples) const {
  // Versions of one document are far apart, as those of the passes of BERT's
  // generator.
  const int64_t document = version % documents_.size();
  const auto purpose = static_cast<uint64_t>(DrawPurpose::kInstances);
  KeyedDraws draws =
      depends_on_key()
          ? KeyedDraws({key, static_cast<uint64_t>(document), purpose})
          : KeyedDraws({seed_, static_cast<uint64_t>(version), purpose});
  ETC_ASSIGN_OR_RETURN(
      std::vector<SentencePair> pairs,
      CreateInstances(documents_, document, options_.pairs, draws));
  for (size_t p = 0; p < pairs.size(); ++p) {
    const auto example = ToExample(std::move(pairs[p]), options_);
    example->record_id =
        absl::StrCat("document at sentence ", documents_.Range(document).begin,
                     options_.pairs.next_sentence ? ", pair " : ", text ", p);
    examples->push_back(example);
  }
  return absl::OkStatus();
}

absl::StatusOr<Examples> PairSource::Make(RecordRequest request) const {
  Examples examples;
  if (order_.empty()) {
    ETC_RETURN_IF_ERROR(AddPairs(request.record, request.key, &examples));
    return examples;
  }
  const int64_t begin = request.record * mixed_documents_;
  const int64_t end = std::min(begin + mixed_documents_, num_versions());
  for (int64_t i = begin; i < end; ++i) {
    ETC_RETURN_IF_ERROR(
        AddPairs(order_[static_cast<size_t>(i)], request.key, &examples));
  }
  KeyedDraws draws({depends_on_key() ? request.key : seed_,
                    static_cast<uint64_t>(request.record),
                    static_cast<uint64_t>(DrawPurpose::kPairOrder)});
  Examples mixed;
  for (const int32_t i :
       draws.Permutation(static_cast<int32_t>(examples.size()))) {
    mixed.push_back(examples[static_cast<size_t>(i)]);
  }
  return mixed;
}

}  // namespace etc
