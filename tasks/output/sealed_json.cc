#include "tasks/output/sealed_json.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using Json = nlohmann::json;

constexpr char kCrc[] = "crc32c";

std::string CrcOf(const Json& json) {
  return CrcText(ExtendCrc32c(0, JsonText(json)));
}

}  // namespace

std::string CrcText(uint32_t crc) { return absl::StrFormat("0x%08x", crc); }

std::string SealJson(Json object) {
  object.erase(kCrc);
  // JsonText replaces bytes that are not UTF-8; the checksum is of the text as
  // it will be read.
  object = Json::parse(JsonText(object));
  object[kCrc] = CrcOf(object);
  return JsonText(object, /*indent=*/2) + "\n";
}

absl::StatusOr<Json> OpenSealedJson(absl::string_view text,
                                    const std::string& source) {
  absl::StatusOr<Json> json = ParseJson(text, source);
  if (!json.ok() || !json->is_object()) {
    return absl::DataLossError(absl::StrCat(
        json.ok() ? absl::StrCat(source, " should hold a JSON object")
                  : std::string(json.status().message()),
        ": the file is damaged"));
  }
  const Json noted = json->value(kCrc, Json());
  json->erase(kCrc);
  if (const std::string crc = CrcOf(*json); noted != Json(crc)) {
    return absl::DataLossError(absl::StrCat(
        source, " is damaged: the CRC-32C of its contents is ", crc,
        ", but it says ", noted.is_null() ? "none" : JsonText(noted)));
  }
  return json;
}

absl::StatusOr<Json> ReadSealedJson(const std::string& path) {
  constexpr uint64_t kMostBytes = uint64_t{16} << 20;
  ETC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  return OpenSealedJson(text, path);
}

absl::Status WriteSealedJson(const std::string& path, Json object) {
  return WriteFileAtomically(path, SealJson(std::move(object)));
}

}  // namespace etc
