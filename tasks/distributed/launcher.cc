#include "tasks/distributed/launcher.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/cpu_limit.h"
#include "base/status_macros.h"
#include "tasks/distributed/child_process.h"
#include "tasks/distributed/process_place.h"

namespace etc {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr int64_t kLongestGrace = 1'000'000;  // seconds

absl::Status CheckOptions(const LaunchOptions& options) {
  if (options.processes < 1 || options.processes > kMostLaunchedProcesses) {
    return InvalidArgument("the number of processes should be from 1 to ",
                           kMostLaunchedProcesses, ", but is ",
                           options.processes);
  }
  // Not the other way round: NaN is neither.
  const double grace = options.watch.grace_seconds;
  if (!(grace >= 0 && grace <= static_cast<double>(kLongestGrace))) {
    return InvalidArgument("the grace time should be from 0 to ", kLongestGrace,
                           " seconds, but is ", grace);
  }
  if (options.command.empty()) {
    return InvalidArgument(
        "launch needs a command to run, as in realetc launch --processes 2 "
        "train CONFIG");
  }
  if (options.command.front() == "launch") {
    return InvalidArgument(
        "launch should be given the command of a run, as train, but is "
        "given launch");
  }
  return absl::OkStatus();
}

// Each process of a launcher would start a run of its own.
absl::Status CheckNotLaunched() {
  const Environment environment = ProcessEnvironment();
  if (const auto rank = environment("RANK"); rank.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "launch starts all processes of a run and should not be started by "
        "torchrun or launch itself, but RANK is set: it is \"",
        *rank, "\""));
  }
  ETC_ASSIGN_OR_RETURN(const ProcessPlace place, FindProcessPlace(environment));
  if (place.world_size > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "launch starts all processes of a run and should be one process, but ",
        place.launcher, " has started ", place.world_size));
  }
  return absl::OkStatus();
}

// A TCP port of 127.0.0.1 that nobody has. Another program could take it before
// a process listens there, but the system gives others out first.
absl::StatusOr<int64_t> FreePort() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket.is_open() || bind(socket.get(), generic, size) != 0 ||
      getsockname(socket.get(), generic, &size) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot find a free port of ", kLoopback));
  }
  return int64_t{ntohs(address.sin_port)};
}

// This process's environment with `variables` set.
std::vector<std::string> EnvironmentWith(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> result;
  result.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    result.push_back(absl::StrCat(name, "=", value));
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const absl::string_view name = text.substr(0, text.find('='));
    if (std::none_of(
            variables.begin(), variables.end(),
            [&](const auto& variable) { return variable.first == name; })) {
      result.emplace_back(text);
    }
  }
  return result;
}

std::vector<std::string> EnvironmentOf(int64_t rank, int64_t processes,
                                       int64_t port) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"RANK", absl::StrCat(rank)},
      {"WORLD_SIZE", absl::StrCat(processes)},
      {"LOCAL_RANK", absl::StrCat(rank)},
      {"LOCAL_WORLD_SIZE", absl::StrCat(processes)},
      {"MASTER_ADDR", kLoopback},
      {"MASTER_PORT", absl::StrCat(port)}};
  if (!ProcessEnvironment()("OMP_NUM_THREADS").has_value()) {
    variables.emplace_back("OMP_NUM_THREADS",
                           absl::StrCat(std::clamp<int64_t>(
                               CpusOfProcess() / processes, 1, kMostThreads)));
  }
  return EnvironmentWith(variables);
}

}  // namespace

absl::Status Launch(const LaunchOptions& options) {
  ETC_RETURN_IF_ERROR(CheckOptions(options));
  ETC_RETURN_IF_ERROR(CheckNotLaunched());
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<SignalPipe> signals,
                       SignalPipe::Open());
  ChildProgram program{.path = options.program, .arguments = {options.name}};
  program.arguments.insert(program.arguments.end(), options.command.begin(),
                           options.command.end());
  ProcessWatch watch(options.watch);
  ETC_ASSIGN_OR_RETURN(const int64_t port, FreePort());
  for (int64_t rank = 0; rank < options.processes; ++rank) {
    program.environment = EnvironmentOf(rank, options.processes, port);
    ETC_ASSIGN_OR_RETURN(ChildProcess child, StartChild(program));
    watch.Add(std::move(child));
  }
  return watch.Run(signals.get());
}

}  // namespace etc
