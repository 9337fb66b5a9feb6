#include "tasks/distributed/slurm_hosts.h"

#include "tasks/invalid_argument.h"

namespace etc {
namespace {

absl::Status WrongList(absl::string_view hosts) {
  return InvalidArgument(
      "should be a list of hosts, as in \"node[01-04],other\", but is \"",
      hosts, "\"");
}

}  // namespace

absl::StatusOr<std::string> FirstSlurmHost(absl::string_view hosts) {
  std::string host;
  absl::string_view rest = hosts;
  while (!rest.empty() && rest.front() != ',') {
    if (rest.front() != '[') {
      if (rest.front() == ']') {
        return WrongList(hosts);
      }
      host += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    const size_t end = rest.find(']');
    if (end == absl::string_view::npos) {
      return WrongList(hosts);
    }
    // The first number of the first range, with its zeros.
    const absl::string_view ranges = rest.substr(1, end - 1);
    const absl::string_view first =
        ranges.substr(0, ranges.find_first_of(",-"));
    if (first.empty() || first.find('[') != absl::string_view::npos) {
      return WrongList(hosts);
    }
    host.append(first.data(), first.size());
    rest.remove_prefix(end + 1);
  }
  if (host.empty()) {
    return WrongList(hosts);
  }
  return host;
}

}  // namespace etc
