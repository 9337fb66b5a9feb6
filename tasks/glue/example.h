#ifndef ETC_TASKS_GLUE_EXAMPLE_H_
#define ETC_TASKS_GLUE_EXAMPLE_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "base/json_reader.h"
#include "tasks/data/example.h"
#include "tasks/glue/benchmark.h"
#include "tasks/glue/record.h"
#include "tasks/inputs/text_input.h"
#include "tasks/task/benchmark.h"

namespace etc {

// The object "glue" of a configuration: {"name": "mrpc"}.
struct GlueOptions {
  InputOptions input = {};
  // Null: not given.
  const GlueTask* task = nullptr;
  // The task's labels by class, in another order than BERT's if the
  // configuration says so: HuggingFace's models of MNLI often have one of
  // their own (doc/glue.md 3). Empty for STS-B.
  std::vector<std::string> labels = {};
  TextMarks marks = {};
};

template <>
struct ConfigTable<GlueOptions> {
  static void ReadName(JsonObjectReader& reader, GlueOptions* options);
  static void ReadLabels(JsonObjectReader& reader, GlueOptions* options);

  static constexpr auto kFields = std::make_tuple(
      Field("name", ReadName,
            "`cola`, `sst2`, `mrpc`, `qqp`, `stsb`, `mnli`, `qnli`, `rte`, "
            "`wnli` or `ax`; also `sst-2` and `sts-b`",
            {.decides_outputs = true,
             .default_text = "required",
             .type_text = "text"}),
      Field("labels", ReadLabels,
            "the classes in the order of the outputs of `init`: models of "
            "HuggingFace for MNLI often have entailment, neutral, "
            "contradiction",
            {.decides_outputs = true,
             .default_text = "in GLUE's order",
             .type_text = "list of texts"}));
};

// A text, or two, as BERT or ETC reads them (tasks/inputs/text_input.h).
// Truncation cuts from the end of the longer text, of b where they are equal. A
// text b without pieces is left out, as the official code does
// (doc/glue.md 2.2).
struct GlueExample : Example {
  GlueGold gold;
  // Index of the label; -1 without one, and for STS-B.
  int64_t label = -1;
  int64_t dropped_pieces = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_GLUE_EXAMPLE_H_
