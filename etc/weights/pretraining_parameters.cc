#include "etc/weights/pretraining_parameters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace etc {
namespace {

// The encoder's prefix in the names below, which is another one in some files.
constexpr absl::string_view kBertPrefixes[] = {"bert/", "bert."};

int64_t HeadWidth(const EtcConfig& c) { return c.token_embedding_size(); }
int64_t HeadHidden(const EtcConfig& c) { return c.hidden_size; }
int64_t HeadTokens(const EtcConfig& c) { return c.vocab_size; }
int64_t HeadClasses(const EtcConfig&) { return 2; }
// Outputs of a classifier: the file states their number.
int64_t HeadOutputs(const EtcConfig&) { return 0; }

struct HeadRow {
  PretrainingHead head;
  bool is_kernel;
  int64_t (*rows)(const EtcConfig& config);
  int64_t (*columns)(const EtcConfig& config);  // null: a vector
  const char* ours;                             // after "head."
  const char* tensorflow;
  const char* hugging_face;
  const char* others;  // by commas
};

using enum PretrainingHead;
// doc/formats.md 3.2, 3.3. The NSP head's matrix is [out, in] everywhere.
constexpr HeadRow kHeadRows[] = {
    {kMlm, true, HeadWidth, HeadHidden, "mlm.transform.weight",
     "cls/predictions/transform/dense/kernel",
     "cls.predictions.transform.dense.weight", "lm_head.dense.weight"},
    {kMlm, false, HeadWidth, nullptr, "mlm.transform.bias",
     "cls/predictions/transform/dense/bias",
     "cls.predictions.transform.dense.bias", "lm_head.dense.bias"},
    {kMlm, false, HeadWidth, nullptr, "mlm.norm.weight",
     "cls/predictions/transform/LayerNorm/gamma",
     "cls.predictions.transform.LayerNorm.weight", "lm_head.layer_norm.weight"},
    {kMlm, false, HeadWidth, nullptr, "mlm.norm.bias",
     "cls/predictions/transform/LayerNorm/beta",
     "cls.predictions.transform.LayerNorm.bias", "lm_head.layer_norm.bias"},
    {kMlm, false, HeadTokens, nullptr, "mlm.output_bias",
     "cls/predictions/output_bias", "cls.predictions.bias",
     "cls.predictions.decoder.bias,lm_head.bias,lm_head.decoder.bias"},
    {kPooler, true, HeadHidden, HeadHidden, "pooler.weight",
     "bert/pooler/dense/kernel", "bert.pooler.dense.weight",
     "classifier.dense.weight"},
    {kPooler, false, HeadHidden, nullptr, "pooler.bias",
     "bert/pooler/dense/bias", "bert.pooler.dense.bias",
     "classifier.dense.bias"},
    {kNsp, false, HeadClasses, HeadHidden, "nsp.weight",
     "cls/seq_relationship/output_weights", "cls.seq_relationship.weight", ""},
    {kNsp, false, HeadClasses, nullptr, "nsp.bias",
     "cls/seq_relationship/output_bias", "cls.seq_relationship.bias", ""},
    {kCpc, false, HeadHidden, HeadHidden, "cpc.kernel", "cpc/kernel",
     "cpc.kernel", ""},
};
// Heads of run_classifier.py and run_squad.py, whose matrices are [out, in],
// too.
constexpr HeadRow kTaskHeadRows[] = {
    {kClassifier, false, HeadOutputs, HeadHidden, "classifier.weight",
     "output_weights", "classifier.weight", "classifier.out_proj.weight"},
    {kClassifier, false, HeadOutputs, nullptr, "classifier.bias", "output_bias",
     "classifier.bias", "classifier.out_proj.bias"},
    {kAnswerSpan, false, HeadClasses, HeadHidden, "qa_outputs.weight",
     "cls/squad/output_weights", "qa_outputs.weight", ""},
    {kAnswerSpan, false, HeadClasses, nullptr, "qa_outputs.bias",
     "cls/squad/output_bias", "qa_outputs.bias", ""},
};

// Returns the prefix of the encoder's prefix: "module." of "module.bert.".
std::string PrefixOfHeads(const RecognizedNames& names) {
  if (names.prefix.empty()) {
    return "";
  }
  const size_t last =
      names.prefix.substr(0, names.prefix.size() - 1).find_last_of("./");
  return last == std::string::npos ? "" : names.prefix.substr(0, last + 1);
}

void AddNew(std::string name, std::vector<std::string>* names) {
  if (std::find(names->begin(), names->end(), name) == names->end()) {
    names->push_back(std::move(name));
  }
}

// Adds the spellings of `name` in a file.
void AddSpellings(absl::string_view name, const RecognizedNames& names,
                  std::vector<std::string>* spellings) {
  const std::string outer = PrefixOfHeads(names);
  for (const absl::string_view prefix : kBertPrefixes) {
    if (absl::string_view rest = name; absl::ConsumePrefix(&rest, prefix)) {
      AddNew(absl::StrCat(names.prefix, rest), spellings);
    }
  }
  AddNew(absl::StrCat(outer, name), spellings);
  absl::string_view stem = name;
  if (names.style == NameStyle::kHuggingFace &&
      absl::StrContains(name, "LayerNorm.")) {
    if (absl::ConsumeSuffix(&stem, "weight")) {
      AddNew(absl::StrCat(outer, stem, "gamma"), spellings);
    } else if (absl::ConsumeSuffix(&stem, "bias")) {
      AddNew(absl::StrCat(outer, stem, "beta"), spellings);
    }
  }
}

PretrainingParameter ParameterOf(const HeadRow& row, const EtcConfig& config) {
  PretrainingParameter entry{
      .head = row.head,
      .parameter = {.name = absl::StrCat("head.", row.ours),
                    .shape = {row.rows(config)},
                    .is_kernel = row.is_kernel,
                    .official_etc = row.tensorflow,
                    .google_bert = row.tensorflow,
                    .hugging_face = row.hugging_face},
      .other_hugging_face = absl::StrSplit(row.others, ',', absl::SkipEmpty())};
  if (row.columns != nullptr) {
    entry.parameter.shape.push_back(row.columns(config));
  }
  return entry;
}

}  // namespace

const char* PretrainingHeadDescription(PretrainingHead head) {
  switch (head) {
    case PretrainingHead::kMlm:
      return "MLM head";
    case PretrainingHead::kPooler:
      return "pooler";
    case PretrainingHead::kNsp:
      return "NSP head";
    case PretrainingHead::kCpc:
      return "CPC kernel";
    case PretrainingHead::kClassifier:
      return "classifier";
    case PretrainingHead::kAnswerSpan:
      return "answer span";
  }
  return "";
}

std::string JoinPretrainingHeads(const std::vector<PretrainingHead>& heads) {
  return heads.empty()
             ? "none"
             : absl::StrJoin(heads, ", ",
                             [](std::string* text, PretrainingHead head) {
                               *text += PretrainingHeadDescription(head);
                             });
}

std::vector<PretrainingParameter> PretrainingParameters(
    const EtcConfig& config) {
  std::vector<PretrainingParameter> all;
  for (const HeadRow& row : kHeadRows) {
    all.push_back(ParameterOf(row, config));
    if (row.rows == HeadTokens) {
      all.back().parameter.role = ParameterRole::kTokenBias;
    }
  }
  return all;
}

std::vector<PretrainingParameter> TaskHeadParameters(const EtcConfig& config,
                                                     int64_t outputs) {
  std::vector<PretrainingParameter> all;
  for (const HeadRow& row : kTaskHeadRows) {
    all.push_back(ParameterOf(row, config));
    all.back().parameter.official_etc.clear();
    if (row.rows == HeadOutputs) {
      all.back().parameter.shape[0] = outputs;
    }
  }
  return all;
}

std::vector<PretrainingParameter> AllHeadParameters(const EtcConfig& config,
                                                    int64_t outputs) {
  std::vector<PretrainingParameter> all = PretrainingParameters(config);
  for (PretrainingParameter& parameter : TaskHeadParameters(config, outputs)) {
    all.push_back(std::move(parameter));
  }
  return all;
}

std::vector<std::string> NamesInFile(const PretrainingParameter& parameter,
                                     const RecognizedNames& names) {
  std::vector<std::string> spellings;
  const std::string& name = NameInStyle(parameter.parameter, names.style);
  if (name.empty()) {
    return spellings;
  }
  AddSpellings(name, names, &spellings);
  if (names.style == NameStyle::kHuggingFace) {
    for (const std::string& other : parameter.other_hugging_face) {
      AddSpellings(other, names, &spellings);
    }
  }
  return spellings;
}

std::vector<std::string> DecoderNamesInFile(const RecognizedNames& names) {
  std::vector<std::string> spellings;
  if (names.style == NameStyle::kHuggingFace) {
    AddSpellings("cls.predictions.decoder.weight", names, &spellings);
    AddSpellings("lm_head.decoder.weight", names, &spellings);
  }
  return spellings;
}

std::map<std::string, PretrainingHead> PretrainingTensors(
    const EtcConfig& config, const RecognizedNames& names) {
  std::map<std::string, PretrainingHead> tensors;
  for (const PretrainingParameter& parameter : AllHeadParameters(config)) {
    for (const std::string& name : NamesInFile(parameter, names)) {
      tensors.emplace(name, parameter.head);
    }
  }
  for (const std::string& name : DecoderNamesInFile(names)) {
    tensors.emplace(name, PretrainingHead::kMlm);
  }
  return tensors;
}

}  // namespace etc
