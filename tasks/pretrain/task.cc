#include "tasks/pretrain/task.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "etc/weights/pretraining_parameters.h"
#include "tasks/config/field_list.h"
#include "tasks/data/data_files.h"
#include "tasks/inputs/example_writer.h"
#include "tasks/pretrain/examples/example_text.h"
#include "tasks/pretrain/examples/joined_source.h"
#include "tasks/pretrain/examples/packed_source.h"
#include "tasks/pretrain/examples/pair_source.h"
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

CorpusPartOptions PartOf(const PretrainOptions& options, bool development,
                         int64_t one_in) {
  return {.development = development,
          .development_one_in = one_in,
          .min_sentences = options.min_sentences,
          .max_sentences = options.max_sentences};
}

// Checks that the model has the rows that examples need, and the vocabulary the
// pieces.
absl::Status CheckModel(const FinetuneConfig& config,
                        const PretrainOptions& options, int64_t pieces) {
  const bool pairs = ReadsPairs(config);
  const TableSizes needed = {.tokens = pairs ? 0 : options.cpc_global_id + 1,
                             .token_names = "the global tokens 1 and 2",
                             .types = pairs ? 2 : kPlainLongType + 1};
  ETC_RETURN_IF_ERROR(CheckTables(config.model, needed, pieces,
                                  absl::StrCat(config.source, ": pretrain")));
  // [CLS] A [SEP] B [SEP].
  constexpr int64_t kShortestPair = 5;
  if (pairs && config.data.max_global_length < kShortestPair) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.source, ": data.max_global_length should be at least ",
        kShortestPair, ", for pairs of texts, but is ",
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

PretrainTask::PretrainTask(const FinetuneConfig& config,
                           PretrainOptions options, CorpusTokenizer tokenizer,
                           SpecialTokens special)
    : config_(config),
      options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
      special_(special) {}

absl::StatusOr<std::unique_ptr<Task>> PretrainTask::Make(
    const FinetuneConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
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
  Part part = {.development = request.use == RecordUse::kEvaluation};
  if (held_out && holds_out()) {
    part.one_in = options_.development_one_in;
  } else if (part.development) {
    part.one_in = 1;  // all of it
  } else if (config_.data.dev.empty()) {
    part.one_in = options_.development_one_in;
  }
  std::vector<std::string> paths;
  if (!held_out || holds_out()) {
    ETC_ASSIGN_OR_RETURN(
        paths, FindDataFiles(held_out ? config_.data.train : request.patterns));
  }
  return OpenParts(paths, part);
}

absl::StatusOr<std::unique_ptr<ExampleSource>> PretrainTask::OpenParts(
    const std::vector<std::string>& paths, const Part& part) const {
  std::vector<std::unique_ptr<ExampleSource>> sources;
  std::vector<std::string> descriptions;
  absl::Status without_documents;  // of the first such store
  for (const std::string& path : paths) {
    ETC_ASSIGN_OR_RETURN(std::shared_ptr<const TokenStore> store,
                         OpenStore(path));
    absl::StatusOr<Opened> opened = OpenPart(std::move(store), part);
    const char* const use = part.development ? "evaluation: " : "training: ";
    if (absl::IsFailedPrecondition(opened.status())) {
      without_documents.Update(opened.status());
      descriptions.push_back(
          absl::StrCat(use, "left out ", opened.status().message()));
      continue;
    }
    ETC_RETURN_IF_ERROR(opened.status());
    sources.push_back(std::move(opened->source));
    descriptions.push_back(absl::StrCat(use, path, ": ", opened->description));
  }
  if (sources.empty() && !without_documents.ok()) {
    return without_documents;
  }
  return std::make_unique<JoinedSource>(std::move(sources),
                                        std::move(descriptions));
}

absl::StatusOr<std::shared_ptr<const TokenStore>> PretrainTask::OpenStore(
    const std::string& path) const {
  ETC_ASSIGN_OR_RETURN(std::shared_ptr<const TokenStore> store,
                       TokenStore::Open(path));
  ETC_RETURN_IF_ERROR(
      CheckSameTokenizer(store->settings(), tokenizer_.settings, path));
  return store;
}

absl::StatusOr<std::shared_ptr<const TokenStore>> PretrainTask::FirstStoreWith(
    const CorpusPartOptions& part) const {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                       FindDataFiles(config_.data.train));
  std::shared_ptr<const TokenStore> store;
  for (const std::string& path : paths) {
    ETC_ASSIGN_OR_RETURN(store, OpenStore(path));
    CorpusCounts ignored;
    if (SelectDocuments(*store, part, &ignored).ok()) {
      break;
    }
  }
  return store;
}

absl::StatusOr<PretrainTask::Opened> PretrainTask::OpenPart(
    std::shared_ptr<const TokenStore> store, const Part& part) const {
  return ReadsPairs(config_) ? OpenPairs(std::move(store), part)
                             : OpenPacked(std::move(store), part);
}

absl::StatusOr<PretrainTask::Opened> PretrainTask::OpenPairs(
    std::shared_ptr<const TokenStore> store, const Part& part) const {
  const PairSourceOptions options = {
      .corpus = PartOf(options_, part.development, part.one_in),
      .pairs = {.max_length = config_.data.max_global_length,
                .short_sequence_rate = options_.short_sequence_rate,
                .cls_id = special_.cls_id,
                .separator_id = special_.separator_id,
                .mlm = MaskedLmOf(options_, special_)},
      .next_sentence = options_.objective == "mlm_nsp",
      .static_versions = options_.static_versions,
      .mixed_documents = options_.mixed_documents,
      .seed = kDataSeed,
      .pattern = InputOptionsOf(config_.model).pattern};
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<PairSource> source,
                       PairSource::Open(std::move(store), options));
  std::string description = DescribeCounts(source->counts(), options.corpus);
  return Opened{.source = std::move(source),
                .description = std::move(description)};
}

absl::StatusOr<PretrainTask::Opened> PretrainTask::OpenPacked(
    std::shared_ptr<const TokenStore> store, const Part& part) const {
  const PackedSourceOptions options = {
      .corpus = PartOf(options_, part.development, part.one_in),
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
  std::string description = DescribeCounts(source->counts(), options.corpus);
  return Opened{.source = std::move(source),
                .description = std::move(description)};
}

absl::StatusOr<std::vector<std::string>> PretrainTask::DescribeData(
    const ExampleSource& train, const ExampleSource& dev) const {
  std::vector<std::string> lines;
  for (const ExampleSource* source : {&train, &dev}) {
    if (const auto* joined = dynamic_cast<const JoinedSource*>(source)) {
      lines.insert(lines.end(), joined->descriptions().begin(),
                   joined->descriptions().end());
    }
  }
  if (options_.whole_words && !MarksWords(tokenizer_)) {
    if (config_.task_options.contains("whole_words")) {
      return absl::InvalidArgumentError(absl::StrCat(
          config_.source, ": pretrain.whole_words should be false: ",
          config_.tokenizer.vocabulary, kUnmarkedWords));
    }
    lines.push_back(absl::StrCat("warning: whole words: ",
                                 config_.tokenizer.vocabulary, kUnmarkedWords));
  } else if (options_.whole_words) {
    ETC_ASSIGN_OR_RETURN(std::string warning, CheckWholeWordMasks(train));
    if (!warning.empty()) {
      lines.push_back(std::move(warning));
    }
  }
  if (dev.size() == 0) {
    return lines;
  }
  const bool holds_some = config_.data.dev.empty();
  const CorpusPartOptions training =
      PartOf(options_, /*development=*/false,
             holds_some ? options_.development_one_in : 0);
  ETC_ASSIGN_OR_RETURN(const std::shared_ptr<const TokenStore> store,
                       FirstStoreWith(training));
  ETC_ASSIGN_OR_RETURN(
      const UnigramBaseline baseline,
      ComputeUnigramBaseline(
          *store, dev,
          {.corpus = training, .max_training_tokens = kTokensCounted}));
  lines.push_back(absl::StrFormat(
      "always answering \"%s\" gives masked_lm_accuracy %.4f",
      tokenizer_.tokenizer->Piece(baseline.token), baseline.accuracy));
  return lines;
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
          .make_head = [](const FinetuneConfig& config)
              -> absl::StatusOr<std::shared_ptr<TaskHead>> {
            ETC_ASSIGN_OR_RETURN(const PretrainOptions options,
                                 ReadPretrainOptions(config));
            return std::make_shared<PretrainHead>(config.model, options);
          }};
}

}  // namespace etc
