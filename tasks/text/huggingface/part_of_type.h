#ifndef ETC_TASKS_TEXT_HUGGINGFACE_PART_OF_TYPE_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_PART_OF_TYPE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc::huggingface {

// Reads the rest of a part of a tokenizer.json into `*all` by the function that
// `types`, pairs of a name and a function, has for its `type`. `part` names
// such parts in errors.
//   kUnimplemented    there is none
//   kInvalidArgument  a field is wrong or unknown
template <typename Types, typename Parts>
absl::Status ReadPartOfType(const Types& types, const std::string& type,
                            absl::string_view part, JsonObjectReader* reader,
                            Parts* all) {
  for (const auto& [known, read] : types) {
    if (type == known) {
      ETC_RETURN_IF_ERROR(read(reader, all));
      return reader->Finish();
    }
  }
  return absl::UnimplementedError(absl::StrCat(reader->Where("type"), " is ",
                                               QuotedName(type), ", a ", part,
                                               " that is not supported"));
}

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_PART_OF_TYPE_H_
