#ifndef ETC_ETC_WEIGHTS_WEIGHTS_H_
#define ETC_ETC_WEIGHTS_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/config.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/formats/tensor_source.h"

namespace etc {

// The tensors of a file, by the names that their style gives them.
struct RecognizedNames {
  NameStyle style = NameStyle::kRealEtc;
  // What precedes the encoder's names in the file: "bert/".
  std::string prefix;
  // For all tensors with the prefix, the name in the file by the rest of the
  // name as EncoderParameters spells it: "bert.embeddings.LayerNorm.gamma" by
  // "embeddings.LayerNorm.weight".
  std::map<std::string, std::string> stored_as;
};

// Finds the naming style of the tensors `names` in the file `source`, by the
// name of the token table.
//   kInvalidArgument  no known style, two styles, or one tensor in two
//                     spellings
absl::StatusOr<RecognizedNames> RecognizeNames(
    const std::vector<std::string>& names, const std::string& source);

// Whether a tensor of this name is no weight, but left by training or saving:
// optimizer slots, step counters (doc/formats.md 2.8), position numbers.
bool IsBookkeeping(absl::string_view name);

// What files say of an encoder's weights, whichever project wrote them. BERT is
// described as the special case of ETC that it is (source_config.h).
struct SourceWeights {
  std::string path;
  std::map<std::string, TensorInfo> tensors;
  RecognizedNames names;
  EtcConfig config;
  // The row of the position tables that the first token uses: 2 in RoBERTa,
  // where the rows before are for padding.
  int64_t first_position = 0;
};

// An encoder's weights in files of ours, official ETC's, BERT's, RealFormer's
// or RoBERTa's, in any format that OpenTensorSource opens. Copies share the
// files.
struct WeightFile {
  std::shared_ptr<const TensorSource> tensors;
  SourceWeights source;
  std::vector<std::string> warnings;
};

// Opens the files, recognises the names of their tensors and reads the
// configuration beside them. If there is none, it is `assumed`.
//   kNotFound         there are no weights; or no configuration, and `assumed`
//                     is null
//   kInvalidArgument  what OpenTensorSource, RecognizeNames and
//                     ReadSourceConfig reject; a configuration of BERT for
//                     weights of ETC
absl::StatusOr<WeightFile> OpenWeights(const std::string& path,
                                       const EtcConfig* assumed = nullptr);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_WEIGHTS_H_
