#include "etc/weights/weight_plan.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/shape_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/pretraining_parameters.h"
#include "etc/weights/source_config.h"

namespace etc {
namespace {

constexpr char kFresh[] = "freshly initialised";

// Collects mistakes for one message, which shows the first few.
class Mistakes {
 public:
  void Add(std::string text) { texts_.push_back(std::move(text)); }

  absl::Status status(const std::string& path) const {
    constexpr size_t kShown = 5;
    if (texts_.empty()) {
      return absl::OkStatus();
    }
    std::vector<std::string> shown(
        texts_.begin(),
        texts_.begin() + static_cast<int64_t>(std::min(texts_.size(), kShown)));
    if (texts_.size() > kShown) {
      shown.push_back(absl::StrCat("and ", texts_.size() - kShown, " more"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", absl::StrJoin(shown, "; ")));
  }

 private:
  std::vector<std::string> texts_;
};

// Returns true if weights of `from` make sense with the sublayer of `to`. Any
// do with "rezero", whose blocks begin with a factor of 0; those of "post_norm"
// with "admin", whose omegas of 1 leave the function as it is.
bool CanBecome(const EtcConfig& from, const EtcConfig& to) {
  const auto was = SublayerFromName(from.sublayer);
  const auto is = SublayerFromName(to.sublayer);
  return was == is || is == Sublayer::kReZero ||
         (was == Sublayer::kPostNorm && is == Sublayer::kAdmin);
}

// Checks the sizes in which the two configurations must agree.
absl::Status CheckSameSizes(const SourceWeights& source,
                            const EtcConfig& target, bool same_vocabulary) {
  const EtcConfig& from = source.config;
  Mistakes mistakes;
  const auto check = [&](absl::string_view field, int64_t found,
                         int64_t wanted) {
    if (found != wanted) {
      mistakes.Add(
          absl::StrCat(field, " should be ", wanted, ", but is ", found));
    }
  };
  if (same_vocabulary) {
    check("vocab_size", from.vocab_size, target.vocab_size);
  }
  check("embedding_size", from.token_embedding_size(),
        target.token_embedding_size());
  check("hidden_size", from.hidden_size, target.hidden_size);
  check("num_hidden_layers", from.num_hidden_layers, target.num_hidden_layers);
  check("num_attention_heads", from.num_attention_heads,
        target.num_attention_heads);
  check("att_size_per_head", from.head_size(), target.head_size());
  check("intermediate_size", from.intermediate_size, target.intermediate_size);
  if (!CanBecome(from, target)) {
    mistakes.Add(absl::StrCat("sublayer should be ", target.sublayer,
                              ", but is ", from.sublayer));
  }
  check("final_layer_norm", from.final_layer_norm ? 1 : 0,
        target.final_layer_norm ? 1 : 0);
  // If both have relative positions, their ids must mean the same.
  if (from.relative_vocab_size.has_value() &&
      target.relative_vocab_size.has_value()) {
    check("relative_vocab_size", *from.relative_vocab_size,
          *target.relative_vocab_size);
    check("relative_pos_max_distance", from.relative_pos_max_distance,
          target.relative_pos_max_distance);
  }
  return mistakes.status(source.path);
}

// Lists computations that differ in the target with the same weights.
std::vector<std::string> Differences(const EtcConfig& from,
                                     const EtcConfig& to) {
  std::vector<std::string> texts;
  if (from.hidden_act != to.hidden_act) {
    texts.push_back(absl::StrCat("hidden_act was \"", from.hidden_act,
                                 "\" and is \"", to.hidden_act, "\""));
  }
  if (from.sublayer != to.sublayer) {
    texts.push_back(absl::StrCat(
        "sublayer was \"", from.sublayer, "\" and is \"", to.sublayer, "\": ",
        SublayerFromName(to.sublayer) == Sublayer::kReZero
            ? "alphas start at 0, and LayerNorms of layers are left out"
            : "omegas start at 1, with which the model is the same"));
  }
  if (from.layer_norm_epsilon != to.layer_norm_epsilon) {
    texts.push_back(absl::StrCat("layer_norm_epsilon was ",
                                 from.layer_norm_epsilon, " and is ",
                                 to.layer_norm_epsilon));
  }
  return texts;
}

// The configuration of the parameters that the file has: with gates if it has
// any, whatever the mode that its configuration says.
EtcConfig WithGatesOfFile(const SourceWeights& source) {
  EtcConfig config = source.config;
  config.residual_attention = "off";
  if (source.names.style == NameStyle::kRealEtc) {
    for (const std::string& name : GateNames(config)) {
      if (source.names.stored_as.contains(name)) {
        config.residual_attention = "gate";
      }
    }
  }
  return config;
}

// A notice about gates that the file lacks.
std::string NewGatesText(double initial) {
  return absl::StrCat("the weights have no gates: all begin with ", initial,
                      " (residual_gate_init)",
                      initial == 0   ? ", which computes what off does"
                      : initial == 1 ? ", which computes what sum does"
                                     : "");
}

class Planner {
 public:
  Planner(const SourceWeights& source, const EtcConfig& target,
          const WeightPlanOptions& options)
      : source_(source),
        target_(target),
        options_(options),
        lifts_(IsBert(source.config) &&
               target.relative_vocab_size.has_value()) {
    for (EncoderParameter& parameter :
         EncoderParameters(WithGatesOfFile(source))) {
      const std::string name = parameter.name;
      from_.emplace(name, std::move(parameter));
    }
  }

  absl::StatusOr<WeightPlan> Plan() {
    ETC_RETURN_IF_ERROR(
        CheckSameSizes(source_, target_, options_.token_rows.empty()));
    for (EncoderParameter& parameter : EncoderParameters(target_)) {
      AddStep(std::move(parameter));
    }
    ETC_RETURN_IF_ERROR(mistakes_.status(source_.path));
    AddDropped();
    ETC_RETURN_IF_ERROR(mistakes_.status(source_.path));
    for (std::string& difference : Differences(source_.config, target_)) {
      plan_.notices.push_back(std::move(difference));
    }
    if (plan_.NumNewGates() > 0) {
      plan_.notices.push_back(NewGatesText(target_.residual_gate_init));
    }
    if (drops_gates_) {
      plan_.notices.push_back(
          absl::StrCat("the gates of the weights are left out: residual "
                       "attention is ",
                       target_.residual_attention, ", not gate"));
    }
    return std::move(plan_);
  }

 private:
  // The parameter of the source that one of the target is filled from, or null.
  const EncoderParameter* FindSource(const EncoderParameter& target) const {
    if (const auto same = from_.find(target.name); same != from_.end()) {
      return &same->second;
    }
    for (const std::string& stand_in : target.stand_ins) {
      if (const auto found = from_.find(stand_in); found != from_.end()) {
        return &found->second;
      }
    }
    return nullptr;
  }

  void AddStep(EncoderParameter parameter) {
    WeightStep step{.target = std::move(parameter), .how = kFresh};
    const EncoderParameter* from = FindSource(step.target);
    if (from != nullptr) {
      FillStep(*from, &step);
    } else if (step.target.role == ParameterRole::kGate) {
      step.how = absl::StrCat("begins with ", target_.residual_gate_init);
    } else if (step.target.role != ParameterRole::kResidualConnection &&
               step.target.role != ParameterRole::kRelativePosition &&
               step.target.role != ParameterRole::kPositionTable) {
      mistakes_.Add(absl::StrCat("it has no tensor for ", step.target.name));
    }
    plan_.steps.push_back(std::move(step));
  }

  void FillStep(const EncoderParameter& from, WeightStep* step) {
    const NameStyle style = source_.names.style;
    const std::string& name = NameInStyle(from, style);
    const auto stored = source_.names.stored_as.find(name);
    if (stored == source_.names.stored_as.end()) {
      mistakes_.Add(absl::StrCat("there is no tensor ",
                                 QuotedName(source_.names.prefix + name),
                                 " for ", step->target.name));
      return;
    }
    step->source = stored->second;
    used_.insert(stored->second);
    CheckTensor(from, stored->second);
    step->transpose = IsTransposedInStyle(from, style);
    std::vector<std::string> how;
    if (step->transpose) {
      how.push_back("transposed");
    }
    if (from.name != step->target.name) {
      how.push_back(absl::StrCat("a copy of ", from.name));
    }
    if (const std::string rows = ChooseRows(step); !rows.empty()) {
      how.push_back(rows);
    }
    if (const std::string& dtype = source_.tensors.at(step->source).dtype;
        dtype != "F32") {
      how.push_back(absl::StrCat("from ", dtype));
    }
    step->how = how.empty() ? "as it is" : absl::StrJoin(how, ", ");
  }

  void CheckTensor(const EncoderParameter& from, const std::string& stored) {
    std::vector<int64_t> expected = ShapeInStyle(from, source_.names.style);
    if (from.role == ParameterRole::kPositionTable) {
      expected[0] += source_.first_position;
    }
    std::string mistake = StoredTensorMistake(source_, stored, expected);
    if (!mistake.empty()) {
      mistakes_.Add(std::move(mistake));
    }
  }

  // Sets the rows of a table if they are not those of the source in order.
  // Returns a description of them, or an empty string.
  std::string ChooseRows(WeightStep* step) {
    const int64_t rows = step->target.shape[0];
    const auto count_from = [&](int64_t first, int64_t available) {
      step->rows.assign(static_cast<size_t>(rows), -1);
      for (int64_t i = 0; i < std::min(rows, available); ++i) {
        step->rows[static_cast<size_t>(i)] = first + i;
      }
    };
    switch (step->target.role) {
      case ParameterRole::kTokenTable:
        return ChooseTokenRows(step);
      case ParameterRole::kSegmentTable:
        return ChooseSegmentRows(step, count_from);
      case ParameterRole::kPositionTable: {
        const int64_t available =
            source_.config.max_absolute_position_embeddings;
        const int64_t first = source_.first_position;
        if (rows > available) {
          mistakes_.Add(absl::StrCat(
              "max_absolute_position_embeddings should be at least ", rows,
              ", but is ", available));
        }
        if (rows == available && first == 0) {
          return "";
        }
        count_from(first, rows);
        return absl::StrCat("rows ", first, " to ", first + rows - 1);
      }
      default:
        return "";
    }
  }

  std::string ChooseTokenRows(WeightStep* step) {
    if (options_.token_rows.empty()) {
      return "";
    }
    step->rows = options_.token_rows;
    if (static_cast<int64_t>(step->rows.size()) != target_.vocab_size) {
      mistakes_.Add(absl::StrCat("rows are given for ", step->rows.size(),
                                 " pieces, but vocab_size is ",
                                 target_.vocab_size));
    }
    const auto found = std::count_if(step->rows.begin(), step->rows.end(),
                                     [](int64_t row) { return row >= 0; });
    return absl::StrCat("by piece: ", found, " of ", target_.vocab_size,
                        " rows found, the others ", kFresh);
  }

  template <typename CountFrom>
  std::string ChooseSegmentRows(WeightStep* step, CountFrom count_from) {
    const int64_t available = source_.config.segment_vocab_size;
    const int64_t rows = target_.segment_vocab_size;
    if (lifts_ &&
        options_.segments == WeightPlanOptions::Segments::kBroadcast) {
      step->rows.assign(static_cast<size_t>(rows), 0);
      return "row 0 for every segment";
    }
    if (rows == available) {
      return "";
    }
    if (!lifts_) {
      mistakes_.Add(absl::StrCat("segment_vocab_size should be ", rows,
                                 ", but is ", available));
    }
    count_from(0, available);
    return available < rows
               ? absl::StrCat(available, " rows, the others ", kFresh)
               : absl::StrCat("rows 0 to ", rows - 1);
  }

  // Adds the tensors of the file that are not used. Weights of the encoder may
  // be among them only if lifting does not need them.
  void AddDropped() {
    std::map<std::string, const EncoderParameter*> encoder;
    for (const auto& [name, parameter] : from_) {
      const auto stored = source_.names.stored_as.find(
          NameInStyle(parameter, source_.names.style));
      if (stored != source_.names.stored_as.end()) {
        encoder.emplace(stored->second, &parameter);
      }
    }
    const std::map<std::string, PretrainingHead> heads =
        PretrainingTensors(source_.config, source_.names);
    for (const auto& [name, info] : source_.tensors) {
      if (used_.contains(name)) {
        continue;
      }
      const auto found = encoder.find(name);
      if (found == encoder.end()) {
        AddUnknown(name, heads);
      } else if (lifts_ &&
                 found->second->role == ParameterRole::kPositionTable) {
        plan_.dropped.push_back(
            {name, "absolute positions, in whose place are relative ones"});
      } else if (found->second->role == ParameterRole::kGate &&
                 target_.residual_attention != "gate") {
        drops_gates_ = true;
        plan_.dropped.push_back({name, "a gate, but the mode is not gate"});
      } else if (target_.sublayer != source_.config.sublayer &&
                 found->second->role == ParameterRole::kResidualConnection) {
        plan_.dropped.push_back(
            {name, absl::StrCat("for which sublayer \"", target_.sublayer,
                                "\" has no place")});
      } else {
        mistakes_.Add(absl::StrCat(
            "tensor ", QuotedName(name), ", which is its ", found->second->name,
            ", has no place in the model, which shares or lacks parameters "
            "that are separate here"));
      }
    }
  }

  // Adds a tensor that is none of the encoder's.
  void AddUnknown(const std::string& name,
                  const std::map<std::string, PretrainingHead>& heads) {
    const auto head = heads.find(name);
    if (head != heads.end()) {
      const char* what = PretrainingHeadDescription(head->second);
      plan_.dropped.push_back({name, absl::StrCat("part of the ", what), what});
    } else if (IsBookkeeping(name)) {
      ++plan_.bookkeeping;
    } else {
      plan_.dropped.push_back({name, "not part of the encoder"});
    }
  }

  const SourceWeights& source_;
  const EtcConfig& target_;
  const WeightPlanOptions& options_;
  const bool lifts_;
  std::map<std::string, EncoderParameter> from_;  // by our name
  std::set<std::string> used_;                    // names in the file
  bool drops_gates_ = false;
  Mistakes mistakes_;
  WeightPlan plan_;
};

}  // namespace

bool IsFloating(absl::string_view name) {
  const Dtype* dtype = FindDtype(name);
  return dtype != nullptr && !dtype->pytorch.empty() &&
         absl::StrContains(name, 'F');
}

bool IsBookkeeping(absl::string_view name) {
  static constexpr std::array<absl::string_view, 13> kLast = {
      "adam_m",      "adam_v",      "lamb_m",      "lamb_v",   "m",
      "v",           "Adam",        "Adam_1",      "Momentum", "global_step",
      "beta1_power", "beta2_power", "save_counter"};
  const absl::string_view last = name.substr(name.rfind('/') + 1);
  if (std::find(kLast.begin(), kLast.end(), last) != kLast.end()) {
    return true;
  }
  for (const absl::string_view component : absl::StrSplit(name, '/')) {
    if (absl::StartsWith(component, "AdamWeightDecayOptimizer") ||
        absl::StartsWith(component, "LAMBOptimizer")) {
      return true;
    }
  }
  return absl::EndsWith(name, "embeddings.position_ids") ||
         absl::EndsWith(name, "embeddings.token_type_ids");
}

std::vector<std::string> WeightPlan::FreshNames() const {
  std::vector<std::string> names;
  for (const WeightStep& step : steps) {
    if (step.source.empty() && step.target.role != ParameterRole::kGate) {
      names.push_back(step.target.name);
    }
  }
  return names;
}

int64_t WeightPlan::NumNewGates() const {
  return std::count_if(steps.begin(), steps.end(), [](const WeightStep& step) {
    return step.source.empty() && step.target.role == ParameterRole::kGate;
  });
}

std::string StoredTensorMistake(const SourceWeights& source,
                                const std::string& stored,
                                const std::vector<int64_t>& expected) {
  const TensorInfo& info = source.tensors.at(stored);
  const std::string tensor = absl::StrCat("tensor ", QuotedName(stored));
  if (info.shape != expected) {
    return absl::StrCat(tensor, " should be ", ShapeText(expected), ", but is ",
                        ShapeText(info.shape));
  }
  return IsFloating(info.dtype)
             ? ""
             : absl::StrCat(tensor, " should hold floating numbers, but is ",
                            info.dtype);
}

std::vector<TensorCopy> CopiesOf(const std::vector<WeightStep>& steps) {
  std::vector<TensorCopy> copies;
  for (const WeightStep& step : steps) {
    if (!step.source.empty()) {
      copies.push_back({.source = step.source,
                        .target = step.target.name,
                        .transpose = step.transpose,
                        .rows = step.rows});
    }
  }
  return copies;
}

absl::StatusOr<WeightPlan> PlanWeights(const SourceWeights& source,
                                       const EtcConfig& target,
                                       const WeightPlanOptions& options) {
  return Planner(source, target, options).Plan();
}

}  // namespace etc
