#include "base/cpu_limit.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "base/control_group.h"

namespace etc {
namespace {

int64_t CpusToRunOn() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // Fails where a machine has more than 1024 CPUs.
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    return std::max(1, CPU_COUNT(&allowed));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

int64_t CpusOfProcess(const std::string& root) {
  const int64_t cpus = CpusToRunOn();
  const auto quota = ReadControlGroupLimits(root).cpus;
  if (!quota.has_value() || *quota >= static_cast<double>(cpus)) {
    return cpus;
  }
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(*quota)));
}

int64_t DefaultThreads() {
  const char* const said = std::getenv("OMP_NUM_THREADS");
  const absl::string_view list = said == nullptr ? "" : said;
  int64_t threads = 0;
  if (absl::SimpleAtoi(
          absl::StripAsciiWhitespace(list.substr(0, list.find(','))),
          &threads) &&
      threads >= 1) {
    return threads;
  }
  return std::min(CpusOfProcess(), kMostThreads);
}

}  // namespace etc
