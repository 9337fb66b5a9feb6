#ifndef ETC_ETC_WEIGHTS_HUGGING_FACE_FIELDS_H_
#define ETC_ETC_WEIGHTS_HUGGING_FACE_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// Fields of HuggingFace's config.json for which the encoder's configuration has
// no place. They are kept from `import` and training to `export`, in the
// metadata of our safetensors files.
struct HuggingFaceFields {
  // Or "roberta", or "xlm-roberta" or "camembert", which are RoBERTa under
  // another name.
  std::string model_type = "bert";
  // The class of the model, "BertForTokenClassification"; empty: not said.
  std::string architecture;
  std::optional<int64_t> pad_token_id;
  std::optional<double> classifier_dropout;
  // "single_label_classification", "multi_label_classification" or
  // "regression"; empty: not said.
  std::string problem_type;
  // The name of each output of the classifier; empty where it has none, or only
  // HuggingFace's placeholders LABEL_0, LABEL_1, ...
  std::vector<std::string> labels;
  // The reason why id2label and label2id cannot be used; empty if they can. An
  // error only where there is a classifier.
  std::string labels_mistake;
  // A regression predicts mean + deviation * output. HuggingFace's predicts the
  // output: `export` multiplies the classifier accordingly.
  double mean = 0;
  double deviation = 1;

  bool is_roberta() const { return model_type != "bert"; }
  // True if the classifier reads each token.
  bool classifies_tokens() const;
  // True if the classifier reads each of several choices.
  bool chooses() const;

  bool operator==(const HuggingFaceFields&) const = default;
};

// The beginning of the names of HuggingFace's classes for a model_type:
// "Bert", "Roberta", "XLMRoberta" or "Camembert".
std::string ClassPrefix(const std::string& model_type);

// HuggingFace's name of an output that was given none: "LABEL_0", ...
std::string PlaceholderLabel(size_t index);

// Reads them from the contents of a config.json. Without `model_type` the
// architecture decides ("RobertaModel"). `source` starts each message.
//   kInvalidArgument  a field of a wrong type; another model_type
absl::StatusOr<HuggingFaceFields> HuggingFaceFieldsFromJson(
    const nlohmann::json& json, const std::string& source);

// The fields of config.json that HuggingFaceFieldsFromJson reads: those that
// are said, and for a classifier of `num_outputs` > 0 the labels.
nlohmann::json HuggingFaceFieldsToJson(const HuggingFaceFields& fields,
                                       int64_t num_outputs);

// The same in the metadata of a safetensors file: under one key, or under none
// if no field is set.
std::map<std::string, std::string> MetadataOf(const HuggingFaceFields& fields);
//   kInvalidArgument  metadata that MetadataOf does not write
absl::StatusOr<HuggingFaceFields> HuggingFaceFieldsFromMetadata(
    const std::map<std::string, std::string>& metadata,
    const std::string& source);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_HUGGING_FACE_FIELDS_H_
