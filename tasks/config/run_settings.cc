#include "tasks/config/run_settings.h"

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "tasks/config/config_fields.h"

namespace etc {
namespace {

using Json = nlohmann::json;

// Keys of a file in the settings.
constexpr char kPath[] = "path";
constexpr char kBytes[] = "bytes";
constexpr char kDigest[] = "digest";

Json FilesToJson(const std::vector<RunFile>& files) {
  Json json = Json::array();
  for (const RunFile& file : files) {
    json.push_back({{kPath, file.path},
                    {kBytes, file.digest.bytes},
                    {kDigest, file.digest.digest}});
  }
  return json;
}

bool IsFile(const Json& json) {
  return json.is_object() && json.contains(kDigest);
}

// The part of a setting that is compared: files without their paths.
Json Compared(const Json& setting) {
  Json compared = setting;
  if (compared.is_array()) {
    for (Json& element : compared) {
      if (IsFile(element)) {
        element.erase(kPath);
      }
    }
  }
  return compared;
}

// "a.json (120 bytes, sha256:ba7816bf8f01...)"
std::string FileText(const Json& file) {
  constexpr size_t kDigits = 12;
  const auto text = [&file](const char* key) {
    const Json& value = file.contains(key) ? file.at(key) : Json();
    return value.is_string() ? value.get<std::string>() : JsonText(value);
  };
  const std::string digest = text(kDigest);
  return absl::StrCat(text(kPath), " (", text(kBytes), " bytes, ",
                      digest.substr(0, digest.find(':') + 1 + kDigits), "...)");
}

// A setting in a message about its difference from `other`: of many files, only
// the first that differs is named.
std::string Text(const Json& setting, const Json& other) {
  if (setting.is_discarded()) {
    return "not noted";
  }
  if (!setting.is_array() || setting.empty() || !IsFile(setting.front())) {
    return JsonText(setting);
  }
  for (size_t i = 0; i < setting.size(); ++i) {
    const bool differs = !other.is_array() || i >= other.size() ||
                         Compared(Json::array({setting[i]})) !=
                             Compared(Json::array({other[i]}));
    if (differs && setting.size() == 1) {
      return FileText(setting[i]);
    }
    if (differs) {
      return absl::StrCat(setting.size(), " files, of which number ", i + 1,
                          " is ", FileText(setting[i]));
    }
  }
  return absl::StrCat(setting.size(), setting.size() == 1 ? " file" : " files");
}

// The settings by their whole names.
using FlatSettings = std::map<std::string, Json>;

FlatSettings Flat(const Json& settings) {
  FlatSettings flat;
  for (const auto& [name, value] : settings.items()) {
    if (!value.is_object()) {
      flat[name] = value;
      continue;
    }
    for (const auto& [field, inner] : value.items()) {
      flat[absl::StrCat(name, ".", field)] = inner;
    }
  }
  return flat;
}

// Returns true if `field` is `name` or within it.
bool IsWithin(const std::string& field, const std::string& name) {
  return field == name || absl::StartsWith(field, name + ".");
}

// The task that settings are of; empty: they name none.
std::string TaskOf(const Json& settings) {
  return settings.is_object() ? settings.value("task", "") : "";
}

}  // namespace

Json RunSettings(const RunConfig& config, const RunInputs& inputs) {
  // A new member of the struct does not compile here until it is added, here
  // and, if a run depends on it, to the settings. Members without a table are
  // handled below; the rest (grid, source, json, warnings) has no effect on a
  // run.
  [[maybe_unused]] const auto& [task, model, init, residual_attention,
                                encoder_decoder, tokenizer, data, optimizer,
                                schedule, train, task_options, output, grid,
                                source, json, warnings] = config;
  Json settings = Json::object();
  ForEachConfigField(config, [&](const std::string& name, const auto& field,
                                 const auto& value) {
    if (!field.rule.may_change.empty()) {
      return;
    }
    Json setting;
    if (const auto files = inputs.files.find(name);
        files != inputs.files.end()) {
      setting = FilesToJson(files->second);
    } else {
      setting = FieldToJson(value);
    }
    const std::vector<std::string> path = absl::StrSplit(name, '.');
    (path.size() == 1 ? settings[name] : settings[path[0]][path[1]]) =
        std::move(setting);
  });
  settings["model"] = Json::parse(ModelToJson(config));
  settings["model"].erase("residual_attention");  // it has a field of its own
  settings["train"]["seed"] = inputs.seed;
  if (inputs.files.count("data.train") == 0) {
    settings["data"]["number of training records"] = inputs.num_records;
  }
  settings[task] = task_options;
  return settings;
}

Json SettingsWithFilesOf(const RunConfig& config, int64_t seed,
                         const Json& then) {
  const RunFiles none;
  Json now = RunSettings(config, {.seed = seed, .files = none});
  const auto take = [&](const Json::json_pointer& place) {
    if (then.contains(place)) {
      now[place] = then[place];
    } else if (now.contains(place)) {
      now[place.parent_pointer()].erase(place.back());
    }
  };
  ForEachConfigField(config, [&](const std::string& name, const auto& field,
                                 const auto&) {
    if (field.rule.names_files && field.rule.may_change.empty()) {
      take(Json::json_pointer("/" + absl::StrReplaceAll(name, {{".", "/"}})));
    }
  });
  take(Json::json_pointer("/data/number of training records"));
  if (config.data.dev_records.empty()) {  // set when they are held out
    take(Json::json_pointer("/data/dev_records"));
  }
  if (config.encoder_decoder.has_value()
          ? config.encoder_decoder->vocab_size == 0
          : VocabularySetsRows(config)) {  // the vocabulary decides
    take(Json::json_pointer("/model/vocab_size"));
  }
  take(Json::json_pointer("/" + config.task));
  return now;
}

std::vector<SettingChange> FindChanges(const Json& then, const Json& now) {
  const FlatSettings flat_then = Flat(then);
  const FlatSettings flat_now = Flat(now);
  std::set<std::string> fields;
  for (const auto* flat : {&flat_then, &flat_now}) {
    for (const auto& [field, value] : *flat) {
      fields.insert(field);
    }
  }
  const auto get = [](const FlatSettings& flat, const std::string& field) {
    const auto found = flat.find(field);
    return found == flat.end() ? Json(Json::value_t::discarded) : found->second;
  };
  // Options of a task are noted where the configuration has them.
  const std::string task = TaskOf(now);
  const auto text = [&task](const std::string& field, const Json& setting,
                            const Json& other) {
    return setting.is_discarded() && IsWithin(field, task)
               ? "the default"
               : Text(setting, other);
  };
  std::vector<SettingChange> changes;
  for (const std::string& field : fields) {
    const Json was = get(flat_then, field);
    const Json is = get(flat_now, field);
    if (was.is_discarded() || is.is_discarded() ||
        Compared(was) != Compared(is)) {
      changes.push_back({field, text(field, was, is), text(field, is, was)});
    }
  }
  return changes;
}

namespace {

// The beginning of the error of changes, at least one.
std::string RefusalText(const std::vector<SettingChange>& changes) {
  return absl::StrCat(
      "the run cannot go on with ",
      absl::StrJoin(changes, "; nor with ",
                    [](std::string* text, const SettingChange& change) {
                      absl::StrAppend(text, "another ", change.field,
                                      ": it began with ", change.was,
                                      ", now it is ", change.is);
                    }));
}

// Fields of a model, an encoder or an encoder-decoder, that only its training
// reads: two models that differ in others compute different functions.
constexpr absl::string_view kTrainingModelFields[] = {
    "hidden_dropout_prob",      "attention_probs_dropout_prob",
    "activation_dropout_prob",  "initializer_range",
    "depth_scaled_initializer", "residual_gate_init",
    "grad_checkpointing_period"};

// Returns true if another value of the setting `field` makes the model compute
// another function with the same weights.
bool ChangesModel(const std::string& field) {
  absl::string_view of_model = field;
  return field == "residual_attention" ||
         (absl::ConsumePrefix(&of_model, "model.") &&
          !absl::c_linear_search(kTrainingModelFields, of_model));
}

// Returns true if the scores of a run of `task` with another value of the
// setting `field` cannot be compared: the records that are evaluated are
// others, or their examples, or the answers, or their measure.
bool ChangesScores(const std::string& field, const std::string& task) {
  const bool is_of_data = IsWithin(field, "data") || field == "task" ||
                          IsWithin(field, "tokenizer") || IsWithin(field, task);
  return field == "train.main_metric" ||
         field == "train.main_metric_direction" ||
         (is_of_data && !absl::c_linear_search(kTrainingDataFields, field));
}

}  // namespace

bool ChangesScoredRecords(absl::string_view field, bool evaluates_train_files) {
  return absl::c_linear_search(kScoredRecordFields, field) ||
         (evaluates_train_files &&
          absl::c_linear_search(kHeldOutFields, field));
}

absl::StatusOr<std::vector<SettingChange>> CheckSameSettings(
    const Json& then, const Json& now, const std::vector<std::string>& allowed,
    bool evaluates_train_files) {
  const std::string task = TaskOf(now);
  std::vector<SettingChange> changes = FindChanges(then, now);
  std::vector<SettingChange> refused;
  std::vector<SettingChange> refused_always;
  for (const SettingChange& change : changes) {
    const std::string& field = change.field;
    if (ChangesModel(field) || ChangesScores(field, task) ||
        ChangesScoredRecords(field, evaluates_train_files) ||
        field == "optimizer.type") {
      refused_always.push_back(change);
    } else if (absl::c_none_of(allowed, [&](const std::string& name) {
                 return IsWithin(field, name);
               })) {
      refused.push_back(change);
    }
  }
  if (!refused_always.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(RefusalText(refused_always),
                     "; its model, optimizer and scores are of the former: "
                     "keep that, or begin a new run with --set "
                     "init=RUN/seed-1/checkpoints/last"));
  }
  if (!refused.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        RefusalText(refused), "; where this is meant, add --allow-changes ",
        absl::StrJoin(refused, " ",
                      [](std::string* text, const SettingChange& change) {
                        text->append(change.field);
                      })));
  }
  return changes;
}

Json WithoutPaths(Json settings) {
  for (Json& setting : settings) {
    if (setting.is_object()) {
      for (Json& inner : setting) {
        inner = Compared(inner);
      }
    } else {
      setting = Compared(setting);
    }
  }
  return settings;
}

RunOutput OutputOf(const RunConfig& config) {
  return {.directory = config.output,
          .task = config.task,
          .task_options = config.task_options,
          .seeds = config.train.seeds,
          .has_same_settings = [](const Json& one, const Json& other) {
            return CheckSameSettings(one, other, {"train.seed"}).ok();
          }};
}

absl::Status CheckFieldNames(const RunConfig& config,
                             const std::vector<std::string>& names) {
  std::set<std::string> known = {"model", config.task, "train.seed"};
  ForEachConfigField(config,
                     [&](const std::string& name, const auto&, const auto&) {
                       known.insert(name);
                       known.insert(name.substr(0, name.find('.')));
                     });
  for (const auto& [name, options] :
       {std::pair<std::string, Json>("model", Json::parse(ModelToJson(config))),
        std::pair<std::string, Json>(config.task, config.task_options)}) {
    for (const auto& [field, value] : options.items()) {
      known.insert(absl::StrCat(name, ".", field));
    }
  }
  for (const std::string& name : names) {
    // The task may complete its options from the data, and a run that is
    // resumed may have had others.
    if (known.count(name) == 0 && !IsWithin(name, config.task)) {
      const std::string nearest = NearestName(
          name, std::vector<std::string>(known.begin(), known.end()));
      return absl::InvalidArgumentError(absl::StrCat(
          "there is no field \"", name, "\"",
          nearest.empty() ? ", as in train.batch_size"
                          : absl::StrCat("; did you mean \"", nearest, "\"?")));
    }
  }
  return absl::OkStatus();
}

}  // namespace etc
