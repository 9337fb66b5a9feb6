#include "tasks/analysis/analysis_run.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "base/out_of_memory.h"
#include "base/path_lookup.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/stop_guard.h"
#include "etc/weights/pretraining_parameters.h"
#include "tasks/analysis/analysis_files.h"
#include "tasks/analysis/analysis_html.h"
#include "tasks/analysis/pass.h"
#include "tasks/data/batch.h"
#include "tasks/data/example.h"
#include "tasks/data/example_outline.h"
#include "tasks/data/example_source.h"
#include "tasks/data/record_gate.h"
#include "tasks/data/text_file.h"
#include "tasks/inference/text_encoder.h"
#include "tasks/inputs/text_input.h"
#include "tasks/output/find_checkpoint.h"
#include "tasks/runs/checkpoint_run.h"
#include "tasks/runs/task_setup.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/train/device.h"
#include "tasks/train/open_data.h"
#include "tasks/train/progress.h"
#include "tasks/train/run_context.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/task_model.h"

namespace etc {
namespace {

struct AnalysisFile {
  const char* name;
  std::string (*contents)(const AttentionAnalysis& analysis);
};

// The files that each analysis has, in the order in which they are written.
constexpr std::array kAnalysisFiles = {
    AnalysisFile{"attention_entropy.csv", EntropyCsv},
    AnalysisFile{"attention_jsd.csv", DivergenceCsv},
    AnalysisFile{"attention_masses.csv", MassCsv},
    AnalysisFile{"attention_positions.csv", PositionCsv},
    AnalysisFile{"attention_similarity.csv", SimilarityCsv},
    AnalysisFile{"attention_correlation.csv", CorrelationCsv},
    AnalysisFile{"attention.html", AnalysisHtml},
    AnalysisFile{"attention.json", AnalysisJson}};

// All names of AnalysisPictures, which an analysis has some of.
constexpr std::array kPictureNames = {"entropy_all.svg",    "jsd_all.svg",
                                      "entropy_long.svg",   "jsd_long.svg",
                                      "entropy_global.svg", "jsd_global.svg"};

std::string FileOf(const AttentionAnalysisOptions& options,
                   const std::string& name) {
  return absl::StrCat(options.output, "/", name);
}

// The indices [0, count) that are taken: all, or `most` of them in the order of
// the seed.
std::vector<int64_t> TakenIndices(int64_t count, int64_t most, uint64_t seed) {
  std::vector<int64_t> taken(static_cast<size_t>(count));
  std::iota(taken.begin(), taken.end(), 0);
  if (most > 0 && most < count) {
    const auto key = [&](int64_t index) {
      return CombineSeeds({seed, static_cast<uint64_t>(index)});
    };
    std::sort(taken.begin(), taken.end(),
              [&](int64_t a, int64_t b) { return key(a) < key(b); });
    taken.resize(static_cast<size_t>(most));
  }
  return taken;
}

// Kinds of keys: those of a task's global tokens, and the marks around texts.
std::vector<KeyKind> KindsOf(const std::vector<GlobalTokenName>& globals,
                             const SpecialIds& special) {
  std::vector<KeyKind> kinds;
  for (const GlobalTokenName& global : globals) {
    kinds.push_back(
        {.name = global.name, .id = global.id, .globals_only = true});
  }
  if (special.cls >= 0) {
    kinds.push_back({.name = "[CLS]", .id = special.cls});
    kinds.push_back({.name = "[SEP]", .id = special.separator});
  }
  return kinds;
}

// The tokens of the inputs that a model reads.
struct InputTokens {
  int64_t max_long_length = 0;
  int64_t max_global_length = 0;
  std::vector<KeyKind> kinds;
};

// The pass over a data set, and what its batches share.
class AnalysisRun {
 public:
  AnalysisRun(const AttentionAnalysisOptions& options, const EtcModel& encoder,
              const InputTokens& tokens)
      : options_(options),
        pass_(encoder, {.max_long_length = tokens.max_long_length,
                        .max_global_length = tokens.max_global_length,
                        .max_rows = options.max_rows,
                        .seed = options.seed,
                        .jsd_distance = options.jsd_distance,
                        .kinds = tokens.kinds}) {}

  int64_t batch_size() const { return pass_.batch_size(); }
  int64_t examples() const { return examples_; }

  // kCancelled if `callbacks.stop` is true.
  absl::Status CheckStop() const {
    return options_.callbacks.stop != nullptr && *options_.callbacks.stop
               ? absl::CancelledError("stopped; no file was written")
               : absl::OkStatus();
  }
  absl::Status Add(const EtcInput& input) {
    try {
      const StopGuard guard(options_.callbacks.stop);
      ETC_RETURN_IF_ERROR(pass_.Add(input, examples_));
    } catch (const Stopped&) {
      return CheckStop();
    }
    examples_ += input.global_token_ids.size(0);
    return absl::OkStatus();
  }
  void Report(int64_t done, int64_t all) const {
    if (options_.progress != nullptr) {
      options_.progress(done, all);
    }
  }

  // The result, of this model.
  AttentionAnalysis Result(const EtcConfig& model,
                           const std::string& checkpoint) const {
    return {.is_bert = !model.has_long_tokens,
            .layers = model.num_hidden_layers,
            .heads = model.num_attention_heads,
            .residual = model.residual_attention,
            .layer_norm =
                model.sublayer == "post_norm"
                    ? "post"
                    : (model.sublayer == "pre_norm" ? "pre" : model.sublayer),
            .checkpoint = checkpoint,
            .data = options_.data.empty() ? options_.text : options_.data,
            .examples = examples_,
            .seed = options_.seed,
            .max_rows = options_.max_rows,
            .jsd_distance = options_.jsd_distance,
            .normalised_colours = options_.normalised_colours,
            .populations = pass_.populations(),
            .scores = pass_.Scores()};
  }

 private:
  const AttentionAnalysisOptions& options_;
  AttentionPass pass_;
  int64_t examples_ = 0;
};

// --- Records of a task -------------------------------------------------------

// Records without those that `evaluate` skips.
struct GatedRecords {
  const ExampleSource& source;
  RecordGate gate;

  absl::StatusOr<Examples> Make(int64_t record) {
    const RecordRequest request = RequestForEvaluation(record);
    ETC_ASSIGN_OR_RETURN(
        const ExampleOutlines examples,
        gate.Pass(record, OutlinesOf(request, source.Make(request))));
    return ExamplesOf(examples);
  }
};

absl::Status AddRecords(const AttentionAnalysisOptions& options,
                        const TaskModel& model, const torch::Device& device,
                        GatedRecords* records, AnalysisRun* run) {
  const std::vector<int64_t> taken =
      TakenIndices(records->source.size(), options.max_examples, options.seed);
  const auto all = static_cast<int64_t>(taken.size());
  Examples waiting;
  const auto flush = [&]() -> absl::Status {
    const Batch batch = MakeBatch(std::exchange(waiting, {}), device);
    return run->Add(model.head()->EncoderInput(batch));
  };
  const auto is_full = [&] {
    return options.max_examples > 0 &&
           run->examples() + static_cast<int64_t>(waiting.size()) >=
               options.max_examples;
  };
  for (int64_t done = 0; done < all && !is_full(); ++done) {
    ETC_ASSIGN_OR_RETURN(const Examples examples,
                         records->Make(taken[static_cast<size_t>(done)]));
    for (size_t i = 0; i < examples.size() && !is_full(); ++i) {
      waiting.push_back(examples[i]);
      if (static_cast<int64_t>(waiting.size()) == run->batch_size()) {
        ETC_RETURN_IF_ERROR(flush());
      }
    }
    run->Report(done + 1, all);
  }
  return waiting.empty() ? absl::OkStatus() : flush();
}

absl::StatusOr<OpenedCheckpoint> OpenRecordsModel(
    const AttentionAnalysisOptions& options, const RunContext& context) {
  if (const absl::Status found = FindCheckpoint(options.checkpoint).status();
      !found.ok()) {
    return absl::Status(found.code(),
                        absl::StrCat(found.message(),
                                     "; other weights read plain text, by "
                                     "--text instead of --data"));
  }
  ETC_ASSIGN_OR_RETURN(
      OpenedCheckpoint opened,
      OpenCheckpoint({.checkpoint = options.checkpoint,
                      .residual_attention = options.residual_attention,
                      .device = options.device,
                      .context = context}));
  ETC_RETURN_IF_ERROR(CheckIsEncoder(opened, "attention"));
  return opened;
}

absl::StatusOr<AttentionAnalysis> AnalyseRecords(
    const AttentionAnalysisOptions& options, const RunContext& context) {
  ETC_ASSIGN_OR_RETURN(const OpenedCheckpoint checkpoint,
                       OpenRecordsModel(options, context));
  const RunConfig& config = checkpoint.config;
  const TaskSetup& setup = checkpoint.setup;
  ETC_ASSIGN_OR_RETURN(const auto records,
                       OpenRecords(*setup.task,
                                   {.patterns = {options.data},
                                    .limits = RecordLimitsOf(config.data)},
                                   context));
  if (records->size() == 0) {
    return InvalidArgument(options.data, " should have records, but has none");
  }
  if (options.max_examples == 0) {
    ETC_RETURN_IF_ERROR(
        CheckEvaluationRecords(config.data, *records, context).status());
  }
  const torch::Device device = checkpoint.device.device;
  const CurrentDevice current(device);
  ETC_ASSIGN_OR_RETURN(TaskModel model, LoadModelOfRun(checkpoint, context));
  const EvaluationMode evaluation(&model);
  AnalysisRun run(
      options, model.encoder(),
      {.max_long_length =
           config.model.has_long_tokens ? config.data.max_long_length : 0,
       .max_global_length = config.data.max_global_length,
       .kinds = KindsOf(setup.task->GlobalTokenNames(),
                        FindSpecialIds(*setup.tokenizer))});
  GatedRecords gated = {
      .source = *records,
      .gate = RecordGate(RecordUse::kEvaluation, OnBadRecordOf(config.data),
                         records->size())};
  ETC_RETURN_IF_ERROR(AddRecords(options, model, device, &gated, &run));
  const SkippedRecords& skipped = gated.gate.skipped();
  const std::string said = skipped.count > 0 ? SkippedText(skipped) : "";
  if (run.examples() == 0) {
    return InvalidArgument(options.data,
                           " has records, but they become no example",
                           said.empty() ? "" : ": ", said);
  }
  context.Warn(said);
  AttentionAnalysis analysis = run.Result(config.model, checkpoint.name);
  analysis.masked_input = config.task == kPretrainingTask;
  if (skipped.truncated > 0) {
    analysis.truncated = {{"records", skipped.truncated}};
    analysis.truncation = TruncatedText(skipped);
    context.Warn(analysis.truncation);
  }
  return analysis;
}

// --- Plain text --------------------------------------------------------------

// A text and the line where it begins.
struct PlainText {
  std::string text;
  int64_t line = 0;
};

// The texts of a file from front to back.
class PlainTexts {
 public:
  static absl::StatusOr<PlainTexts> Open(
      const AttentionAnalysisOptions& options) {
    ETC_ASSIGN_OR_RETURN(auto file, TextFile::Open(options.text));
    return PlainTexts(std::move(file), options.paragraphs);
  }

  // False at the end of the file.
  absl::StatusOr<bool> Next(PlainText* next) {
    *next = {};
    absl::string_view line;
    while (true) {
      ETC_ASSIGN_OR_RETURN(const bool any, file_->NextLine(&line));
      const absl::string_view text =
          any ? absl::StripAsciiWhitespace(line) : absl::string_view();
      if (!text.empty()) {
        absl::StrAppend(&next->text, next->text.empty() ? "" : " ", text);
        next->line = next->line == 0 ? file_->line_number() : next->line;
      }
      const bool ends = text.empty() || !paragraphs_;
      if (!any || (ends && !next->text.empty())) {
        return !next->text.empty();
      }
    }
  }

 private:
  PlainTexts(std::unique_ptr<TextFile> file, bool paragraphs)
      : file_(std::move(file)), paragraphs_(paragraphs) {}

  std::unique_ptr<TextFile> file_;
  bool paragraphs_;
};

absl::StatusOr<int64_t> CountTexts(const AttentionAnalysisOptions& options) {
  ETC_ASSIGN_OR_RETURN(PlainTexts texts, PlainTexts::Open(options));
  PlainText text;
  for (int64_t count = 0;; ++count) {
    ETC_ASSIGN_OR_RETURN(const bool any, texts.Next(&text));
    if (!any) {
      return count;
    }
  }
}

// Calls `take` with the texts of the indices `taken`, which are sorted.
absl::Status ForEachText(
    const AttentionAnalysisOptions& options, const std::vector<int64_t>& taken,
    const std::function<absl::Status(const PlainText& text)>& take) {
  ETC_ASSIGN_OR_RETURN(PlainTexts texts, PlainTexts::Open(options));
  int64_t index = 0;
  PlainText text;
  for (const int64_t wanted : taken) {
    for (; index <= wanted; ++index) {
      ETC_ASSIGN_OR_RETURN(const bool any, texts.Next(&text));
      if (!any) {
        return absl::AbortedError(
            absl::StrCat(options.text, " has changed while it was read"));
      }
    }
    ETC_RETURN_IF_ERROR(take(text));
  }
  return absl::OkStatus();
}

// Text that the inputs of a model have no room for.
struct CutText {
  int64_t texts = 0;  // texts that lose pieces
  int64_t pieces = 0;
  int64_t sentences = 0;  // sentences without a global token

  void Add(const EncodedText& text) {
    texts += text.cut_pieces > 0 ? 1 : 0;
    pieces += text.cut_pieces;
    sentences += text.dropped_sentences;
  }
};

// AttentionAnalysis::truncation of plain text.
std::string TruncationOf(const CutText& cut, const LoadedEncoder& loaded) {
  std::vector<std::string> parts;
  if (cut.pieces > 0) {
    parts.push_back(absl::StrCat(
        Counted(cut.pieces, "piece"), " beyond the model's ",
        loaded.config.has_long_tokens ? loaded.max_long_length
                                      : loaded.max_global_length,
        " tokens ", cut.pieces == 1 ? "was" : "were", " cut: the end of ",
        Counted(cut.texts, "text"), " is not analysed"));
  }
  if (cut.sentences > 0) {
    parts.push_back(absl::StrCat(Counted(cut.sentences, "sentence"),
                                 " beyond the model's ",
                                 loaded.max_global_length, " global tokens ",
                                 cut.sentences == 1 ? "has" : "have", " none"));
  }
  return absl::StrJoin(parts, "; ");
}

// Checks all texts that are taken, so that mistakes are seen before the first
// one is run. Adds to `cut` what had no room.
absl::Status AddTexts(const AttentionAnalysisOptions& options, int64_t count,
                      const LoadedEncoder& loaded, AnalysisRun* run,
                      CutText* cut) {
  std::vector<int64_t> taken =
      TakenIndices(count, options.max_examples, options.seed);
  std::sort(taken.begin(), taken.end());
  const auto check = [&](const PlainText& text) -> absl::Status {
    ETC_RETURN_IF_ERROR(run->CheckStop());
    return CheckEncodable(loaded, {text.text},
                          absl::StrCat(options.text, ":", text.line))
        .status();
  };
  ETC_RETURN_IF_ERROR(ForEachText(options, taken, check));
  std::vector<std::string> waiting;
  const auto all = static_cast<int64_t>(taken.size());
  int64_t done = 0;
  const auto add = [&](const PlainText& text) -> absl::Status {
    waiting.push_back(text.text);
    ++done;
    if (static_cast<int64_t>(waiting.size()) < run->batch_size() &&
        done < all) {
      return absl::OkStatus();
    }
    ETC_ASSIGN_OR_RETURN(const EncodedTexts encoded,
                         EncodeTexts(loaded, waiting));
    waiting.clear();
    for (const EncodedText& encoded_text : encoded.texts) {
      cut->Add(encoded_text);
    }
    ETC_RETURN_IF_ERROR(run->Add(encoded.input));
    run->Report(done, all);
    return absl::OkStatus();
  };
  return ForEachText(options, taken, add);
}

absl::StatusOr<AttentionAnalysis> AnalyseTexts(
    const AttentionAnalysisOptions& options, const RunContext& context) {
  ETC_ASSIGN_OR_RETURN(const int64_t count, CountTexts(options));
  if (count == 0) {
    return InvalidArgument(options.text, " should have text, but has none");
  }
  ETC_ASSIGN_OR_RETURN(const RunDevice device,
                       DeviceOfRun({.device = options.device},
                                   FindCudaDevices(), /*field=*/"--device"));
  const CurrentDevice current(device.device);
  ETC_ASSIGN_OR_RETURN(
      const LoadedEncoder loaded,
      LoadEncoder(options.checkpoint,
                  {.residual_attention = options.residual_attention,
                   .device = device.device}));
  for (const auto* warnings : {&loaded.warnings, &loaded.report.notices}) {
    for (const std::string& warning : *warnings) {
      context.Warn(warning);
    }
  }
  context.Message(absl::StrCat("encoder: ", loaded.path));
  context.Message(device.message);
  AnalysisRun run(
      options, loaded.encoder,
      {.max_long_length = loaded.max_long_length,
       .max_global_length = loaded.max_global_length,
       .kinds = KindsOf(GlobalTokensOfTexts(loaded.config.has_long_tokens),
                        loaded.special_ids)});
  CutText cut;
  ETC_RETURN_IF_ERROR(AddTexts(options, count, loaded, &run, &cut));
  AttentionAnalysis analysis = run.Result(loaded.config, loaded.path);
  analysis.truncation = TruncationOf(cut, loaded);
  if (!analysis.truncation.empty()) {
    analysis.truncated = {{"pieces", cut.pieces}, {"sentences", cut.sentences}};
    context.Warn(analysis.truncation);
  }
  return analysis;
}

}  // namespace

absl::Status CheckAnalysisOptions(const AttentionAnalysisOptions& options) {
  if (options.data.empty() == options.text.empty()) {
    return InvalidArgument(
        "one of --data (records of the checkpoint's task) and --text (plain "
        "text) should be given, but ",
        options.data.empty() ? "neither is" : "both are");
  }
  for (const auto& [name, number] :
       {std::pair("--max-examples", options.max_examples),
        std::pair("--max-rows", options.max_rows)}) {
    if (number < 0) {
      return InvalidArgument(name, " should be at least 0, but is ", number);
    }
  }
  if (options.output.empty()) {
    return InvalidArgument("--output should name a directory, but is empty");
  }
  std::vector<std::string> names(kPictureNames.begin(), kPictureNames.end());
  for (const AnalysisFile& file : kAnalysisFiles) {
    names.emplace_back(file.name);
  }
  for (const std::string& name : names) {
    ETC_RETURN_IF_ERROR(
        CheckMayReplace(FileOf(options, name), options.overwrite));
  }
  return CheckWritableDirectory(options.output);
}

absl::StatusOr<AnalysedModel> FindAnalysedModel(
    const AttentionAnalysisOptions& options) {
  AnalysedModel model;
  EtcConfig config;
  if (options.text.empty()) {
    ETC_ASSIGN_OR_RETURN(const OpenedCheckpoint found,
                         OpenRecordsModel(options, RunContext()));
    model.task = found.config.task;
    config = found.config.model;
  } else {
    ETC_ASSIGN_OR_RETURN(
        config,
        CheckEncoder(options.checkpoint,
                     {.residual_attention = options.residual_attention}));
  }
  model.shape = {.is_bert = !config.has_long_tokens,
                 .layers = config.num_hidden_layers,
                 .heads = config.num_attention_heads};
  return model;
}

absl::StatusOr<AttentionAnalysis> RunAnalysis(
    const AttentionAnalysisOptions& options) {
  CallbackReporter reporter(options.callbacks.message,
                            options.callbacks.warning);
  const RunContext context = {.reporter = &reporter,
                              .stop = options.callbacks.stop};
  return NamingOutOfMemory(
      [&] {
        return absl::StrCat("analysing the attention of ", options.checkpoint);
      },
      [&] {
        return options.text.empty() ? AnalyseRecords(options, context)
                                    : AnalyseTexts(options, context);
      });
}

namespace {

absl::Status WriteFiles(const AttentionAnalysis& analysis,
                        const AttentionAnalysisOptions& options) {
  ETC_RETURN_IF_ERROR(CreateDirectories(options.output));
  std::vector<std::string> pictures;
  for (const auto& [name, contents] : AnalysisPictures(analysis)) {
    ETC_RETURN_IF_ERROR(WriteFileAtomically(FileOf(options, name), contents));
    pictures.push_back(name);
  }
  for (const auto& [name, contents] : kAnalysisFiles) {
    ETC_RETURN_IF_ERROR(
        WriteFileAtomically(FileOf(options, name), contents(analysis)));
  }
  // Pictures of an earlier analysis that this one has not.
  for (const std::string name : kPictureNames) {
    if (std::find(pictures.begin(), pictures.end(), name) == pictures.end()) {
      FileOperations::Current().Unlink(FileOf(options, name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteAnalysis(const AttentionAnalysis& analysis,
                           const AttentionAnalysisOptions& options) {
  return NamingOutOfMemory(
      [&] {
        return absl::StrCat("writing the analysis of ", options.checkpoint);
      },
      [&] { return WriteFiles(analysis, options); });
}

absl::StatusOr<AttentionAnalysis> AnalyseAttention(
    const AttentionAnalysisOptions& options) {
  ETC_RETURN_IF_ERROR(CheckAnalysisOptions(options));
  ETC_ASSIGN_OR_RETURN(AttentionAnalysis analysis, RunAnalysis(options));
  ETC_RETURN_IF_ERROR(WriteAnalysis(analysis, options));
  return analysis;
}

}  // namespace etc
