#ifndef ETC_ETC_WEIGHTS_SOURCE_CONFIG_H_
#define ETC_ETC_WEIGHTS_SOURCE_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/hugging_face_fields.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// The path of file `name` in the directory of the weights; empty if there is no
// such file, nor a link of that name. Here and below, `path` is that directory,
// or a file or the prefix of files in it.
std::string FileBesideWeights(const std::string& path, const std::string& name);

// The encoder that weights are of, by the configuration in their directory.
//
// BERT is described as an ETC: all tokens global, none long, absolute positions
// and no relative ones, and everything shared that can be. RealFormer's BERT is
// that with residual attention (doc/model.md 10.1).
struct SourceConfig {
  std::string path;  // of the configuration
  EtcConfig config;
  bool is_bert = false;  // whether it is BERT's; etc_config.json never is
  // Rows of the position table before that of the first token: in RoBERTa two,
  // for padding, which `config` does not count.
  int64_t first_position = 0;
  // The fields of HuggingFace's config.json, or the labels of a
  // bert_config.json, which only our exports have.
  HuggingFaceFields hugging_face;
  std::vector<std::string> warnings;
};

// Reads the first that exists of a config.json of ExportForTransformers, which
// transformers keeps up to date, etc_config.json, bert_config.json and any
// other config.json. Beside tensors in HuggingFace's names as
// ReadBertSourceConfig.
//   kNotFound         none does
//   kInvalidArgument  it is invalid
absl::StatusOr<SourceConfig> ReadSourceConfig(const std::string& path);

// The same without etc_config.json: beside weights of BERT that may be the
// configuration they are to be lifted to. `names` are those of the tensors,
// where they are known. Beside HuggingFace's, config.json comes first, and
// either file means what HuggingFace's code makes of it: the exact gelu, and
// with the prefix "roberta." RoBERTa unless the file says BERT.
absl::StatusOr<SourceConfig> ReadBertSourceConfig(
    const std::string& path, const RecognizedNames* names = nullptr);

// The `model_type` that follows from the names of tensors where no
// configuration says one.
std::string ModelTypeOf(const RecognizedNames& names);

// `model_type` in config.json of ExportForTransformers.
inline constexpr char kRealEtcModelType[] = "realetc";
// Returns true for the contents of config.json of ExportForTransformers, or
// what transformers made of it.
bool IsOfTransformersExport(const nlohmann::json& fields);

// The contents of `bert_config.json` of Google's code, or of `config.json` of
// HuggingFace's BERT or RoBERTa, told apart by fields that only the latter has.
// They mean different functions by "gelu": the tanh form and the exact one.
// `use_running_mean`, which only RealFormer writes, gives residual attention
// "sum" (false) or "mean" (true); `residual_attention` and `residual_decay`,
// which only we write, give "decay". `source` becomes the path.
//   kInvalidArgument  a field is missing, of a wrong type, or asks for what is
//                     not BERT: another model_type, relative positions, a
//                     decoder
absl::StatusOr<SourceConfig> BertConfigFromJson(const nlohmann::json& fields,
                                                const std::string& source);

// The same model as BERT: Post-LN, shared wherever it can be, without relative
// positions and long tokens.
EtcConfig AsBert(EtcConfig config);

// Returns true for BERT and RoBERTa: positions are absolute only, and there are
// no long tokens, or they share all that can be shared with the global ones.
bool IsBert(const EtcConfig& config);

// The configuration files of Google's code and of HuggingFace for a
// configuration that IsBert, of BERT or RoBERTa as `fields` says, in which an
// absent pad_token_id is the usual one. `num_outputs` is that of a classifier,
// whose labels are written; 0: there is none. Google's code ignores the labels;
// we read them.
std::string GoogleBertConfigToJson(const EtcConfig& config,
                                   const HuggingFaceFields& fields = {},
                                   int64_t num_outputs = 0);
std::string HuggingFaceConfigToJson(
    const EtcConfig& config,
    const HuggingFaceFields& fields = {.architecture = "BertModel"},
    int64_t num_outputs = 0);

// The row of the position table that the first token of a model uses: behind
// that of padding in RoBERTa.
int64_t FirstPosition(const HuggingFaceFields& fields);

// The ETC that BERT or RoBERTa is lifted to by default: its sizes, vocabulary,
// activation and residual attention, all else as in ETC's published base model
// (doc/model.md 11; ETC's epsilon).
EtcConfig LiftedConfig(const EtcConfig& bert);

// The default configuration of a model that starts from these weights: the
// same, or for BERT and RoBERTa the LiftedConfig.
EtcConfig InitialConfig(const SourceConfig& source);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_SOURCE_CONFIG_H_
