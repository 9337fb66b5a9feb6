#include <sys/wait.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/support/run_realetc.h"

namespace etc {

int RunRealetc(const std::string& directory, const std::string& arguments,
               const std::string& out, const std::string& err) {
  const int status =
      std::system(absl::StrCat("cd ", directory, " && ", ETC_PROGRAM, " ",
                               arguments, " >", out, " 2>", err)
                      .c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace etc
