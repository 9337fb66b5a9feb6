#include "tasks/distributed/process_place.h"

#include <cstdlib>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

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

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr int64_t kLargestPort = 65535;

// Default ports: below those that systems give to outgoing connections.
constexpr int64_t kFirstPort = 20000;
constexpr int64_t kPorts = 10000;

// The values that a variable may have, both ends included.
struct Range {
  int64_t least = 0;
  int64_t most = kNoLimit;
  std::string because;  // for messages: " (WORLD_SIZE is 4)"
};

absl::StatusOr<int64_t> ParseNumber(const std::string& name,
                                    const std::string& text,
                                    const Range& range) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= range.least &&
      value <= range.most) {
    return value;
  }
  const std::string limits =
      range.most == kNoLimit
          ? absl::StrCat("of at least ", range.least)
          : absl::StrCat("from ", range.least, " to ", range.most);
  return InvalidArgument(name, " should be a whole number ", limits,
                         range.because, ", but is \"", text, "\"");
}

// Returns nothing if the variable is not set.
absl::StatusOr<std::optional<int64_t>> ReadNumber(
    const Environment& environment, const std::string& name,
    const Range& range) {
  const std::optional<std::string> text = environment(name);
  if (!text.has_value()) {
    return std::nullopt;
  }
  ETC_ASSIGN_OR_RETURN(const int64_t value, ParseNumber(name, *text, range));
  return value;
}

// Names of a launcher's variables; empty if it has no such one.
struct RankVariables {
  std::string launcher;
  std::string rank;
  std::string world_size;
  std::string local_rank;
  std::string local_world_size;
};

// "rank" and "world_size" are both required.
absl::Status CheckBothSet(const Environment& environment,
                          const RankVariables& names) {
  const bool has_rank = environment(names.rank).has_value();
  if (has_rank && environment(names.world_size).has_value()) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      has_rank ? names.rank : names.world_size, " is set, but ",
      has_rank ? names.world_size : names.rank, " is not; ", names.launcher,
      " sets both, and without a launcher neither should be set");
}

// Reads this process's ranks, but not yet the address of rank 0.
absl::StatusOr<ProcessPlace> ReadRanks(const Environment& environment,
                                       const RankVariables& names) {
  ETC_RETURN_IF_ERROR(CheckBothSet(environment, names));
  ProcessPlace place{.launcher = names.launcher};
  ETC_ASSIGN_OR_RETURN(const std::optional<int64_t> world_size,
                       ReadNumber(environment, names.world_size, {.least = 1}));
  place.world_size = world_size.value_or(1);
  const std::string because =
      absl::StrCat(" (", names.world_size, " is ", place.world_size, ")");
  ETC_ASSIGN_OR_RETURN(
      const std::optional<int64_t> rank,
      ReadNumber(environment, names.rank,
                 {.most = place.world_size - 1, .because = because}));
  place.rank = rank.value_or(0);
  std::optional<int64_t> local_size;
  if (!names.local_world_size.empty()) {
    ETC_ASSIGN_OR_RETURN(
        local_size,
        ReadNumber(environment, names.local_world_size,
                   {.least = 1, .most = place.world_size, .because = because}));
  }
  ETC_ASSIGN_OR_RETURN(
      const std::optional<int64_t> local_rank,
      ReadNumber(environment, names.local_rank,
                 {.most = local_size.value_or(place.world_size) - 1,
                  .because = local_size.has_value()
                                 ? absl::StrCat(" (", names.local_world_size,
                                                " is ", *local_size, ")")
                                 : because}));
  place.has_other_machines =
      local_size.value_or(place.world_size) < place.world_size;
  place.local_rank = local_rank.value_or(
      local_size.has_value() ? place.rank % *local_size : 0);
  return place;
}

// Sets the address at which the ranks of `place` meet: MASTER_ADDR and
// MASTER_PORT, or else the defaults.
absl::Status SetMaster(const Environment& environment,
                       const absl::StatusOr<std::string>& default_address,
                       const absl::StatusOr<int64_t>& default_port,
                       ProcessPlace* place) {
  if (place->world_size == 1) {
    return absl::OkStatus();
  }
  if (const auto address = environment("MASTER_ADDR"); address.has_value()) {
    if (address->empty()) {
      return InvalidArgument(
          "MASTER_ADDR should be the address of the machine of rank 0, but is "
          "empty");
    }
    place->master_address = *address;
  } else {
    ETC_ASSIGN_OR_RETURN(place->master_address, default_address);
  }
  ETC_ASSIGN_OR_RETURN(const std::optional<int64_t> port,
                       ReadNumber(environment, "MASTER_PORT",
                                  {.least = 1, .most = kLargestPort}));
  if (port.has_value()) {
    place->master_port = *port;
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(place->master_port, default_port);
  return absl::OkStatus();
}

absl::StatusOr<ProcessPlace> PlaceFromTorchrun(const Environment& environment) {
  ETC_ASSIGN_OR_RETURN(
      ProcessPlace place,
      ReadRanks(environment, {.launcher = "torchrun",
                              .rank = "RANK",
                              .world_size = "WORLD_SIZE",
                              .local_rank = "LOCAL_RANK",
                              .local_world_size = "LOCAL_WORLD_SIZE"}));
  const std::string but = absl::StrCat(" is not set, but WORLD_SIZE is ",
                                       place.world_size, ": it should be the ");
  ETC_RETURN_IF_ERROR(SetMaster(
      environment,
      InvalidArgument("MASTER_ADDR", but, "address of the machine of rank 0"),
      InvalidArgument("MASTER_PORT", but, "port at which all processes meet"),
      &place));
  if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    place.master_port += place.master_port < kLargestPort ? 1 : -1;
  }
  place.restart = environment("TORCHELASTIC_RESTART_COUNT").value_or("");
  return place;
}

// One from the name of the job, so that two jobs on one machine rarely meet.
int64_t OpenMpiPort(const Environment& environment) {
  std::string job;
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
    if (job.empty()) {
      job = environment(name).value_or("");
    }
  }
  // All processes of the job must find the same: std::hash promises nothing.
  return kFirstPort + ExtendCrc32c(0, job) % kPorts;
}

absl::StatusOr<ProcessPlace> PlaceFromOpenMpi(const Environment& environment) {
  const RankVariables names{.launcher = "Open MPI",
                            .rank = "OMPI_COMM_WORLD_RANK",
                            .world_size = "OMPI_COMM_WORLD_SIZE",
                            .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
                            .local_world_size = "OMPI_COMM_WORLD_LOCAL_SIZE"};
  ETC_ASSIGN_OR_RETURN(ProcessPlace place, ReadRanks(environment, names));
  absl::StatusOr<std::string> address = InvalidArgument(
      "MASTER_ADDR is not set, and Open MPI's processes are on several "
      "machines: it should be the address of that of rank 0, as in mpirun -x "
      "MASTER_ADDR=192.168.0.1");
  ETC_ASSIGN_OR_RETURN(const std::optional<int64_t> local_size,
                       ReadNumber(environment, names.local_world_size, {}));
  if (local_size == place.world_size) {
    address = "127.0.0.1";
  }
  ETC_RETURN_IF_ERROR(
      SetMaster(environment, address, OpenMpiPort(environment), &place));
  return place;
}

absl::StatusOr<std::string> SlurmAddress(const Environment& environment) {
  const std::optional<std::string> hosts = environment("SLURM_STEP_NODELIST");
  if (!hosts.has_value()) {
    return InvalidArgument(
        "neither MASTER_ADDR nor SLURM_STEP_NODELIST is set: MASTER_ADDR "
        "should be the address of the machine of rank 0");
  }
  absl::StatusOr<std::string> host = FirstSlurmHost(*hosts);
  if (!host.ok()) {
    return InvalidArgument("SLURM_STEP_NODELIST ", host.status().message());
  }
  return host;
}

// Neither consecutive jobs nor steps of one job share a port.
absl::StatusOr<int64_t> SlurmPort(const Environment& environment) {
  constexpr int64_t kBetweenSteps = 1009;
  ETC_ASSIGN_OR_RETURN(const std::optional<int64_t> job,
                       ReadNumber(environment, "SLURM_JOB_ID", {}));
  if (!job.has_value()) {
    return InvalidArgument(
        "neither MASTER_PORT nor SLURM_JOB_ID is set: MASTER_PORT should be "
        "the port at which all processes meet");
  }
  ETC_ASSIGN_OR_RETURN(const std::optional<int64_t> step,
                       ReadNumber(environment, "SLURM_STEP_ID", {}));
  return kFirstPort +
         (*job % kPorts + step.value_or(0) % kPorts * kBetweenSteps) % kPorts;
}

absl::StatusOr<ProcessPlace> PlaceFromSlurm(const Environment& environment) {
  ETC_ASSIGN_OR_RETURN(
      ProcessPlace place,
      ReadRanks(environment, {.launcher = "Slurm",
                              .rank = "SLURM_PROCID",
                              .world_size = "SLURM_STEP_NUM_TASKS",
                              .local_rank = "SLURM_LOCALID"}));
  ETC_ASSIGN_OR_RETURN(
      const std::optional<int64_t> machines,
      ReadNumber(environment, "SLURM_STEP_NUM_NODES", {.least = 1}));
  place.has_other_machines = machines.value_or(1) > 1;
  ETC_RETURN_IF_ERROR(SetMaster(environment, SlurmAddress(environment),
                                SlurmPort(environment), &place));
  return place;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) {
      return std::nullopt;
    }
    return value;
  };
}

absl::StatusOr<ProcessPlace> FindProcessPlace(const Environment& environment) {
  const auto has = [&](const char* name) {
    return environment(name).has_value();
  };
  if (has("RANK") || has("WORLD_SIZE")) {
    return PlaceFromTorchrun(environment);
  }
  if (has("OMPI_COMM_WORLD_RANK") || has("OMPI_COMM_WORLD_SIZE")) {
    return PlaceFromOpenMpi(environment);
  }
  // Slurm sets SLURM_PROCID for a batch script too, the number of the tasks of
  // a step only for what srun starts.
  if (has("SLURM_PROCID") && has("SLURM_STEP_NUM_TASKS")) {
    return PlaceFromSlurm(environment);
  }
  return ProcessPlace{};
}

}  // namespace etc
