#include "tasks/distributed/missing_process.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/directory.h"

namespace etc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr useconds_t kPause = 50'000;  // microseconds

std::vector<uint8_t> Bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

// A value of the store that is there; empty: it is not, or there is no store.
std::string ValueOf(c10d::Store& store, const std::string& key) {
  try {
    if (!store.check({key})) {
      return "";
    }
    const std::vector<uint8_t> bytes = store.get(key);
    return {bytes.begin(), bytes.end()};
  } catch (const std::exception&) {
    return "";
  }
}

// A process that has ended keeps its number until its parent has asked for it.
bool IsRunning(int64_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(file, line)) {
    return false;
  }
  const size_t end = line.rfind(") ");
  return end == std::string::npos ||
         (line[end + 2] != 'Z' && line[end + 2] != 'X');
}

// Returns true if the process of an introduction has ended; false if its
// ProcessScope is another than `scope`, as on another machine.
bool HasEnded(const std::string& introduction, const std::string& scope) {
  const std::pair<std::string, std::string> process =
      absl::StrSplit(introduction, ' ');
  int64_t pid = 0;
  return process.first == scope && !scope.empty() &&
         absl::SimpleAtoi(process.second, &pid) && !IsRunning(pid);
}

// The other ranks according to the store. Each rank that has lost a connection
// reports there that it still runs.
struct Others {
  std::string left;                 // "process 2 has ended: no such file"
  std::vector<std::string> gone;    // do not run any more
  std::vector<std::string> absent;  // have never come
  std::vector<std::string> silent;  // run on another machine, or still compute
  bool some_ask = false;            // who is missing
};

Others LookForOthers(const ProcessPlace& place, c10d::Store& store) {
  Others others;
  const std::string scope = ProcessScope();
  for (int64_t rank = 0; rank < place.world_size; ++rank) {
    const auto value = [&](absl::string_view key) {
      return ValueOf(store, absl::StrCat(key, "/", rank));
    };
    const std::string name = absl::StrCat("process ", rank);
    if (rank == place.rank) {
      continue;
    }
    const std::string introduction = value("process");
    // Read before the reason, which a process stores before it ends.
    const bool is_gone = HasEnded(introduction, scope);
    if (!value("there").empty()) {
      others.some_ask = true;
      continue;
    }
    if (const std::string left = value("left"); !left.empty()) {
      others.left = absl::StrCat(name, " has ended: ", left);
      continue;
    }
    (introduction.empty() ? others.absent
     : is_gone            ? others.gone
                          : others.silent)
        .push_back(name);
  }
  return others;
}

// Returns true if a rank that asks has not yet found out.
bool SomeStillAsk(const ProcessPlace& place, c10d::Store& store) {
  for (int64_t rank = 0; rank < place.world_size; ++rank) {
    if (!ValueOf(store, absl::StrCat("there/", rank)).empty() &&
        ValueOf(store, absl::StrCat("knows/", rank)).empty()) {
      return true;
    }
  }
  return false;
}

std::string Describe(const Others& others, const std::string& error) {
  if (!others.left.empty()) {
    return others.left;
  }
  if (!others.gone.empty()) {
    return absl::StrCat(absl::StrJoin(others.gone, " and "),
                        others.gone.size() == 1 ? " has" : " have", " ended");
  }
  if (!others.absent.empty()) {
    return absl::StrCat(absl::StrJoin(others.absent, " and "),
                        others.absent.size() == 1 ? " has" : " have",
                        " not come: ", error);
  }
  if (!others.silent.empty()) {
    return absl::StrCat(absl::StrJoin(others.silent, " or "),
                        " has ended or cannot be reached: ", error);
  }
  return absl::StrCat("lost its connection to another one: ", error);
}

}  // namespace

void Introduce(const ProcessPlace& place, c10d::Store& store) {
  store.set(absl::StrCat("process/", place.rank),
            Bytes(absl::StrCat(ProcessScope(), " ", getpid())));
}

bool AwaitAll(const ProcessPlace& place, Clock::time_point deadline,
              c10d::Store& store) {
  constexpr int kPausesToLook = 20;
  std::vector<std::string> introductions;
  for (int64_t rank = 0; rank < place.world_size; ++rank) {
    introductions.push_back(absl::StrCat("process/", rank));
  }
  for (int pauses = 1; !store.check(introductions); ++pauses) {
    if (Clock::now() >= deadline) {
      return false;
    }
    if (pauses % kPausesToLook == 0) {
      const Others others = LookForOthers(place, store);
      if (!others.left.empty() || !others.gone.empty() || others.some_ask) {
        return false;
      }
    }
    usleep(kPause);
  }
  return true;
}

void ReportLeaving(const ProcessPlace& place, const std::string& why,
                   c10d::Store& store) {
  store.set(absl::StrCat("left/", place.rank), Bytes(why));
}

std::string NoStore(const ProcessPlace& place) {
  return absl::StrCat("process 0, at ", place.master_address, ":",
                      place.master_port, ", has ended or cannot be reached");
}

std::string NameMissing(const ProcessPlace& place, c10d::Store& store,
                        const std::string& error) {
  // Process 0 has the store that the others ask, so it waits for all of them.
  const bool is_first = place.rank == 0;
  const auto end = Clock::now() + (is_first ? 2 * kPatience : kPatience);
  Others others;
  try {
    store.set(absl::StrCat("there/", place.rank), Bytes("1"));
    others = LookForOthers(place, store);
    while (!others.silent.empty() && Clock::now() < end &&
           (is_first || (others.gone.empty() && others.left.empty()))) {
      usleep(kPause);
      others = LookForOthers(place, store);
    }
    store.set(absl::StrCat("knows/", place.rank), Bytes("1"));
    while (is_first && SomeStillAsk(place, store) && Clock::now() < end) {
      usleep(kPause);
    }
  } catch (const std::exception&) {
    if (others.left.empty() && others.gone.empty()) {
      return NoStore(place);
    }
  }
  return Describe(others, error);
}

}  // namespace etc
