#include "tasks/analysis/document_page.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/out_of_memory.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "base/stop_guard.h"
#include "etc/residual_choice.h"
#include "tasks/analysis/document_attention.h"
#include "tasks/analysis/document_html.h"
#include "tasks/data/batch.h"
#include "tasks/data/record_gate.h"
#include "tasks/inputs/description.h"
#include "tasks/runs/checkpoint_run.h"
#include "tasks/runs/task_setup.h"
#include "tasks/train/device.h"
#include "tasks/train/open_data.h"
#include "tasks/train/progress.h"
#include "tasks/train/run_context.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/task_model.h"

namespace etc {
namespace {

// Probabilities of each token that a page has.
constexpr int64_t kMost = 16;
// Bytes of probabilities that a page has by default, in base64; those of one
// head may be more.
constexpr int64_t kPageBytes = 24'000'000;
// Bytes of probabilities that a pass of the model gives at most, beside those
// of one head.
constexpr int64_t kViewBytes = 128'000'000;

// --- Choices -----------------------------------------------------------------

absl::Status CheckIndex(const std::string& place, const char* name,
                        int64_t index, int64_t count) {
  return index >= 0 && index < count ? absl::OkStatus()
                                     : absl::OutOfRangeError(absl::StrCat(
                                           place, ": ", name, " ", index,
                                           " should be in [0, ", count, ")"));
}

absl::Status CheckIndices(const std::string& place, const char* name,
                          const std::vector<int64_t>& indices, int64_t count) {
  for (const int64_t index : indices) {
    ETC_RETURN_IF_ERROR(CheckIndex(place, name, index, count));
  }
  return absl::OkStatus();
}

absl::Status CheckOutput(const DocumentPageOptions& options) {
  if (options.output.empty()) {
    return InvalidArgument("output should name a file, but is empty");
  }
  ETC_RETURN_IF_ERROR(CheckMayReplace(options.output, options.overwrite));
  return CheckWritableDirectory(FolderOf(options.output));
}

std::vector<int64_t> AllBelow(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Ascending, each once.
std::vector<int64_t> InOrder(std::vector<int64_t> indices) {
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

// Sets the layers and heads that are left open, by the size of the page.
void ChooseParts(const EtcConfig& model, const DocumentSize& size,
                 DocumentContents* contents) {
  const int64_t layers = model.num_hidden_layers;
  const int64_t head_bytes =
      std::max<int64_t>(1, PackedBytes(size, kMost) * 4 / 3);
  const int64_t room = std::max<int64_t>(1, kPageBytes / head_bytes);
  const bool any_head = contents->heads.empty();
  if (any_head) {
    contents->heads = AllBelow(model.num_attention_heads);
  }
  if (contents->layers.empty()) {
    const auto heads = static_cast<int64_t>(contents->heads.size());
    const int64_t count = std::clamp<int64_t>(room / heads, 1, layers);
    for (int64_t i = 1; i <= count; ++i) {
      contents->layers.push_back(layers * i / count - 1);
    }
    if (any_head && room < heads) {
      contents->heads = AllBelow(room);
    }
  }
}

// --- Attention ---------------------------------------------------------------

// Layers and heads whose probabilities are kept by one pass of the model.
struct ViewSteps {
  size_t layers = 1;
  size_t heads = 1;
};

ViewSteps StepsOf(const DocumentContents& contents) {
  const DocumentSize& size = contents.size;
  const int64_t window = 2 * size.local_radius + 1;
  const int64_t head_bytes =
      std::max<int64_t>(1, 4 * (size.globals * size.tokens() +
                                size.longs * (size.globals + window)));
  const auto heads = static_cast<int64_t>(contents.heads.size());
  const int64_t together = std::max<int64_t>(1, kViewBytes / head_bytes);
  return {.layers = static_cast<size_t>(std::max<int64_t>(1, together / heads)),
          .heads = static_cast<size_t>(std::min(heads, together))};
}

// Runs the encoder as often as the memory of its probabilities asks for, each
// time for some layers and heads.
void FillProbabilities(const TaskModel& model, EtcInput input,
                       const ViewSteps& steps, DocumentContents* contents) {
  const c10::InferenceMode no_gradients;
  EtcModel encoder = model.encoder();
  const DocumentSize& size = contents->size;
  contents->packed.resize(contents->layers.size());
  for (size_t i = 0; i < contents->layers.size(); i += steps.layers) {
    const size_t layers_end =
        std::min(i + steps.layers, contents->layers.size());
    for (size_t h = 0; h < contents->heads.size(); h += steps.heads) {
      const size_t heads_end =
          std::min(h + steps.heads, contents->heads.size());
      const auto at = [](const std::vector<int64_t>& all, size_t index) {
        return all.begin() + static_cast<std::ptrdiff_t>(index);
      };
      input.inspect = {
          .probabilities_of = {at(contents->layers, i),
                               at(contents->layers, layers_end)},
          .heads = {at(contents->heads, h), at(contents->heads, heads_end)}};
      const Inspected inspected = encoder(input).inspected;
      for (size_t layer = i; layer < layers_end; ++layer) {
        const FourBlocks& view =
            inspected.layers.at(contents->layers[layer]).probabilities;
        for (size_t head = h; head < heads_end; ++head) {
          contents->packed[layer].push_back(Pack(
              FindLargest(view, static_cast<int64_t>(head - h), size, kMost),
              size));
        }
      }
    }
  }
}

// FillProbabilities with the progress and the stop that `options` have.
absl::Status RunModel(const DocumentPageOptions& options,
                      const TaskModel& model, int64_t layers_of_model,
                      EtcInput input, DocumentContents* contents) {
  const ViewSteps steps = StepsOf(*contents);
  const auto passes_of = [](size_t all, size_t step) {
    return static_cast<int64_t>((all + step - 1) / step);
  };
  const int64_t all = layers_of_model *
                      passes_of(contents->layers.size(), steps.layers) *
                      passes_of(contents->heads.size(), steps.heads);
  int64_t done = 0;
  const auto report = [&] {
    if (options.progress != nullptr) {
      options.progress(done, all);
    }
    ++done;
  };
  try {
    const StopGuard guard(options.callbacks.stop, report);
    FillProbabilities(model, std::move(input), steps, contents);
  } catch (const Stopped&) {
    return absl::CancelledError("stopped; no file was written");
  }
  report();
  return absl::OkStatus();
}

// --- Texts -------------------------------------------------------------------

std::vector<std::string> PiecesOf(const Example& example,
                                  const Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  for (const auto* ids : {&example.global_token_ids, &example.long_token_ids}) {
    for (const int32_t id : *ids) {
      pieces.push_back(id >= 0 && id < tokenizer.vocab_size()
                           ? tokenizer.Piece(id)
                           : absl::StrCat("#", id));
    }
  }
  return pieces;
}

// "all 2 layers" or "layers 3, 7 and 11 of 12"
std::string PartOf(const char* noun, const std::vector<int64_t>& chosen,
                   int64_t count) {
  if (static_cast<int64_t>(chosen.size()) == count) {
    return absl::StrCat(count == 1 ? "the only " : "all ",
                        count == 1 ? noun : Counted(count, noun));
  }
  return absl::StrCat(noun, chosen.size() == 1 ? " " : "s ",
                      absl::StrJoin(chosen, ", "), " of ", count);
}

std::string LeftOut(const EtcConfig& model, const DocumentContents& contents) {
  const std::string rest =
      contents.layers.size() < static_cast<size_t>(model.num_hidden_layers) ||
              contents.heads.size() <
                  static_cast<size_t>(model.num_attention_heads)
          ? " (--layers and --heads choose others)"
          : "";
  return absl::StrCat(
      "This page has ",
      PartOf("layer", contents.layers, model.num_hidden_layers), " and ",
      PartOf("head", contents.heads, model.num_attention_heads), rest,
      "; layers count from 0, the lowest. Of each token it has the ",
      contents.most,
      " largest probabilities in units of 1/65535, and the sum of the rest.");
}

void SetFacts(const DocumentPageOptions& options,
              const OpenedCheckpoint& checkpoint, const Example& example,
              size_t num_examples, DocumentContents* contents) {
  const RunConfig& config = checkpoint.config;
  contents->title =
      absl::StrCat("Attention in one document: ", example.record_id);
  contents->facts = {
      {"Record", absl::StrCat(options.record, " of ", options.data, ", id ",
                              example.record_id)},
      {"Checkpoint", checkpoint.name},
      {"Model",
       absl::StrCat(config.task, ", ",
                    Counted(config.model.num_hidden_layers, "layer"), " of ",
                    Counted(config.model.num_attention_heads, "head"),
                    ", residual attention: ", ResidualText(config.model))},
      {"Tokens",
       absl::StrCat(DescribeLengths(example),
                    example.is_truncated ? "; the record was cut" : "")},
      {"Masks", DescribeMasks(example.pattern)}};
  if (num_examples > 1) {
    contents->facts.insert(
        contents->facts.begin() + 1,
        {"Example", absl::StrCat(options.example, " of ", num_examples,
                                 " of this record (--example)")});
  }
}

// --- The page ----------------------------------------------------------------

struct OpenedRecord {
  Examples examples;
  std::shared_ptr<const Example> example;
};

absl::StatusOr<OpenedRecord> OpenRecord(const DocumentPageOptions& options,
                                        const RunConfig& config,
                                        const Task& task,
                                        const RunContext& context) {
  ETC_ASSIGN_OR_RETURN(const auto records,
                       OpenRecords(task,
                                   {.patterns = {options.data},
                                    .limits = RecordLimitsOf(config.data)},
                                   context));
  if (records->size() == 0) {
    return InvalidArgument(options.data, " should have records, but has none");
  }
  ETC_RETURN_IF_ERROR(
      CheckIndex(options.data, "record", options.record, records->size()));
  OpenedRecord opened;
  ETC_ASSIGN_OR_RETURN(opened.examples,
                       records->Make(RequestForEvaluation(options.record)));
  const std::string place =
      absl::StrCat(options.data, ": record ", options.record);
  if (opened.examples.empty()) {
    return InvalidArgument(place, " becomes no example");
  }
  ETC_RETURN_IF_ERROR(CheckIndex(place, "example", options.example,
                                 static_cast<int64_t>(opened.examples.size())));
  opened.example = opened.examples[static_cast<size_t>(options.example)];
  return opened;
}

// Says what the page will have before the model runs, which takes minutes where
// the record is a book. `contents` lack the probabilities alone.
void Announce(const DocumentContents& contents, const RunContext& context) {
  const auto layers = static_cast<int64_t>(contents.layers.size());
  const auto heads = static_cast<int64_t>(contents.heads.size());
  const int64_t bytes =
      static_cast<int64_t>(DocumentHtml(contents).size()) +
      layers * heads * PackedBytes(contents.size, kMost) * 4 / 3;
  context.Message(absl::StrFormat(
      "%s: %s and %s, about %.1f MB; --layers and --heads choose others",
      Counted(contents.size.tokens(), "token"), Counted(layers, "layer"),
      Counted(heads, "head"), 1e-6 * static_cast<double>(bytes)));
}

// Fills what follows from the example alone.
void SetExample(const EtcConfig& model, const TaskSetup& setup,
                const Example& example, DocumentContents* contents) {
  contents->size = {.globals = example.global_length(),
                    .longs = example.long_length(),
                    .local_radius = model.local_radius};
  contents->tokens = PiecesOf(example, *setup.tokenizer);
  contents->pattern = example.pattern;
  contents->description = setup.task->Describe(example);
  contents->most = kMost;
}

absl::StatusOr<DocumentPage> WritePage(const DocumentPageOptions& options) {
  ETC_RETURN_IF_ERROR(CheckOutput(options));
  CallbackReporter reporter(options.callbacks.message,
                            options.callbacks.warning);
  const RunContext context = {.reporter = &reporter,
                              .stop = options.callbacks.stop};
  ETC_ASSIGN_OR_RETURN(
      const OpenedCheckpoint checkpoint,
      OpenCheckpoint({.checkpoint = options.checkpoint,
                      .residual_attention = options.residual_attention,
                      .device = options.device,
                      .context = context}));
  const RunConfig& config = checkpoint.config;
  const TaskSetup& setup = checkpoint.setup;
  ETC_RETURN_IF_ERROR(CheckIsEncoder(checkpoint, "document"));
  ETC_RETURN_IF_ERROR(CheckIndices(checkpoint.name, "layer", options.layers,
                                   config.model.num_hidden_layers));
  ETC_RETURN_IF_ERROR(CheckIndices(checkpoint.name, "head", options.heads,
                                   config.model.num_attention_heads));
  ETC_ASSIGN_OR_RETURN(const OpenedRecord record,
                       OpenRecord(options, config, *setup.task, context));
  if (record.example->is_truncated) {
    context.Warn(TruncatedText({.truncated = 1,
                                .most_lost = record.example->lost_text,
                                .most_lost_id = record.example->record_id}));
  }
  const torch::Device device = checkpoint.device.device;
  const CurrentDevice current(device);
  ETC_ASSIGN_OR_RETURN(TaskModel model, LoadModelOfRun(checkpoint, context));
  const EvaluationMode evaluation(&model);
  DocumentContents contents{.layers = InOrder(options.layers),
                            .heads = InOrder(options.heads)};
  SetExample(config.model, setup, *record.example, &contents);
  SetFacts(options, checkpoint, *record.example, record.examples.size(),
           &contents);
  ChooseParts(config.model, contents.size, &contents);
  contents.left_out = LeftOut(config.model, contents);
  const Batch batch = MakeBatch({record.example}, device);
  contents.visible = VisibleKeys(batch.input.attention, contents.size);
  Announce(contents, context);
  ETC_RETURN_IF_ERROR(RunModel(options, model, config.model.num_hidden_layers,
                               model.head()->EncoderInput(batch), &contents));
  const std::string html = DocumentHtml(contents);
  ETC_RETURN_IF_ERROR(WriteFileAtomically(options.output, html));
  return DocumentPage{.layers = contents.layers,
                      .heads = contents.heads,
                      .bytes = static_cast<int64_t>(html.size())};
}

}  // namespace

absl::StatusOr<DocumentPage> WriteDocumentPage(
    const DocumentPageOptions& options) {
  return NamingOutOfMemory(
      [&] {
        return absl::StrCat("making a page of record ", options.record, " of ",
                            options.data);
      },
      [&] { return WritePage(options); });
}

}  // namespace etc
