#include "tasks/train/config_model.h"

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "etc/weights/source_config.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using Json = nlohmann::json;

// The configuration that the fields of the object "model" override: a preset, a
// file, that of the weights to start from (lifted, if they are BERT's), or the
// defaults.
absl::StatusOr<EtcConfig> BaseOfModel(const std::string& preset,
                                      const std::string& path,
                                      const std::string& init,
                                      JsonObjectReader* reader,
                                      std::vector<std::string>* warnings) {
  if (!preset.empty()) {
    absl::StatusOr<EtcConfig> config = EtcConfigPreset(preset);
    if (!config.ok()) {
      reader->Fail("preset", config.status().message());
      return reader->Finish(JsonObjectReader::UnknownFields::kIgnore);
    }
    return config;
  }
  if (path.empty() && init.empty()) {
    return EtcConfig();
  }
  if (path.empty()) {
    ETC_ASSIGN_OR_RETURN(const SourceConfig source, ReadSourceConfig(init));
    warnings->insert(warnings->end(), source.warnings.begin(),
                     source.warnings.end());
    return InitialConfig(source);
  }
  std::vector<std::string> unknown_fields;
  absl::StatusOr<EtcConfig> config = ReadEtcConfig(path, &unknown_fields);
  for (const std::string& field : unknown_fields) {
    warnings->push_back(
        absl::StrCat(path, ": unknown field \"", field, "\" is ignored"));
  }
  return config;
}

}  // namespace

absl::StatusOr<EtcConfig> ReadConfigModel(const Json& json,
                                          const std::string& where,
                                          const std::string& init,
                                          std::vector<std::string>* warnings) {
  JsonObjectReader reader(json, where);
  std::string preset;
  std::string path;
  reader.Optional("preset", &preset);
  reader.Optional("path", &path);
  if (!preset.empty() && !path.empty()) {
    reader.Fail("path", "should not be given together with preset");
  }
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  ETC_ASSIGN_OR_RETURN(const EtcConfig base,
                       BaseOfModel(preset, path, init, &reader, warnings));

  Json merged = Json::parse(EtcConfigToJson(base));
  for (const auto& [field, ignored] : merged.items()) {
    reader.Raw(field, /*required=*/false);
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  merged.update(json);
  merged.erase("preset");
  merged.erase("path");
  std::vector<std::string> unknown_fields;
  ETC_ASSIGN_OR_RETURN(EtcConfig config,
                       EtcConfigFromJson(merged, where, &unknown_fields));
  if (config.vocab_size == 0) {
    reader.Fail("vocab_size", "should be given, but is absent");
    ETC_RETURN_IF_ERROR(reader.Finish());
  }
  return config;
}

}  // namespace etc
