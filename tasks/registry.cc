#include "tasks/registry.h"

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

absl::StatusOr<const TaskEntry*> FindTask(const std::string& name) {
  static const auto* const others =
      new std::vector<TaskEntry>{PretrainEntry(), TranslationEntry()};
  std::vector<std::string> names;
  for (const TaskEntry& task : *others) {
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

}  // namespace etc
