#include "tasks/registry.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_reader.h"
#include "tasks/classify/task.h"
#include "tasks/glue/task.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/nq/task.h"
#include "tasks/openkp/task.h"
#include "tasks/pretrain/task.h"
#include "tasks/squad/task.h"
#include "tasks/task/benchmark_task.h"
#include "tasks/tokens/task.h"
#include "tasks/translation/task.h"
#include "tasks/wikihop/task.h"

namespace etc {

const std::vector<TaskEntry>& Tasks() {
  static const auto* const tasks = [] {
    TaskEntry glue = BenchmarkEntry<Glue>(MakeGlueHead);
    glue.overall = GlueOverall;
    return new std::vector<TaskEntry>{
        BenchmarkEntry<Wikihop>(MakeWikihopHead),
        BenchmarkEntry<Hotpotqa>(MakeHotpotqaHead),
        BenchmarkEntry<Openkp>(MakeOpenkpHead),
        BenchmarkEntry<Nq>(MakeNqHead),
        BenchmarkEntry<Classify>(MakeClassifyHead),
        glue,
        BenchmarkEntry<Squad>(MakeSquadHead),
        BenchmarkEntry<Tokens>(MakeTokensHead)};
  }();
  return *tasks;
}

namespace {

// The tasks that are no benchmarks.
const std::vector<TaskEntry>& NonBenchmarks() {
  static const auto* const others =
      new std::vector<TaskEntry>{PretrainEntry(), TranslationEntry()};
  return *others;
}

}  // namespace

absl::StatusOr<const TaskEntry*> FindTask(const std::string& name) {
  std::vector<std::string> names;
  for (const TaskEntry& task : NonBenchmarks()) {
    if (task.name == name) {
      return &task;
    }
    names.push_back(task.name);
  }
  for (const TaskEntry& task : Tasks()) {
    if (task.name == name) {
      return &task;
    }
    names.push_back(task.name);
  }
  const std::string nearest = NearestName(name, names);
  return absl::NotFoundError(absl::StrCat(
      "there is no task \"", name, "\"",
      nearest.empty()
          ? absl::StrCat("; there are: ", absl::StrJoin(names, ", "))
          : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

std::vector<FieldDescription> AllFields() {
  std::vector<FieldDescription> fields = ConfigFields();
  std::vector<std::string> names;
  for (const auto* tasks : {&Tasks(), &NonBenchmarks()}) {
    for (const TaskEntry& task : *tasks) {
      names.push_back(task.name);
      fields.insert(fields.end(), task.fields.begin(), task.fields.end());
      for (FieldDescription field : task.model_fields) {
        field.task = task.name;
        fields.push_back(std::move(field));
      }
    }
  }
  for (FieldDescription& field : fields) {
    if (field.name == "task") {
      field.bounds = absl::StrCat("\"", absl::StrJoin(names, "\" or \""), "\"");
      field.words = names;
    }
  }
  return fields;
}

FieldTypes TypesOfFields() {
  FieldTypes types;
  for (const FieldDescription& field : AllFields()) {
    types[field.name] = field.type;
  }
  return types;
}

}  // namespace etc
