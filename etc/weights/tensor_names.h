#ifndef ETC_ETC_WEIGHTS_TENSOR_NAMES_H_
#define ETC_ETC_WEIGHTS_TENSOR_NAMES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/encoder_parameters.h"

namespace etc {

// The tensors of a file, by the names that their style gives them.
struct RecognizedNames {
  NameStyle style = NameStyle::kRealEtc;
  // What stands before the encoder's names in the file: "bert/".
  std::string prefix;
  // The names in the file of all tensors behind the prefix, by the rest of
  // their names as EncoderParameters spells it: "embeddings.LayerNorm.weight"
  // for "bert.embeddings.LayerNorm.gamma".
  std::map<std::string, std::string> stored_as;
};

// Finds out who named the tensors of the file `source`, by the name of the
// token table.
//   kInvalidArgument  nobody that is known, two at once, or one tensor twice
//                     in two spellings
absl::StatusOr<RecognizedNames> RecognizeNames(
    const std::vector<std::string>& names, const std::string& source);

// Whether a tensor of this name is what training or saving leaves behind:
// optimizer slots, step counters (formats spec 2.8), position numbers.
bool IsBookkeeping(absl::string_view name);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_TENSOR_NAMES_H_
