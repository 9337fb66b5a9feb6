#ifndef ETC_TESTS_SUPPORT_RUN_REALETC_H_
#define ETC_TESTS_SUPPORT_RUN_REALETC_H_

#include <string>

namespace etc {

// Runs `realetc` in `directory` with `arguments`, quoted as in a shell and
// perhaps with " < FILE" at the end, and returns its exit code, or -1 if a
// signal ended it. Standard output goes to the file `out`, standard error to
// `err`.
//
// Tests that say PROGRAM start the program (run_realetc_program.cc); those that
// say COMMANDS run it in a forked child (run_realetc_child.cc), and must not
// have started threads.
int RunRealetc(const std::string& directory, const std::string& arguments,
               const std::string& out, const std::string& err);

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_RUN_REALETC_H_
