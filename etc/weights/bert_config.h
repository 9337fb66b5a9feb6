#ifndef ETC_ETC_WEIGHTS_BERT_CONFIG_H_
#define ETC_ETC_WEIGHTS_BERT_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "etc/config.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// BERT is the encoder with all tokens global, none long, absolute positions and
// no relative ones, where everything that could be shared is; RealFormer's BERT
// is that with residual attention (model spec 10.1).
struct BertConfig {
  EtcConfig config;
  // Rows of the position table before that of the first token: RoBERTa's
  // padding has two, which `config` does not count.
  int64_t first_position = 0;
};

// From `bert_config.json` of Google's code, or `config.json` of HuggingFace's
// BERT or RoBERTa, told apart by the fields that only the latter writes. The
// two mean different functions by "gelu": the tanh form, and the exact one.
// `use_running_mean`, which only RealFormer writes, gives residual attention
// "sum" (false) or "mean" (true).
//   kInvalidArgument  a field is missing, of a wrong type, or asks for what is
//                     not BERT: another model_type, relative positions, a
//                     decoder
absl::StatusOr<BertConfig> BertConfigFromJson(const nlohmann::json& fields,
                                              const std::string& source);

// The same model as BERT: shared wherever it can be, without relative
// positions.
EtcConfig AsBert(EtcConfig config);

// Such files for a configuration that HasOnlyAbsolutePositions, in either form.
std::string GoogleBertConfigToJson(const EtcConfig& config);
std::string HuggingFaceBertConfigToJson(const EtcConfig& config);

// The ETC that BERT or RoBERTa is lifted to where nobody says otherwise: its
// sizes, its vocabulary and its residual attention, all else as in ETC's
// published base model (model spec 11; ETC's gelu and epsilon).
EtcConfig LiftedConfig(const EtcConfig& bert);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_BERT_CONFIG_H_
