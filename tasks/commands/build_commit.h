#ifndef ETC_TASKS_COMMANDS_BUILD_COMMIT_H_
#define ETC_TASKS_COMMANDS_BUILD_COMMIT_H_

namespace etc {

// The commit of the checkout that the program is built from, as of `git
// describe --always --dirty` when it was built; empty: it was built from no
// checkout. Defined by a file that the build makes (cmake/EtcBuildCommit.cmake)
// and that the program `realetc` alone links, so that a commit compiles and
// links nothing else anew.
extern const char* const kBuildCommit;

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_BUILD_COMMIT_H_
