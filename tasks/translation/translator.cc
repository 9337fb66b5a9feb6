#include "tasks/translation/translator.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/stop_guard.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/translate.h"
#include "tasks/data/example_source.h"
#include "tasks/output/find_checkpoint.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/train/device.h"
#include "tasks/train/model_files.h"
#include "tasks/translation/options.h"
#include "tasks/translation/parallel_text.h"
#include "tasks/translation/task.h"

namespace etc {
namespace {

BeamSearchOptions BeamOf(const TranslatorOptions& options) {
  return {.beam_size = *options.beam_size,
          .length_penalty = *options.length_penalty,
          .unknown_penalty = options.unknown_penalty,
          .max_length = *options.max_length,
          .num_best = options.num_best};
}

// CheckBeamSearchOptions, with the names that `realetc translate` has for them.
absl::Status CheckTranslatorOptions(const TranslatorOptions& options,
                                    int64_t vocabulary) {
  const absl::Status status =
      CheckBeamSearchOptions(BeamOf(options), vocabulary, "translate");
  return absl::Status(
      status.code(),
      absl::StrReplaceAll(status.message(),
                          {{"beam_size", "--beam"},
                           {"length_penalty", "--length-penalty"},
                           {"unknown_penalty", "--unknown-penalty"},
                           {"max_length", "--max-length"},
                           {"num_best", "--n-best"}}));
}

}  // namespace

Translator::Translator(TranslationModel model, torch::Device device,
                       std::shared_ptr<const TranslationVocabulary> vocabulary,
                       TranslatorOptions options)
    : model_(std::move(model)),
      device_(device),
      vocabulary_(std::move(vocabulary)),
      options_(std::move(options)) {}

absl::StatusOr<Translator> Translator::Open(const std::string& checkpoint,
                                            const TranslatorOptions& options,
                                            const RunContext& context) {
  ETC_ASSIGN_OR_RETURN(const FoundCheckpoint found, FindCheckpoint(checkpoint));
  if (!found.reason.empty()) {
    context.Message(
        absl::StrCat("checkpoint: ", found.directory, ", ", found.reason));
  }
  ETC_ASSIGN_OR_RETURN(RunConfig config, ReadTaskModelConfig(found.directory));
  if (config.task != kTranslationTask) {
    return absl::InvalidArgumentError(absl::StrCat(
        found.directory, " is of ", config.task,
        ", whose model has no decoder: translate needs a checkpoint of "
        "translation"));
  }
  ETC_RETURN_IF_ERROR(ApplyResidual(found.directory, options.residual_attention,
                                    context, &config));
  ETC_ASSIGN_OR_RETURN(const TranslationOptions trained,
                       ReadTranslationOptions(config));
  TranslatorOptions used = options;
  used.beam_size = options.beam_size.value_or(trained.beam_size);
  used.length_penalty = options.length_penalty.value_or(trained.length_penalty);
  used.max_length = options.max_length.value_or(trained.max_length);
  ETC_RETURN_IF_ERROR(
      CheckTranslatorOptions(used, config.encoder_decoder->vocab_size));
  config.train.device = options.device;
  config.train.threads = options.threads.value_or(config.train.threads);
  ETC_ASSIGN_OR_RETURN(const RunDevice device,
                       DeviceOfRun(DeviceSettingsOf(config), FindCudaDevices(),
                                   /*field=*/"--device"));
  const std::string threads = ThreadsField(options.threads);
  ETC_RETURN_IF_ERROR(SetThreads(config.train.threads, threads).status());
  context.Warn(ThreadsWarning(config.train.threads, threads));
  ETC_ASSIGN_OR_RETURN(std::shared_ptr<const TranslationVocabulary> vocabulary,
                       LoadTranslationVocabulary(config.tokenizer));
  ETC_ASSIGN_OR_RETURN(
      TranslationModel model,
      NamingOutOfMemory(
          [&] { return absl::StrCat("loading ", found.directory); },
          [&] {
            return LoadTranslationModel(found.directory, config, trained,
                                        device.device);
          }));
  return Translator(std::move(model), device.device, std::move(vocabulary),
                    std::move(used));
}

absl::StatusOr<std::vector<int32_t>> Translator::Encode(
    const std::string& line, const std::string& where) const {
  if (!IsUtf8(line)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": a line should be UTF-8, but is not"));
  }
  std::vector<int32_t> ids = vocabulary_->Encode(line);
  if (ids.empty()) {
    return ids;
  }
  if (std::all_of(ids.begin(), ids.end(),
                  [](int32_t id) { return id == kUnknownId; })) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": a line should have a token that the vocabulary knows, but ",
        QuotedName(line), " has none"));
  }
  ids.push_back(static_cast<int32_t>(kEndId));
  const int64_t most = model_.model()->config().max_source_positions;
  if (static_cast<int64_t>(ids.size()) > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": a line should have at most ", most,
        " tokens with its end (model.max_source_positions), but has ",
        ids.size()));
  }
  return ids;
}

absl::StatusOr<std::vector<std::vector<Translation>>>
Translator::TranslateBatch(absl::Span<const std::vector<int32_t>> lines,
                           absl::Span<const size_t> numbers,
                           const RunContext& context) {
  std::vector<std::vector<int32_t>> sources;
  for (const size_t number : numbers) {
    sources.push_back(lines[number]);
  }
  std::vector<std::vector<BeamHypothesis>> hypotheses;
  try {
    const StopGuard guard(context.stop);
    hypotheses = etc::Translate(model_.model(), PadSources(sources, device_),
                                {.beam = BeamOf(options_)});
  } catch (const Stopped&) {
    return absl::CancelledError("the translation was stopped");
  }
  std::vector<std::vector<Translation>> translations;
  for (const std::vector<BeamHypothesis>& found : hypotheses) {
    std::vector<Translation>& of_line = translations.emplace_back();
    for (const BeamHypothesis& hypothesis : found) {
      of_line.push_back({.text = vocabulary_->Decode(hypothesis.tokens),
                         .score = hypothesis.score});
    }
  }
  return translations;
}

absl::Status Translator::Translate(
    absl::Span<const std::vector<int32_t>> lines, const RunContext& context,
    const Write& write, const std::function<std::string(size_t line)>& where,
    const std::function<void(int64_t lines)>& progress) {
  std::vector<std::optional<std::vector<Translation>>> translated(lines.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) {
      translated[i].emplace(1);
    } else {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lines[a].size() < lines[b].size();
  });
  size_t written = 0;
  const auto write_known = [&]() -> absl::Status {
    for (; written < lines.size() && translated[written].has_value();
         ++written) {
      if (translated[written]->empty()) {
        return absl::AbortedError(absl::StrCat(
            where(written),
            " has no translation: the model gives probabilities that are not "
            "numbers"));
      }
      ETC_RETURN_IF_ERROR(write(written, *translated[written]));
    }
    return absl::OkStatus();
  };
  ETC_RETURN_IF_ERROR(write_known());
  const auto most = static_cast<size_t>(options_.batch_size);
  for (size_t begin = 0; begin < order.size(); begin += most) {
    const absl::Span<const size_t> numbers =
        absl::MakeConstSpan(order).subspan(begin, most);
    ETC_RETURN_IF_ERROR(NamingOutOfMemory(
        [&] {
          return absl::StrCat("translating ", numbers.size(),
                              " lines at a time");
        },
        [&]() -> absl::Status {
          ETC_ASSIGN_OR_RETURN(auto found,
                               TranslateBatch(lines, numbers, context));
          for (size_t i = 0; i < numbers.size(); ++i) {
            translated[numbers[i]] = std::move(found[i]);
          }
          return absl::OkStatus();
        }));
    ETC_RETURN_IF_ERROR(write_known());
    if (progress) {
      progress(std::ssize(lines) - std::ssize(order) +
               static_cast<int64_t>(begin + numbers.size()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointBleu> TranslateAndScore(const Task& task,
                                                 const DataRequest& data,
                                                 const RunContext& context,
                                                 Translator* translator) {
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<ExampleSource> opened,
                       task.Open(data));
  const auto& pairs = dynamic_cast<const ParallelText&>(*opened);
  std::vector<std::vector<int32_t>> sources;
  for (int64_t i = 0; i < pairs.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(const Examples pair,
                         pairs.Make(RequestForEvaluation(i)));
    sources.push_back(ExampleAs<TranslationExample>(*pair.front()).source);
  }
  ETC_ASSIGN_OR_RETURN(std::vector<std::string> references,
                       pairs.ReadTargets(data));
  const TranslationVocabulary& vocabulary = translator->vocabulary();
  for (std::string& line : references) {
    line = vocabulary.TextOf(line);
  }
  std::vector<std::string> translations(sources.size());
  ETC_RETURN_IF_ERROR(translator->Translate(
      sources, context,
      [&](size_t line, const std::vector<Translation>& found) {
        translations[line] = found.front().text;
        return absl::OkStatus();
      },
      [&pairs](size_t line) { return pairs.Where(static_cast<int64_t>(line)); },
      [&](int64_t lines) {
        if (context.reporter != nullptr) {
          context.reporter->Translating(
              {.records = lines, .num_records = pairs.size()});
        }
      }));
  CheckpointBleu bleu = {.options = vocabulary.is_tokenized() ? TokenizedBleu()
                                                              : BleuOptions()};
  ETC_ASSIGN_OR_RETURN(bleu.score,
                       CorpusBleu(translations, references, bleu.options));
  return bleu;
}

}  // namespace etc
