// Ranks and addresses read from the variables of launchers, and the errors when
// they are wrong. Each case is a whole environment.
#include "tasks/distributed/process_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace etc {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<ProcessPlace> Find(const Variables& variables) {
  return FindProcessPlace(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) {
          return std::nullopt;
        }
        return found->second;
      });
}

// `changes` made to `variables`; "-" removes one.
Variables With(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) {
    if (value == "-") {
      variables.erase(name);
    } else {
      variables[name] = value;
    }
  }
  return variables;
}

const Variables& Torchrun() {
  static const Variables variables = {{"RANK", "5"},
                                      {"WORLD_SIZE", "8"},
                                      {"LOCAL_RANK", "1"},
                                      {"MASTER_PORT", "29500"},
                                      {"LOCAL_WORLD_SIZE", "4"},
                                      {"MASTER_ADDR", "10.0.0.7"}};
  return variables;
}

// torchrun's store is at MASTER_PORT: the ranks meet beside it.
TEST(ProcessPlaceTest, LeavesTorchrunItsStore) {
  const auto place = Find({{"RANK", "0"},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "10.0.0.7"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                           {"TORCHELASTIC_RESTART_COUNT", "2"}});
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->master_port, 29501);
  EXPECT_EQ(place->restart, "2");
  const auto other = Find({{"RANK", "0"},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "10.0.0.7"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_USE_AGENT_STORE", "False"}});
  EXPECT_EQ(other->master_port, 29500);
  const auto last = Find({{"RANK", "0"},
                          {"WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "10.0.0.7"},
                          {"MASTER_PORT", "65535"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(last->master_port, 65534);
}

const Variables& OpenMpi() {
  static const Variables variables = {{"OMPI_COMM_WORLD_RANK", "3"},
                                      {"OMPI_COMM_WORLD_SIZE", "4"},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                      {"PMIX_NAMESPACE", "3241672705"}};
  return variables;
}

const Variables& Slurm() {
  static const Variables variables = {
      {"SLURM_PROCID", "3"},       {"SLURM_STEP_NUM_TASKS", "4"},
      {"SLURM_LOCALID", "1"},      {"SLURM_STEP_NODELIST", "node[03-04]"},
      {"SLURM_JOB_ID", "4194305"}, {"SLURM_STEP_ID", "0"}};
  return variables;
}

struct Found {
  Variables variables;
  ProcessPlace place;
};

void ExpectFound(const std::vector<Found>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto place = Find(cases[i].variables);
    ASSERT_TRUE(place.ok()) << "case " << i << ": " << place.status();
    const ProcessPlace& expected = cases[i].place;
    EXPECT_EQ(place->rank, expected.rank) << "case " << i;
    EXPECT_EQ(place->world_size, expected.world_size) << "case " << i;
    EXPECT_EQ(place->local_rank, expected.local_rank) << "case " << i;
    EXPECT_EQ(place->master_address, expected.master_address) << "case " << i;
    EXPECT_EQ(place->master_port, expected.master_port) << "case " << i;
    EXPECT_EQ(place->launcher, expected.launcher) << "case " << i;
  }
}

struct Mistake {
  Variables variables;
  std::string message;
};

void ExpectMistakes(const std::vector<Mistake>& cases) {
  for (const Mistake& mistake : cases) {
    const absl::Status status = Find(mistake.variables).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << mistake.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(mistake.message));
  }
}

TEST(ProcessPlaceTest, IsOneProcessWithoutALauncher) {
  ExpectFound({{{}, {}},
               {{{"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "x"}}, {}},
               // A batch script that calls no srun.
               {With(Slurm(), {{"SLURM_STEP_NUM_TASKS", "-"}}), {}}});
}

TEST(ProcessPlaceTest, ReadsTheVariablesOfTorchrun) {
  const ProcessPlace place{.rank = 5,
                           .world_size = 8,
                           .local_rank = 1,
                           .master_address = "10.0.0.7",
                           .master_port = 29500,
                           .launcher = "torchrun"};
  ProcessPlace without_local_size = place;
  without_local_size.local_rank = 0;
  ExpectFound(
      {{Torchrun(), place},
       {With(Torchrun(), {{"LOCAL_RANK", "-"}}), place},
       {With(Torchrun(), {{"LOCAL_RANK", "-"}, {"LOCAL_WORLD_SIZE", "-"}}),
        without_local_size},
       // Before those of the others, which may have started torchrun.
       {With(With(Torchrun(), OpenMpi()), Slurm()), place},
       {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, {.launcher = "torchrun"}}});
}

TEST(ProcessPlaceTest, KnowsOfOtherMachines) {
  const Variables two_here = {{"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"MASTER_ADDR", "n1"}};
  const auto of_slurm = [](const std::string& machines) {
    return With(Slurm(), {{"SLURM_STEP_NUM_NODES", machines}});
  };
  for (const Variables& several :
       {Torchrun(), With(OpenMpi(), two_here), of_slurm("2")}) {
    EXPECT_TRUE(Find(several)->has_other_machines);
  }
  for (const Variables& one_or_unknown :
       {Variables(), With(Torchrun(), {{"LOCAL_WORLD_SIZE", "8"}}),
        With(Torchrun(), {{"LOCAL_WORLD_SIZE", "-"}}), OpenMpi(), of_slurm("1"),
        Slurm()}) {
    EXPECT_FALSE(Find(one_or_unknown)->has_other_machines);
  }
}

TEST(ProcessPlaceTest, NamesWhatIsWrongWithThoseOfTorchrun) {
  const auto with = [](const Variables& changes) {
    return With(Torchrun(), changes);
  };
  ExpectMistakes({
      {with({{"WORLD_SIZE", "-"}}), "RANK is set, but WORLD_SIZE is not"},
      {with({{"RANK", "-"}}), "WORLD_SIZE is set, but RANK is not"},
      {with({{"RANK", "8"}}),
       "RANK should be a whole number from 0 to 7 (WORLD_SIZE is 8), but is "
       "\"8\""},
      {with({{"RANK", "-1"}}), "from 0 to 7 (WORLD_SIZE is 8), but is \"-1\""},
      {with({{"RANK", ""}}), "RANK should be a whole number"},
      {with({{"RANK", "1.5"}}), "but is \"1.5\""},
      {with({{"WORLD_SIZE", "0"}}),
       "WORLD_SIZE should be a whole number of at least 1, but is \"0\""},
      {with({{"WORLD_SIZE", "99999999999999999999"}}), "WORLD_SIZE should be"},
      {with({{"LOCAL_RANK", "4"}}),
       "LOCAL_RANK should be a whole number from 0 to 3 (LOCAL_WORLD_SIZE is "
       "4), but is \"4\""},
      {with({{"LOCAL_RANK", "8"}, {"LOCAL_WORLD_SIZE", "-"}}),
       "LOCAL_RANK should be a whole number from 0 to 7 (WORLD_SIZE is 8)"},
      {with({{"LOCAL_WORLD_SIZE", "9"}}),
       "LOCAL_WORLD_SIZE should be a whole number from 1 to 8 (WORLD_SIZE is "
       "8), but is \"9\""},
      {with({{"MASTER_ADDR", "-"}}),
       "MASTER_ADDR is not set, but WORLD_SIZE is 8: it should be"},
      {with({{"MASTER_ADDR", ""}}), "MASTER_ADDR should be"},
      {with({{"MASTER_PORT", "-"}}), "MASTER_PORT is not set"},
      {with({{"MASTER_PORT", "0"}}),
       "MASTER_PORT should be a whole number from 1 to 65535, but is \"0\""},
      {with({{"MASTER_PORT", "65536"}}), "but is \"65536\""},
      {with({{"MASTER_PORT", "http"}}), "but is \"http\""},
  });
}

TEST(ProcessPlaceTest, ReadsTheVariablesOfOpenMpi) {
  ProcessPlace place{.rank = 3,
                     .world_size = 4,
                     .local_rank = 3,
                     .master_address = "127.0.0.1",
                     .master_port = 21786,  // CRC-32C of the name of the job
                     .launcher = "Open MPI"};
  ProcessPlace elsewhere = place;
  elsewhere.local_rank = 1;
  elsewhere.master_address = "n1";
  elsewhere.master_port = 4000;
  ExpectFound({{OpenMpi(), place},
               // Before those of Slurm, in whose jobs mpirun may run.
               {With(OpenMpi(), Slurm()), place},
               {With(OpenMpi(), {{"PMIX_NAMESPACE", "-"},
                                 {"OMPI_MCA_ess_base_jobid", "3241672705"}}),
                place},
               {With(OpenMpi(), {{"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                 {"MASTER_ADDR", "n1"},
                                 {"MASTER_PORT", "4000"}}),
                elsewhere},
               {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
                {.launcher = "Open MPI"}}});
}

TEST(ProcessPlaceTest, NamesWhatIsWrongWithThoseOfOpenMpi) {
  const auto with = [](const Variables& changes) {
    return With(OpenMpi(), changes);
  };
  ExpectMistakes({
      {with({{"OMPI_COMM_WORLD_SIZE", "-"}}),
       "OMPI_COMM_WORLD_RANK is set, but OMPI_COMM_WORLD_SIZE is not"},
      {with({{"OMPI_COMM_WORLD_RANK", "-"}}),
       "OMPI_COMM_WORLD_SIZE is set, but OMPI_COMM_WORLD_RANK is not"},
      {with({{"OMPI_COMM_WORLD_RANK", "4"}}),
       "OMPI_COMM_WORLD_RANK should be a whole number from 0 to 3"},
      {with({{"OMPI_COMM_WORLD_LOCAL_SIZE", "5"}}),
       "OMPI_COMM_WORLD_LOCAL_SIZE should be"},
      {with({{"OMPI_COMM_WORLD_LOCAL_RANK", "x"}}),
       "OMPI_COMM_WORLD_LOCAL_RANK should be"},
      {with({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}),
       "mpirun -x MASTER_ADDR="},
      {with({{"OMPI_COMM_WORLD_LOCAL_SIZE", "-"}}), "mpirun -x MASTER_ADDR="},
      {with({{"MASTER_PORT", "-5"}}), "MASTER_PORT should be"},
  });
}

TEST(ProcessPlaceTest, ReadsTheVariablesOfSlurm) {
  ProcessPlace place{.rank = 3,
                     .world_size = 4,
                     .local_rank = 1,
                     .master_address = "node03",
                     .master_port = 24305,
                     .launcher = "Slurm"};
  ProcessPlace second_step = place;
  second_step.master_port = 25314;
  ProcessPlace set = place;
  set.local_rank = 0;
  set.master_address = "n1";
  set.master_port = 4000;
  ExpectFound({{Slurm(), place},
               {With(Slurm(), {{"SLURM_STEP_ID", "-"}}), place},
               {With(Slurm(), {{"SLURM_STEP_ID", "1"}}), second_step},
               {With(Slurm(), {{"SLURM_LOCALID", "-"},
                               {"SLURM_STEP_NODELIST", "[broken"},
                               {"SLURM_JOB_ID", "-"},
                               {"MASTER_ADDR", "n1"},
                               {"MASTER_PORT", "4000"}}),
                set},
               {{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}},
                {.launcher = "Slurm"}}});
}

TEST(ProcessPlaceTest, NamesWhatIsWrongWithThoseOfSlurm) {
  const auto with = [](const Variables& changes) {
    return With(Slurm(), changes);
  };
  ExpectMistakes({
      {with({{"SLURM_PROCID", "4"}}),
       "SLURM_PROCID should be a whole number from 0 to 3 "
       "(SLURM_STEP_NUM_TASKS is 4), but is \"4\""},
      {with({{"SLURM_STEP_NUM_TASKS", "two"}}), "but is \"two\""},
      {with({{"SLURM_LOCALID", "4"}}), "SLURM_LOCALID should be"},
      {with({{"SLURM_STEP_NODELIST", "-"}}),
       "neither MASTER_ADDR nor SLURM_STEP_NODELIST is set"},
      {with({{"SLURM_STEP_NODELIST", "node[1-"}}),
       "SLURM_STEP_NODELIST should be a list of hosts, as in "
       "\"node[01-04],other\", but is \"node[1-\""},
      {with({{"SLURM_JOB_ID", "-"}}),
       "neither MASTER_PORT nor SLURM_JOB_ID is set"},
      {with({{"SLURM_JOB_ID", "job"}}), "SLURM_JOB_ID should be"},
      {with({{"SLURM_STEP_ID", "-2"}}), "SLURM_STEP_ID should be"},
      {with({{"SLURM_STEP_NUM_NODES", "0"}}),
       "SLURM_STEP_NUM_NODES should be a whole number of at least 1"},
      {with({{"MASTER_PORT", "70000"}}), "MASTER_PORT should be"},
  });
}

TEST(ProcessPlaceTest, ReadsTheEnvironmentOfThisProcess) {
  setenv("ETC_PROCESS_PLACE_TEST", "here", /*overwrite=*/1);
  EXPECT_EQ(ProcessEnvironment()("ETC_PROCESS_PLACE_TEST"), "here");
  unsetenv("ETC_PROCESS_PLACE_TEST");
  EXPECT_EQ(ProcessEnvironment()("ETC_PROCESS_PLACE_TEST"), std::nullopt);
}

}  // namespace
}  // namespace etc
