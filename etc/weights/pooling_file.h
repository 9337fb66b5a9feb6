#ifndef ETC_ETC_WEIGHTS_POOLING_FILE_H_
#define ETC_ETC_WEIGHTS_POOLING_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// The file of sentence-transformers that says how the outputs of tokens become
// the vector of a text; in a folder beside the weights.
inline constexpr char kPoolingFile[] = "1_Pooling/config.json";

// Reads that file beside the weights at `path`: true for the mean of all
// tokens, false for the first token, or without the file. Its older versions
// have a flag for each mode, "pooling_mode_mean_tokens", newer ones the name of
// the mode, "pooling_mode".
//   kInvalidArgument  the file is malformed, or asks for another pooling
absl::StatusOr<bool> PoolsByMean(const std::string& path);

// Copies that file, if there is one, into `directory`.
absl::Status CopyPoolingFile(const std::string& path,
                             const std::string& directory);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_POOLING_FILE_H_
