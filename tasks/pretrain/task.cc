#include "tasks/pretrain/task.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "etc/weights/pretraining_parameters.h"
#include "tasks/config/field_list.h"
#include "tasks/data/data_files.h"
#include "tasks/inputs/example_writer.h"
#include "tasks/pretrain/examples/example_text.h"
#include "tasks/pretrain/examples/joined_source.h"
#include "tasks/pretrain/examples/packed_source.h"
#include "tasks/pretrain/examples/pair_source.h"
#include "tasks/pretrain/examples/sentence_pairs.h"
#include "tasks/pretrain/examples/unigram_baseline.h"
#include "tasks/pretrain/examples/whole_word_masks.h"
#include "tasks/pretrain/heads/pretrain_head.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/benchmark_head.h"

namespace etc {
namespace {

// Seed of the packing of windows and of BERT's static records: the same for all
// seeds of a configuration, so that models are compared on the same data.
constexpr uint64_t kDataSeed = 1;

// Enough to tell the most frequent token.
constexpr int64_t kTokensCounted = 10'000'000;

MaskedLmOptions MaskedLmOf(const PretrainOptions& options,
                           const SpecialTokens& special) {
  return {.rate = options.mask_rate,
          .max_predictions = options.max_predictions > 0
                                 ? options.max_predictions
                                 : std::numeric_limits<int32_t>::max(),
          .whole_words = options.whole_words,
          .mask_id = special.mask_id,
          .random_min_id = static_cast<int32_t>(options.random_min_id),
          .vocab_size = special.vocab_size};
}

// The examples of a part of stores, with the stores, as Open makes them.
class CorpusSource final : public JoinedSource {
 public:
  CorpusSource(std::vector<std::unique_ptr<ExampleSource>> sources,
               Notices notices, TokenStores stores,
               const CorpusPartOptions& part, bool has_neighbours)
      : JoinedSource(std::move(sources), std::move(notices.messages)),
        warnings_(std::move(notices.warnings)),
        stores_(std::move(stores)),
        part_(part),
        has_neighbours_(has_neighbours) {}

  const std::vector<std::string>& warnings() const { return warnings_; }
  const TokenStores& stores() const { return stores_; }
  const CorpusPartOptions& part() const { return part_; }
  // True if a document, or a window of ETC, has two sentences.
  bool has_neighbours() const { return has_neighbours_; }

 private:
  const std::vector<std::string> warnings_;
  const TokenStores stores_;
  const CorpusPartOptions part_;
  const bool has_neighbours_;
};

// The first store that has a document of the part, which one of them has.
const TokenStore& FirstStoreWith(const CorpusPartOptions& part,
                                 const TokenStores& stores) {
  CorpusCounts ignored;
  return **std::find_if(stores.begin(), stores.end(), [&](const auto& store) {
    return SelectDocuments(*store, part, &ignored).ok();
  });
}

// A warning if sentences take all global tokens of sequences that are less than
// a quarter full of long ones; empty: they do not. One sequence may be short
// because there is no more text.
std::string ShortSequencesWarning(const std::string& path,
                                  const CorpusCounts& counts,
                                  const PackingOptions& packing) {
  const int64_t sequences = counts.sequences;
  if (sequences < 2 || 2 * counts.sentences < sequences * packing.max_global ||
      4 * counts.tokens >= sequences * packing.max_long) {
    return "";
  }
  return absl::StrCat(
      path, ": sequences have ", counts.tokens / sequences,
      " tokens on average of data.max_long_length ", packing.max_long,
      ": data.max_global_length ", packing.max_global,
      ", a global token a sentence, ends them; take more global tokens, or "
      "longer sentences (`tokenize --format bert` makes each line one)");
}

// Checks that the model has the rows that examples need, and the vocabulary the
// pieces.
absl::Status CheckModel(const RunConfig& config, const PretrainOptions& options,
                        int64_t pieces) {
  const bool pairs = ReadsPairs(config);
  const int64_t pair_types = options.next_sentence() ? 2 : 1;
  const TableSizes needed = {.tokens = pairs ? 0 : options.cpc_global_id + 1,
                             .token_names = "the global tokens 1 and 2",
                             .types = pairs ? pair_types : kPlainLongType + 1};
  ETC_RETURN_IF_ERROR(CheckTables(config.model, needed, pieces,
                                  absl::StrCat(config.source, ": pretrain")));
  if (pairs && config.data.max_global_length < kShortestPair) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.source, ": data.max_global_length should be at least ",
        kShortestPair, ", for [CLS], [SEP] and text, but is ",
        config.data.max_global_length));
  }
  if (options.random_min_id >= pieces) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.source, ": pretrain.random_min_id should be below the ", pieces,
        " pieces of the vocabulary, but is ", options.random_min_id));
  }
  return absl::OkStatus();
}

// Returns true if a piece of the vocabulary shows that it continues a word.
bool MarksWords(const CorpusTokenizer& tokenizer) {
  return std::count(tokenizer.is_continuation.begin(),
                    tokenizer.is_continuation.end(), 1) > 0;
}

constexpr char kUnmarkedWords[] =
    " has no piece that is marked as continuing a word: each is masked by "
    "itself";

}  // namespace

PretrainTask::PretrainTask(const RunConfig& config, PretrainOptions options,
                           CorpusTokenizer tokenizer, SpecialTokens special)
    : config_(config),
      options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
      special_(special) {}

absl::StatusOr<std::unique_ptr<Task>> PretrainTask::Make(
    const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  ETC_ASSIGN_OR_RETURN(PretrainOptions options, ReadPretrainOptions(config));
  const absl::StatusOr<SpecialTokens> special =
      ReadsPairs(config) ? FindPairTokens(*tokenizer, options.mask_piece)
                         : FindSpecialTokens(*tokenizer, options.mask_piece);
  if (!special.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.tokenizer.vocabulary, ": ", special.status().message()));
  }
  ETC_RETURN_IF_ERROR(CheckModel(config, options, tokenizer->vocab_size()));
  ETC_ASSIGN_OR_RETURN(
      CorpusTokenizer corpus,
      MakeCorpusTokenizer(config.tokenizer, std::move(tokenizer),
                          options.mask_piece));
  // The constructor is private: make_unique cannot see it.
  return std::unique_ptr<Task>(new PretrainTask(config, std::move(options),
                                                std::move(corpus), *special));
}

absl::StatusOr<std::unique_ptr<ExampleSource>> PretrainTask::Open(
    const DataRequest& request) const {
  const bool held_out =
      request.use == RecordUse::kEvaluation && request.patterns.empty();
  CorpusPartOptions part = {
      .development = request.use == RecordUse::kEvaluation,
      .development_one_in = 0,
      .min_sentences = options_.min_sentences,
      .max_sentences = options_.max_sentences};
  if (part.development && !held_out) {
    part.development_one_in = 1;  // all of it
  } else if (held_out || config_.data.dev.empty()) {
    part.development_one_in = options_.development_one_in;
  }
  std::vector<std::string> paths;
  if (!held_out || holds_out()) {
    ETC_ASSIGN_OR_RETURN(
        paths, FindDataFiles(held_out ? config_.data.train : request.patterns));
  }
  return OpenParts(paths, part);
}

absl::StatusOr<std::unique_ptr<ExampleSource>> PretrainTask::OpenParts(
    const std::vector<std::string>& paths,
    const CorpusPartOptions& asked) const {
  ETC_RETURN_IF_ERROR(CheckNamedOnce(paths));
  TokenStores stores;
  for (const std::string& path : paths) {
    ETC_ASSIGN_OR_RETURN(stores.emplace_back(), OpenStore(path));
  }
  const int64_t needed = options_.next_sentence() ? 2 : 1;
  const CorpusPartOptions part = HoldOutSmallest(stores, asked, needed);
  const char* const use = part.development ? "evaluation: " : "training: ";
  std::vector<std::unique_ptr<ExampleSource>> sources;
  Notices notices;
  if (part.development && part.held_out_up_to > 0) {
    notices.messages.push_back(absl::StrCat(
        use, "pretrain.development_one_in ", part.development_one_in,
        " holds out too few documents that are long enough; held out as well, "
        "by the smallest hash: up to ",
        Counted(needed, "document"),
        " of a store (choose a smaller number for more)"));
  }
  absl::Status without_documents;  // of the first such store
  bool has_neighbours = false;
  for (const auto& store : stores) {
    absl::StatusOr<Opened> opened = OpenPart(store, part);
    if (absl::IsFailedPrecondition(opened.status())) {
      without_documents.Update(opened.status());
      notices.messages.push_back(
          absl::StrCat(use, "left out ", opened.status().message()));
      continue;
    }
    ETC_RETURN_IF_ERROR(opened.status());
    sources.push_back(std::move(opened->source));
    has_neighbours = has_neighbours || opened->has_neighbours;
    notices.messages.push_back(
        absl::StrCat(use, store->path(), ": ", opened->description));
    if (!opened->warning.empty()) {
      notices.warnings.push_back(std::move(opened->warning));
    }
  }
  if (sources.empty() && !without_documents.ok()) {
    return without_documents;
  }
  return std::make_unique<CorpusSource>(std::move(sources), std::move(notices),
                                        std::move(stores), part,
                                        has_neighbours);
}

absl::StatusOr<std::shared_ptr<const TokenStore>> PretrainTask::OpenStore(
    const std::string& path) const {
  ETC_ASSIGN_OR_RETURN(std::shared_ptr<const TokenStore> store,
                       TokenStore::Open(path));
  ETC_RETURN_IF_ERROR(CheckSameTokenizer(store->settings(), tokenizer_.settings,
                                         path, config_.tokenizer.vocabulary));
  return store;
}

absl::StatusOr<PretrainTask::Opened> PretrainTask::OpenPart(
    std::shared_ptr<const TokenStore> store,
    const CorpusPartOptions& part) const {
  return ReadsPairs(config_) ? OpenPairs(std::move(store), part)
                             : OpenPacked(std::move(store), part);
}

absl::StatusOr<PretrainTask::Opened> PretrainTask::OpenPairs(
    std::shared_ptr<const TokenStore> store,
    const CorpusPartOptions& part) const {
  const PairSourceOptions options = {
      .corpus = part,
      .pairs = {.next_sentence = options_.next_sentence(),
                .max_length = config_.data.max_global_length,
                .short_sequence_rate = options_.short_sequence_rate,
                .cls_id = special_.cls_id,
                .separator_id = special_.separator_id,
                .mlm = MaskedLmOf(options_, special_)},
      .static_versions = options_.static_versions,
      .mixed_documents = options_.mixed_documents,
      .seed = kDataSeed,
      .pattern = InputOptionsOf(config_.model).pattern};
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<PairSource> source,
                       PairSource::Open(std::move(store), options));
  const CorpusCounts& counts = source->counts();
  std::string description = DescribeCounts(counts, options.corpus);
  const bool has_neighbours = counts.sentences > counts.documents;
  return Opened{.source = std::move(source),
                .description = std::move(description),
                .has_neighbours = has_neighbours};
}

absl::StatusOr<PretrainTask::Opened> PretrainTask::OpenPacked(
    std::shared_ptr<const TokenStore> store,
    const CorpusPartOptions& part) const {
  const std::string path = store->path();
  const PackedSourceOptions options = {
      .corpus = part,
      .packing = {.max_long = config_.data.max_long_length,
                  .max_global = config_.data.max_global_length,
                  .min_fraction = options_.packing_full,
                  .max_cache = options_.packing_open},
      .max_sentence_share = options_.max_sentence_share,
      .example = {.mlm = MaskedLmOf(options_, special_),
                  .cpc_rate =
                      options_.objective == "mlm_cpc" ? options_.cpc_rate : 0,
                  .hidden_global_id =
                      static_cast<int32_t>(options_.cpc_global_id),
                  .pattern = InputOptionsOf(config_.model).pattern},
      .seed = kDataSeed};
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<PackedSource> source,
                       PackedSource::Open(std::move(store), options));
  const CorpusCounts& counts = source->counts();
  std::string description = DescribeCounts(counts, options.corpus);
  std::string warning =
      part.development ? ""
                       : ShortSequencesWarning(path, counts, options.packing);
  const bool has_neighbours = absl::c_any_of(
      source->windows(),
      [](const Window& window) { return window.num_sentences > 1; });
  return Opened{.source = std::move(source),
                .description = std::move(description),
                .warning = std::move(warning),
                .has_neighbours = has_neighbours};
}

absl::Status PretrainTask::CheckObjective(bool has_neighbours) const {
  const std::string& objective = options_.objective;
  if (has_neighbours || objective == "mlm") {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      config_.source, ": pretrain.objective ", objective, " should have ",
      options_.next_sentence()
          ? "documents of two sentences or more, one of which follows another"
          : "windows of two sentences or more, some of which it hides",
      ", but all of data.train are of one (pretrain.max_sentences",
      options_.next_sentence() ? "" : ", data.max_global_length",
      "); the objective mlm does without"));
}

absl::StatusOr<Notices> PretrainTask::DescribeData(
    const ExampleSource& train, const ExampleSource& dev) const {
  const auto& training = dynamic_cast<const CorpusSource&>(train);
  const auto& evaluation = dynamic_cast<const CorpusSource&>(dev);
  Notices notices;
  for (const CorpusSource* source : {&training, &evaluation}) {
    absl::c_copy(source->descriptions(), std::back_inserter(notices.messages));
    absl::c_copy(source->warnings(), std::back_inserter(notices.warnings));
  }
  ETC_RETURN_IF_ERROR(CheckObjective(training.has_neighbours()));
  const int64_t shared = config_.data.dev.empty()
                             ? 0
                             : CountShared(evaluation.stores(),
                                           training.stores(), training.part());
  if (shared > 0) {
    notices.warnings.push_back(absl::StrCat(
        "data.dev and data.train share ", Counted(shared, "document"),
        ": scores are of text that the model is trained on"));
  }
  if (options_.whole_words && !MarksWords(tokenizer_)) {
    if (config_.task_options.contains("whole_words")) {
      return absl::InvalidArgumentError(absl::StrCat(
          config_.source, ": pretrain.whole_words should be false: ",
          config_.tokenizer.vocabulary, kUnmarkedWords));
    }
    notices.warnings.push_back(absl::StrCat(
        "whole words: ", config_.tokenizer.vocabulary, kUnmarkedWords));
  } else if (options_.whole_words) {
    ETC_ASSIGN_OR_RETURN(std::string warning, CheckWholeWordMasks(train));
    if (!warning.empty()) {
      notices.warnings.push_back(std::move(warning));
    }
  }
  if (dev.size() == 0) {
    return notices;
  }
  ETC_ASSIGN_OR_RETURN(
      const UnigramBaseline baseline,
      ComputeUnigramBaseline(
          FirstStoreWith(training.part(), training.stores()), dev,
          {.corpus = training.part(), .max_training_tokens = kTokensCounted}));
  notices.messages.push_back(absl::StrFormat(
      "always answering \"%s\" gives masked_lm_accuracy %.4f",
      tokenizer_.tokenizer->Piece(baseline.token), baseline.accuracy));
  return notices;
}

std::shared_ptr<TaskHead> PretrainTask::MakeHead() const {
  return std::make_shared<PretrainHead>(config_.model, options_);
}

std::unique_ptr<TaskPredictions> PretrainTask::MakePredictions() const {
  return std::make_unique<PretrainMetrics>(options_);
}

std::vector<GlobalTokenName> PretrainTask::GlobalTokenNames() const {
  std::vector<GlobalTokenName> names;
  if (!ReadsPairs(config_)) {
    const PackedExampleOptions ids;
    names.push_back({"sentence", ids.sentence_global_id});
    if (options_.cpc_global_id != ids.sentence_global_id) {
      names.push_back(
          {"hidden sentence", static_cast<int32_t>(options_.cpc_global_id)});
    }
  }
  return names;
}

std::string PretrainTask::Describe(const Example& example) const {
  return DescribePretrainExample(ExampleAs<PretrainExample>(example),
                                 *tokenizer_.tokenizer);
}

TaskEntry PretrainEntry() {
  return {.name = kPretrainingTask,
          .description =
              "Pre-training: masked tokens, and next or hidden "
              "sentences",
          .fields = DescribeTable<PretrainOptions>(kPretrainingTask),
          .make = PretrainTask::Make,
          .serves_bert = true,
          .make_head = [](const RunConfig& config)
              -> absl::StatusOr<std::shared_ptr<TaskHead>> {
            ETC_ASSIGN_OR_RETURN(const PretrainOptions options,
                                 ReadPretrainOptions(config));
            return std::make_shared<PretrainHead>(config.model, options);
          }};
}

}  // namespace etc
