#ifndef ETC_TASKS_TEXT_HUGGINGFACE_NORMALIZERS_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_NORMALIZERS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/text/huggingface/mapped_text.h"

namespace etc::huggingface {

// A step that changes a text before it is split into words.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // May be called from several threads.
  virtual void Apply(MappedText* text) const = 0;
};

// The steps of a tokenizer.json in their order.
struct Normalizers {
  std::vector<std::unique_ptr<const Normalizer>> steps;
  // One of them folds upper case to lower case.
  bool lower_cases = false;
  // One of them puts U+2581 before words.
  bool marks_words = false;

  void Apply(MappedText* text) const {
    for (const auto& step : steps) {
      step->Apply(text);
    }
  }
};

// Reads the field "normalizer", an object; `where` names it in messages.
//   kUnimplemented    a type or an option that is not supported
//   kInvalidArgument  a mistake
absl::StatusOr<Normalizers> ReadNormalizers(const nlohmann::json& json,
                                            const std::string& where);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_NORMALIZERS_H_
