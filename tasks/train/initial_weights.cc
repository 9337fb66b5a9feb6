#include "tasks/train/initial_weights.h"

#include <torch/utils.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/counted.h"
#include "base/json_reader.h"
#include "base/shape_text.h"
#include "base/status_macros.h"
#include "etc/config.h"
#include "etc/residual_choice.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/output_labels.h"
#include "etc/weights/pretraining_heads.h"
#include "etc/weights/pretraining_parameters.h"
#include "etc/weights/source_config.h"
#include "etc/weights/weights.h"
#include "nlohmann/json.hpp"
#include "tasks/output/checkpoint_files.h"
#include "tasks/task/task.h"

namespace etc {
namespace {

// The first few of `names`, and how many more there are.
std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  const size_t shown = std::min(names.size(), kShown);
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(shown),
                    ", "),
      names.size() > shown
          ? absl::StrCat(" and ", names.size() - shown, " more")
          : "");
}

NamedTensors WithPrefix(const NamedTensors& tensors,
                        const std::string& prefix) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) {
    if (absl::StartsWith(name, prefix)) {
      result.emplace(name, tensor);
    }
  }
  return result;
}

// Returns the reason why the file's head cannot be used ("has no head for
// squad"); empty if it can.
absl::StatusOr<std::string> UnusableHeadReason(const TensorReader& reader,
                                               const std::string& task,
                                               const NamedTensors& head) {
  const std::vector<std::string> names = reader.Names();
  const std::set<std::string> found(names.begin(), names.end());
  const auto made_for = reader.metadata().find(kTaskKey);
  if (made_for == reader.metadata().end() || made_for->second != task) {
    return made_for == reader.metadata().end()
               ? absl::StrCat("has no head for ", task)
           : made_for->second == kPretrainingTask
               ? std::string("has those of pre-training")
               : absl::StrCat("has one for ", made_for->second);
  }
  for (const auto& [name, tensor] : head) {
    if (found.count(name) == 0) {
      return absl::StrCat("has one without ", name);
    }
    ETC_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, reader.Shape(name));
    if (tensor.sizes() != shape) {
      return absl::StrCat("has one with ", name, " of shape ",
                          ShapeText(shape));
    }
  }
  return std::string();
}

// Adds a message about the trained weights of the file's head that the model's
// does not have.
void AddDropped(const TensorReader& reader, const NamedTensors& head,
                std::vector<std::string>* messages) {
  std::vector<std::string> dropped;
  absl::c_copy_if(reader.Names(), std::back_inserter(dropped),
                  [&head](const std::string& name) {
                    return absl::StartsWith(name, kHeadPrefix) &&
                           !head.contains(name);
                  });
  if (!dropped.empty()) {
    messages->push_back(absl::StrCat("head: dropped ", Some(dropped)));
  }
}

// Returns true if the file's head, which is for the same task, was trained with
// another value of one of `settings`, so that its outputs mean something else.
absl::StatusOr<bool> HasOtherOutputs(const RunConfig& config,
                                     const std::vector<std::string>& settings) {
  const std::string trained = FileBesideWeights(config.init, "run_config.json");
  if (settings.empty() || trained.empty()) {
    return false;
  }
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonFile(trained));
  return absl::c_any_of(settings, [&](const std::string& setting) {
    const nlohmann::json::json_pointer place(
        "/" + absl::StrReplaceAll(setting, {{".", "/"}}));
    const auto value_in = [&place](const nlohmann::json& object) {
      return object.contains(place) ? object[place] : nlohmann::json();
    };
    return value_in(json) != value_in(config.json);
  });
}

// Outcome of filling the head of a task.
struct FilledHead {
  HeadPlan plan;  // of heads with names of their own
  // True if the file has the head of this task, and all of it was taken.
  bool is_whole = false;
  // The message about weights that are random; empty: none are.
  std::string random;
  Notices notices;
};

// True where weights of BERT start an ETC, whose outputs are others than those
// that a head of BERT was trained on.
bool IsLifted(const RunConfig& config, const WeightFile& file) {
  return IsBert(file.source.config) && !IsBert(config.model);
}

// A model that the configuration chooses is meant to be lifted to.
std::string LiftMessage(const RunConfig& config, const WeightFile& file) {
  const auto model = config.json.value("model", nlohmann::json::object());
  return absl::StrCat(
      "encoder: ", file.source.hugging_face.is_roberta() ? "RoBERTa" : "BERT",
      " is lifted to ETC",
      model.contains("preset") || model.contains("path")
          ? ""
          : " (model.has_long_tokens false keeps it)");
}

// The parameters of the encoder that would be random: alphas, omegas and gates
// begin with values of their own.
std::vector<std::string> RandomNames(const WeightPlan& plan) {
  std::vector<std::string> names;
  for (const WeightStep& step : plan.steps) {
    if (step.source.empty() && step.target.role != ParameterRole::kGate &&
        step.target.role != ParameterRole::kResidualConnection) {
      names.push_back(step.target.name);
    }
  }
  return names;
}

// Messages about the encoder that a run starts from.
std::vector<std::string> EncoderMessages(const RunConfig& config,
                                         const FilledEncoder& filled,
                                         const FilledHead& head) {
  const auto& [file, plan] = filled;
  std::vector<std::string> messages;
  std::string text = absl::StrCat("encoder: from ", config.init);
  if (file.source.names.style != NameStyle::kRealEtc) {
    absl::StrAppend(&text, ", ", NameStyleDescription(file.source.names.style));
  }
  const std::vector<std::string> names = plan.FreshNames();
  if (!names.empty()) {
    absl::StrAppend(
        &text, "; ", names.size(), " of ",
        Counted(static_cast<int64_t>(plan.steps.size()), "parameter"),
        " freshly initialised: ", Some(names));
  }
  messages.push_back(text);
  if (IsLifted(config, file)) {
    messages.push_back(LiftMessage(config, file));
  }
  std::vector<std::string> dropped;
  std::set<std::string> heads;
  for (const DroppedTensor& tensor : plan.dropped) {
    if (head.plan.Uses(tensor.name)) {
      continue;
    }
    if (!tensor.head.empty()) {
      if (!head.is_whole) {
        heads.insert(tensor.head);
      }
    } else if (!absl::StartsWith(tensor.name, kHeadPrefix) &&
               !IsGate(tensor.name)) {  // a notice tells of these
      dropped.push_back(tensor.name);
    }
  }
  if (!dropped.empty()) {
    messages.push_back(absl::StrCat("encoder: dropped ", Some(dropped)));
  }
  if (!heads.empty()) {
    messages.push_back(
        absl::StrCat("heads not used: ", absl::StrJoin(heads, ", ")));
  }
  for (const std::string& notice : plan.notices) {
    messages.push_back(absl::StrCat("encoder: ", notice));
  }
  return messages;
}

// Mapping from the outputs of the file's classifier to those of the task's
// head.
struct Outputs {
  // Null if the head has none that are named.
  const NamedOutputs* named = nullptr;
  OutputMatch match;

  // True if the outputs of the file's classifier cannot be used.
  bool refuses() const { return named != nullptr && match.rows.empty(); }
};

Outputs MatchHeads(const SourceWeights& source, const TaskModel& model) {
  Outputs outputs;
  outputs.named = dynamic_cast<const NamedOutputs*>(model.head().get());
  const int64_t num_outputs = NumClassifierOutputs(source);
  if (outputs.named == nullptr || num_outputs == 0) {
    return outputs;
  }
  OutputMatch& match = outputs.match;
  const NamedOutputs::Meaning meaning = outputs.named->OutputMeaning();
  const bool of_texts = ClassifiesTexts(source);
  const bool of_tokens = ClassifiesTokens(source);
  if (meaning.of_tokens ? !of_tokens : !of_texts) {
    match.message =
        absl::StrCat("the classifier is not taken: it reads ",
                     of_texts    ? "texts"
                     : of_tokens ? "tokens"
                                 : "choices",
                     ", not ", meaning.of_tokens ? "tokens" : "texts");
  } else if (!meaning.labels.empty()) {
    match =
        MatchOutputs(meaning.labels, source.hugging_face.labels, num_outputs);
  } else if (num_outputs == 1) {
    match.rows = {0};
  } else {
    match.message = absl::StrCat("the classifier is not taken: it has ",
                                 num_outputs, " outputs, not one");
  }
  return outputs;
}

// Replaces the outputs that were loaded in the file's order, or the scale of a
// number, by the task's.
void AdjustOutputs(const Outputs& outputs, const HuggingFaceFields& source,
                   bool in_order, const NamedTensors& head) {
  const auto weight = head.find("head.classifier.weight");
  const auto bias = head.find("head.classifier.bias");
  if (outputs.named == nullptr || outputs.match.rows.empty() ||
      weight == head.end() || bias == head.end()) {
    return;
  }
  const torch::NoGradGuard no_grad;
  torch::Tensor w = weight->second;
  torch::Tensor b = bias->second;
  if (!in_order) {
    const torch::Tensor rows =
        torch::tensor(outputs.match.rows, torch::kInt64).to(w.device());
    w.copy_(w.index_select(0, rows));
    b.copy_(b.index_select(0, rows));
  }
  const NamedOutputs::Meaning meaning = outputs.named->OutputMeaning();
  if (meaning.mean != source.mean || meaning.deviation != source.deviation) {
    w.mul_(source.deviation / meaning.deviation);
    b.mul_(source.deviation)
        .add_(source.mean - meaning.mean)
        .div_(meaning.deviation);
  }
}

// The heads that have the same names in all files, with the name of a weight:
// the pooler of pre-training, and heads that other codes fine-tune.
constexpr std::pair<PretrainingHead, const char*> kKnownHeads[] = {
    {PretrainingHead::kPooler, "head.pooler.weight"},
    {PretrainingHead::kClassifier, "head.classifier.weight"},
    {PretrainingHead::kAnswerSpan, "head.qa_outputs.weight"}};

// The known heads that the file and the model both have, in the same shape.
absl::StatusOr<NamedTensors> KnownHeads(const RunConfig& config,
                                        const WeightFile& file,
                                        const NamedTensors& head,
                                        const Outputs& outputs) {
  NamedTensors known;
  if (IsLifted(config, file)) {
    return known;
  }
  for (const auto& [kind, name] : kKnownHeads) {
    if (!head.contains(name) ||
        (kind == PretrainingHead::kClassifier && outputs.refuses())) {
      continue;
    }
    ETC_ASSIGN_OR_RETURN(
        const HeadPlan plan,
        PlanHeads(file.source, config.model,
                  {.heads = {kind}, .output_rows = outputs.match.rows}));
    NamedTensors tensors;
    for (const WeightStep& step : plan.steps) {
      const auto found = head.find(step.target.name);
      if (found != head.end() && found->second.sizes() == step.target.shape) {
        tensors.insert(*found);
      }
    }
    if (tensors.size() == plan.steps.size()) {
      known.merge(tensors);
    }
  }
  return known;
}

// Returns the reason why no part of a head was taken: `unusable`, or that those
// of BERT do not fit a lifted model.
std::string RandomHeadReason(const RunConfig& config,
                             const FilledEncoder& filled,
                             const NamedTensors& head,
                             const std::string& unusable) {
  std::vector<std::string> lifted;
  for (const auto& [kind, name] : kKnownHeads) {
    const std::string text = PretrainingHeadDescription(kind);
    if (IsLifted(config, filled.file) && head.contains(name) &&
        absl::c_any_of(filled.plan.dropped, [&](const DroppedTensor& tensor) {
          return tensor.head == text;
        })) {
      lifted.push_back(text);
    }
  }
  return lifted.empty()
             ? absl::StrCat(config.init, " ", unusable)
             : absl::StrCat("the model is lifted, which leaves out the ",
                            absl::StrJoin(lifted, " and "), " of ",
                            config.init);
}

// Adds the message or the warning about the outputs.
void AddMatch(const OutputMatch& match, Notices* notices) {
  if (!match.message.empty()) {
    (match.is_guess ? notices->warnings : notices->messages)
        .push_back(absl::StrCat("head: ", match.message));
  }
}

// Fills the head of a task: from one for this task as a whole, or from those of
// its parts that the file has.
absl::StatusOr<FilledHead> FillTaskHead(
    const RunConfig& config, const FilledEncoder& encoder,
    const TaskModel& model, const std::vector<std::string>& output_settings) {
  const WeightFile& file = encoder.file;
  const NamedTensors head = WithPrefix(model.Tensors(), kHeadPrefix);
  const TensorReader reader(file.tensors);
  ETC_ASSIGN_OR_RETURN(std::string unusable,
                       UnusableHeadReason(reader, config.task, head));
  const Outputs outputs = MatchHeads(file.source, model);
  bool has_other_outputs = outputs.refuses();
  if (unusable.empty() && outputs.named == nullptr) {
    ETC_ASSIGN_OR_RETURN(has_other_outputs,
                         HasOtherOutputs(config, output_settings));
  }
  FilledHead filled;
  if (unusable.empty() && !has_other_outputs) {
    ETC_RETURN_IF_ERROR(
        LoadTensors(reader, head, NameMatch::kDestination).status());
    AdjustOutputs(outputs, file.source.hugging_face, /*in_order=*/false, head);
    filled.is_whole = true;
    filled.notices.messages.push_back(absl::StrCat("head: from ", config.init));
    AddDropped(reader, head, &filled.notices.messages);
    AddMatch(outputs.match, &filled.notices);
    return filled;
  }
  if (unusable.empty()) {
    unusable = "has one for other outputs";
  }
  ETC_ASSIGN_OR_RETURN(const NamedTensors known,
                       KnownHeads(config, file, head, outputs));
  if (known.empty()) {
    filled.notices.messages.push_back(
        absl::StrCat("head: random weights; ",
                     RandomHeadReason(config, encoder, head, unusable)));
    filled.random = filled.notices.messages.back();
    if (outputs.refuses()) {
      AddMatch(outputs.match, &filled.notices);
    }
    return filled;
  }
  ETC_ASSIGN_OR_RETURN(
      filled.plan, FillHeads(file, config.model, known, outputs.match.rows));
  AdjustOutputs(outputs, file.source.hugging_face, /*in_order=*/true, known);
  std::vector<std::string> random;
  for (const auto& [name, tensor] : head) {
    if (!known.contains(name)) {
      random.push_back(name);
    }
  }
  filled.notices.messages.push_back(absl::StrCat(
      "head: ", JoinPretrainingHeads(filled.plan.found), " from ", config.init,
      random.empty() ? "" : "; random weights: ", Some(random)));
  if (!random.empty()) {
    filled.random = filled.notices.messages.back();
  }
  AddMatch(outputs.match, &filled.notices);
  return filled;
}

// Returns the HuggingFace fields that a run keeps of its initial weights.
HuggingFaceFields KeptFields(const SourceWeights& source,
                             const EtcConfig& model) {
  HuggingFaceFields kept;
  // Lifted, it is neither BERT nor RoBERTa.
  if (IsBert(model)) {
    kept.model_type = source.hugging_face.model_type;
    kept.pad_token_id = source.hugging_face.pad_token_id;
    kept.classifier_dropout = source.hugging_face.classifier_dropout;
  }
  return kept;
}

}  // namespace

absl::StatusOr<Notices> LoadInitialWeights(
    const RunConfig& config, const TaskModel& model,
    const std::vector<std::string>& output_settings) {
  ETC_RETURN_IF_ERROR(CheckCheckpointFiles(config.init));
  ETC_ASSIGN_OR_RETURN(const FilledEncoder filled,
                       FillEncoder(config.init, model.encoder()->config(),
                                   ModuleTensors(*model.encoder())));
  const WeightFile& file = filled.file;
  const bool pretrains = config.task == kPretrainingTask;
  FilledHead head;
  if (pretrains) {
    ETC_ASSIGN_OR_RETURN(head.plan,
                         FillHeads(file, config.model,
                                   WithPrefix(model.Tensors(), kHeadPrefix)));
    head.notices.messages = head.plan.Messages();
    if (!head.plan.missing.empty()) {
      head.random = absl::StrCat("head: random weights: ",
                                 JoinPretrainingHeads(head.plan.missing));
    }
  } else {
    ETC_ASSIGN_OR_RETURN(head,
                         FillTaskHead(config, filled, model, output_settings));
  }
  if (config.train.steps == 0 && !head.random.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("train.steps is 0, but ", head.random));
  }
  const std::vector<std::string> random = RandomNames(filled.plan);
  if (config.train.steps == 0 && !random.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "train.steps is 0, but ", Counted(std::ssize(random), "parameter"),
        " of the encoder would be random: ", Some(random)));
  }
  model.hugging_face() = KeptFields(file.source, config.model);
  Notices notices = {.messages = EncoderMessages(config, filled, head),
                     .warnings = file.warnings};
  absl::c_move(head.notices.messages, std::back_inserter(notices.messages));
  absl::c_move(head.notices.warnings, std::back_inserter(notices.warnings));
  const std::string before = ResidualText(file.source.config);
  const std::string now = ResidualText(model.encoder()->config());
  if (before != now) {
    notices.messages.push_back(absl::StrCat(
        "residual attention: pre-trained with ", before, ", ",
        pretrains ? "pre-training" : "fine-tuning", " with ", now));
  }
  return notices;
}

}  // namespace etc
