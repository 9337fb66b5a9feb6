#include "etc/weights/head_plan.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc {
namespace {

// Returns the members of `names` that the file has.
std::vector<std::string> InFile(const SourceWeights& source,
                                const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (source.tensors.contains(name)) {
      found.push_back(name);
    }
  }
  return found;
}

// `parameter` is the source's.
absl::Status CheckHeadTensor(const SourceWeights& source,
                             const EncoderParameter& parameter,
                             const std::string& stored) {
  const std::string mistake = StoredTensorMistake(
      source, stored, ShapeInStyle(parameter, source.names.style));
  return mistake.empty() ? absl::OkStatus()
                         : InvalidArgument(source.path, ": ", mistake);
}

// The names of a parameter of a head that the file has and that are to be read.
// Older files of RoBERTa's classifier have a pooler that nothing reads beside
// the classifier's own.
std::vector<std::string> FoundNames(const SourceWeights& source,
                                    const PretrainingParameter& parameter) {
  std::vector<std::string> found =
      InFile(source, NamesInFile(parameter, source.names));
  const auto is_of_classifier = [](const std::string& name) {
    return absl::StrContains(name, "classifier.dense.");
  };
  if (parameter.head == PretrainingHead::kPooler &&
      std::any_of(found.begin(), found.end(), is_of_classifier)) {
    std::erase_if(found, [&](const std::string& name) {
      return !is_of_classifier(name);
    });
  }
  return found;
}

// True if the file has a parameter of the head.
bool HasSome(const SourceWeights& source, PretrainingHead head) {
  for (const PretrainingParameter& parameter :
       AllHeadParameters(source.config)) {
    if (parameter.head == head && !FoundNames(source, parameter).empty()) {
      return true;
    }
  }
  return false;
}

class HeadPlanner {
 public:
  HeadPlanner(const SourceWeights& source, const EtcConfig& target,
              const HeadPlanOptions& options)
      : source_(source),
        options_(options),
        from_(AllHeadParameters(source.config, OutputsOf(source))),
        to_(AllHeadParameters(
            target, options.output_rows.empty()
                        ? OutputsOf(source)
                        : static_cast<int64_t>(options.output_rows.size()))) {}

  absl::StatusOr<HeadPlan> Plan() {
    for (const PretrainingHead head : options_.heads) {
      if (head == PretrainingHead::kMlm && HasOtherActivation()) {
        plan_.missing.push_back(head);
        plan_.notices.push_back(absl::StrCat(
            "the MLM head is left out: RoBERTa's has the exact gelu, but ours "
            "would have the encoder's activation, ",
            source_.config.hidden_act));
        continue;
      }
      ETC_RETURN_IF_ERROR(Add(head));
    }
    return std::move(plan_);
  }

 private:
  static int64_t OutputsOf(const SourceWeights& source) {
    return std::max<int64_t>(1, NumClassifierOutputs(source));
  }

  bool HasOtherActivation() const {
    return source_.names.style == NameStyle::kHuggingFace &&
           source_.hugging_face.is_roberta() &&
           source_.config.hidden_act != "gelu_erf" &&
           HasSome(source_, PretrainingHead::kMlm);
  }

  absl::Status Add(PretrainingHead head) {
    std::vector<std::string> there;
    std::vector<std::string> absent;
    for (const PretrainingParameter& parameter : from_) {
      if (parameter.head != head) {
        continue;
      }
      const auto names = NamesInFile(parameter, source_.names);
      if (names.empty()) {
        continue;
      }
      const auto found = FoundNames(source_, parameter);
      if (found.empty()) {
        absent.push_back(QuotedName(names.front()));
      } else {
        there.push_back(QuotedName(found.front()));
      }
    }
    if (there.empty()) {
      plan_.missing.push_back(head);
      return absl::OkStatus();
    }
    if (!absent.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          source_.path, ": its ", PretrainingHeadDescription(head),
          " is incomplete: it has no tensor ", absl::StrJoin(absent, ", "),
          ", but ", absl::StrJoin(there, ", ")));
    }
    plan_.found.push_back(head);
    for (size_t i = 0; i < from_.size(); ++i) {
      if (from_[i].head == head) {
        ETC_RETURN_IF_ERROR(AddParameter(from_[i], to_[i].parameter));
      }
    }
    return head == PretrainingHead::kMlm ? TieDecoder() : absl::OkStatus();
  }

  absl::Status AddParameter(const PretrainingParameter& from,
                            EncoderParameter target) {
    const NameStyle style = source_.names.style;
    const std::vector<std::string> found = FoundNames(source_, from);
    for (const std::string& name : found) {
      ETC_RETURN_IF_ERROR(CheckHeadTensor(source_, from.parameter, name));
      if (name != found.front()) {
        plan_.tied.push_back({name, found.front()});
      }
    }
    WeightStep step{.target = std::move(target),
                    .source = found.front(),
                    .transpose = IsTransposedInStyle(from.parameter, style)};
    std::vector<std::string> how;
    if (step.transpose) {
      how.emplace_back("transposed");
    }
    if (step.target.role == ParameterRole::kTokenBias &&
        !options_.token_rows.empty()) {
      step.rows = options_.token_rows;
      how.emplace_back("by piece, the others 0");
    }
    if (from.head == PretrainingHead::kClassifier &&
        !options_.output_rows.empty()) {
      step.rows = options_.output_rows;
      how.emplace_back("by label");
    }
    if (const std::string& dtype = source_.tensors.at(step.source).dtype;
        dtype != "F32") {
      how.push_back(absl::StrCat("from ", dtype));
    }
    step.how = how.empty() ? "as it is" : absl::StrJoin(how, ", ");
    plan_.steps.push_back(std::move(step));
    return absl::OkStatus();
  }

  absl::Status TieDecoder() {
    for (const EncoderParameter& parameter :
         EncoderParameters(source_.config)) {
      if (parameter.role != ParameterRole::kTokenTable) {
        continue;
      }
      const auto table = source_.names.stored_as.find(
          NameInStyle(parameter, source_.names.style));
      for (const std::string& name :
           InFile(source_, DecoderNamesInFile(source_.names))) {
        ETC_RETURN_IF_ERROR(CheckHeadTensor(source_, parameter, name));
        if (table != source_.names.stored_as.end()) {
          plan_.tied.push_back({name, table->second});
        }
      }
    }
    return absl::OkStatus();
  }

  const SourceWeights& source_;
  const HeadPlanOptions& options_;
  const std::vector<PretrainingParameter> from_;
  const std::vector<PretrainingParameter> to_;
  HeadPlan plan_;
};

}  // namespace

bool HeadPlan::Uses(const std::string& name) const {
  return std::any_of(
             steps.begin(), steps.end(),
             [&](const WeightStep& step) { return step.source == name; }) ||
         std::any_of(tied.begin(), tied.end(), [&](const TiedTensor& tensor) {
           return tensor.name == name;
         });
}

bool HeadPlan::Has(PretrainingHead head) const {
  return std::find(found.begin(), found.end(), head) != found.end();
}

std::vector<std::string> HeadPlan::Messages() const {
  std::vector<std::string> messages;
  for (const PretrainingHead head : found) {
    messages.push_back(
        absl::StrCat(PretrainingHeadDescription(head), ": found"));
  }
  for (const PretrainingHead head : missing) {
    messages.push_back(absl::StrCat(PretrainingHeadDescription(head),
                                    ": not in the file, starts at random"));
  }
  messages.insert(messages.end(), notices.begin(), notices.end());
  return messages;
}

int64_t NumClassifierOutputs(const SourceWeights& source) {
  for (const PretrainingParameter& parameter :
       TaskHeadParameters(source.config, 1)) {
    if (parameter.head != PretrainingHead::kClassifier) {
      continue;
    }
    for (const std::string& name : FoundNames(source, parameter)) {
      const std::vector<int64_t>& shape = source.tensors.at(name).shape;
      if (!shape.empty() && shape[0] > 0) {
        return shape[0];
      }
    }
  }
  return 0;
}

bool ClassifiesTexts(const SourceWeights& source) {
  return NumClassifierOutputs(source) > 0 &&
         HasSome(source, PretrainingHead::kPooler) &&
         !source.hugging_face.classifies_tokens() &&
         !source.hugging_face.chooses();
}

bool ClassifiesTokens(const SourceWeights& source) {
  return NumClassifierOutputs(source) > 0 && !ClassifiesTexts(source) &&
         !source.hugging_face.chooses();
}

std::vector<PretrainingHead> AllHeads() {
  std::vector<PretrainingHead> all(std::begin(kAllPretrainingHeads),
                                   std::end(kAllPretrainingHeads));
  all.insert(all.end(), std::begin(kTaskHeads), std::end(kTaskHeads));
  return all;
}

absl::StatusOr<HeadPlan> PlanHeads(const SourceWeights& source,
                                   const EtcConfig& target,
                                   const HeadPlanOptions& options) {
  return HeadPlanner(source, target, options).Plan();
}

}  // namespace etc
