#ifndef ETC_TASKS_OUTPUT_PROGRAM_VERSION_H_
#define ETC_TASKS_OUTPUT_PROGRAM_VERSION_H_

#include <string>

#include "nlohmann/json.hpp"

namespace etc {

// The program that made a run, for the run's records. Nothing depends on it: a
// run may be resumed by another version.
struct ProgramVersion {
  // "0.1.0"; empty: not noted, as by programs that call the library.
  std::string version;
  // The commit of the checkout that it was built from, as of `git describe
  // --always --dirty`; empty: it was built elsewhere.
  std::string commit;

  bool operator==(const ProgramVersion&) const = default;
};

// {"version": "0.1.0", "commit": "1641a7b-dirty"}, without the commit where it
// is not known.
inline nlohmann::ordered_json ProgramVersionToJson(
    const ProgramVersion& program) {
  nlohmann::ordered_json json = {{"version", program.version}};
  if (!program.commit.empty()) {
    json["commit"] = program.commit;
  }
  return json;
}

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_PROGRAM_VERSION_H_
