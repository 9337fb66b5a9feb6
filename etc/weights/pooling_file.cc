#include "etc/weights/pooling_file.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/source_config.h"
#include "nlohmann/json.hpp"

namespace etc {

absl::StatusOr<bool> PoolsByMean(const std::string& path) {
  const std::string file = FileBesideWeights(path, kPoolingFile);
  if (file.empty()) {
    return false;
  }
  ETC_ASSIGN_OR_RETURN(const nlohmann::json fields, ReadJsonFile(file));
  JsonObjectReader reader(fields, file);
  std::vector<std::string> modes;
  reader.OneOrMore("pooling_mode", &modes);
  if (!reader.Has("pooling_mode")) {
    for (const auto& [name, value] : fields.items()) {
      absl::string_view mode = name;
      bool is_set = false;
      if (absl::ConsumePrefix(&mode, "pooling_mode_")) {
        reader.Optional(name, &is_set);
      }
      if (is_set) {
        modes.emplace_back(mode);
      }
    }
  }
  for (std::string& mode : modes) {
    absl::string_view name = mode;
    absl::ConsumeSuffix(&name, "_token");
    absl::ConsumeSuffix(&name, "_tokens");
    mode = std::string(name);
  }
  ETC_RETURN_IF_ERROR(reader.status());
  if (modes.size() != 1 || (modes[0] != "cls" && modes[0] != "mean")) {
    return InvalidArgument(file,
                           " should ask for the pooling \"cls\" or \"mean\", "
                           "but asks for \"",
                           absl::StrJoin(modes, "+"),
                           "\": choose first or mean");
  }
  return modes[0] == "mean";
}

absl::Status CopyPoolingFile(const std::string& path,
                             const std::string& directory) {
  const std::string file = FileBesideWeights(path, kPoolingFile);
  if (file.empty()) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const std::string contents, ReadFile(file));
  ETC_RETURN_IF_ERROR(CreateDirectories(directory + "/1_Pooling"));
  return WriteFileAtomically(absl::StrCat(directory, "/", kPoolingFile),
                             contents);
}

}  // namespace etc
