#include "tasks/commands/version.h"

#include "absl/strings/str_cat.h"
#include "base/machine_description.h"

namespace etc {

std::string VersionText() {
  std::string text = absl::StrCat("realetc ", ETC_VERSION);
  for (const MachineFact& fact : DescribeMachine()) {
    absl::StrAppend(&text, "\n", fact.name, ": ", fact.value);
  }
  return text;
}

}  // namespace etc
