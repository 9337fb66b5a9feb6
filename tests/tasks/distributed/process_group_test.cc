// Collective operations over c10d, in processes of this program on the
// loopback: sums to the same bits, gathered bytes and errors; and that the
// remaining ranks notice one that has ended, of whatever kind its end was, and
// name it.
//
// Ranks wait for one another, not for a time. Where one is to notice that
// another is gone, the timeout is longer than the test may hang: that it ends
// shows that it has not waited for the timeout.

#include "tasks/distributed/process_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/utils.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/tasks/distributed/forked_processes.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(4 * kSecondsToHang);
// Timeout for tests that wait until it is over. Half of it is time to come.
constexpr absl::Duration kShortTimeout = absl::Seconds(30);

std::unique_ptr<ProcessGroup> JoinOrDie(const ProcessPlace& place) {
  auto group = ProcessGroup::Join(place, kTimeout);
  if (!group.ok()) {
    ADD_FAILURE() << group.status();
    _exit(1);
  }
  return *std::move(group);
}

// Waits in the store of process 0, which may not be there yet, until the first
// `count` processes have said there who they are (Introduce in
// tasks/distributed/missing_process.h).
void AwaitIntroductions(const ProcessPlace& place, int64_t count) {
  const std::chrono::seconds patience(kSecondsToHang);
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.master_port);
  options.waitWorkers = false;
  options.timeout = patience;
  const auto store = c10::make_intrusive<c10d::PrefixStore>(
      "realetc/",
      c10::make_intrusive<c10d::TCPStore>(place.master_address, options));
  std::vector<std::string> keys;
  for (int64_t rank = 0; rank < count; ++rank) {
    keys.push_back(absl::StrCat("process/", rank));
  }
  store->wait(keys, patience);
}

TEST(ProcessGroupTest, SumsTensorsOfAll) {
  for (const int64_t count : {2, 3, 4}) {
    ExpectProcesses(count, [](const ProcessPlace& place) {
      const auto group = JoinOrDie(place);
      EXPECT_EQ(group->is_first(), place.rank == 0);
      const auto rank = static_cast<double>(place.rank);
      const auto size = static_cast<double>(place.world_size);
      const double sum = size * (size - 1) / 2;
      // More than two buckets, with tensors on both sides of their bounds.
      std::vector<torch::Tensor> tensors = {
          torch::full({3, 5}, rank), torch::full({5'000'000}, rank),
          torch::zeros({0}), torch::full({9'000'000}, 2 * rank),
          torch::full({7}, 1.0)};
      EXPECT_TRUE(group->Sum(tensors).ok());
      EXPECT_TRUE(torch::equal(tensors[0], torch::full({3, 5}, sum)));
      EXPECT_TRUE(torch::equal(tensors[1], torch::full({5'000'000}, sum)));
      EXPECT_TRUE(torch::equal(tensors[3], torch::full({9'000'000}, 2 * sum)));
      EXPECT_TRUE(torch::equal(tensors[4], torch::full({7}, size)));
      EXPECT_EQ(group->bytes_summed(), 4 * (15 + 5'000'000 + 9'000'000 + 7));
      const torch::Tensor doubles =
          torch::full({3}, rank + 1e-12, torch::kFloat64);
      EXPECT_TRUE(group->Sum({doubles}).ok());
      EXPECT_NEAR(doubles[2].item<double>(), sum + size * 1e-12, 1e-15);
      EXPECT_TRUE(group->Sum({}).ok());
    });
  }
}

// CPU tensors are summed on the CPU, with NCCL or without. Built without NCCL,
// or with it on a machine without a CUDA device.
TEST(ProcessGroupTest, SaysWhereItHasNoNccl) {
  ExpectProcesses(2, [](const ProcessPlace& place) {
    const auto group = JoinOrDie(place);
    const absl::Status status = group->UseNccl();
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  testing::AnyOf(HasSubstr("-DETC_NCCL=ON"),
                                 HasSubstr("LibTorch finds none")));
    }
    const torch::Tensor one = torch::ones({3});
    EXPECT_TRUE(group->Sum({one}).ok());
    EXPECT_EQ(one[2].item<double>(), 2);
  });
}

// Rounding depends on the order of a sum: all have that of one process.
TEST(ProcessGroupTest, SumsToTheSameBits) {
  ExpectProcesses(3, [](const ProcessPlace& place) {
    const auto group = JoinOrDie(place);
    torch::manual_seed(place.rank);
    const torch::Tensor sum = torch::randn({100'003});
    EXPECT_TRUE(group->Sum({sum}).ok());
    const auto all =
        group->Gather({static_cast<const char*>(sum.data_ptr()), sum.nbytes()});
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_TRUE((*all)[0] == (*all)[1]);
    EXPECT_TRUE((*all)[0] == (*all)[2]);
  });
}

TEST(ProcessGroupTest, BroadcastsAndGathers) {
  ExpectProcesses(3, [](const ProcessPlace& place) {
    const auto group = JoinOrDie(place);
    const torch::Tensor numbers = torch::full({2, 2}, place.rank + 5);
    const torch::Tensor doubles =
        torch::full({3}, 0.1 * static_cast<double>(place.rank + 1),
                    torch::kFloat64)
            .requires_grad_();
    EXPECT_TRUE(group->Broadcast({numbers, doubles}).ok());
    EXPECT_TRUE(torch::equal(numbers, torch::full({2, 2}, 5)));
    EXPECT_TRUE(torch::equal(doubles, torch::full({3}, 0.1, torch::kFloat64)));
    EXPECT_THAT(
        *group->Gather(std::string(static_cast<size_t>(3 * place.rank), 'a')),
        ElementsAre("", "aaa", "aaaaaa"));
    EXPECT_THAT(*group->Gather(""), ElementsAre("", "", ""));
    EXPECT_THAT(*group->Gather(std::string("\0x", 2)),
                ElementsAre(std::string("\0x", 2), std::string("\0x", 2),
                            std::string("\0x", 2)));
  });
}

TEST(ProcessGroupTest, AgreesOnTheFirstError) {
  ExpectProcesses(3, [](const ProcessPlace& place) {
    const auto group = JoinOrDie(place);
    EXPECT_TRUE(group->Agree(absl::OkStatus()).ok());
    const absl::Status mine =
        place.rank == 0
            ? absl::OkStatus()
            : absl::NotFoundError(absl::StrCat("no file of ", place.rank));
    const absl::Status agreed = group->Agree(mine);
    EXPECT_EQ(agreed.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(agreed.message(), place.rank == 1
                                    ? "no file of 1"
                                    : "process 1 of 3: no file of 1");
    EXPECT_TRUE(*group->AgreeToGoOn(absl::OkStatus(), true));
    EXPECT_FALSE(*group->AgreeToGoOn(absl::OkStatus(), place.rank != 2));
  });
}

// Whichever it is, at whatever it is, the others name it.
TEST(ProcessGroupTest, NamesTheProcessThatWasKilled) {
  for (const int64_t victim : {0, 1, 3}) {
    SharedCount agreed;
    const std::vector<int> ends =
        RunProcesses(4, [&](const ProcessPlace& place) {
          const auto group = JoinOrDie(place);
          ASSERT_TRUE(group->Agree(absl::OkStatus()).ok());
          agreed.Add();
          if (place.rank == victim) {
            agreed.Await(4);
            raise(SIGKILL);
          }
          const absl::Status status = group->Sum({torch::ones({1'000'000})});
          EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
          EXPECT_THAT(std::string(status.message()),
                      AllOf(HasSubstr(absl::StrCat("process ", place.rank,
                                                   " of 4: process ", victim)),
                            HasSubstr("has ended")));
        });
    for (int64_t rank = 0; rank < 4; ++rank) {
      const int status = ends[static_cast<size_t>(rank)];
      EXPECT_TRUE(rank == victim ? WIFSIGNALED(status) : status == 0) << rank;
    }
  }
}

TEST(ProcessGroupTest, PassesOnWhyAProcessLeft) {
  SharedCount agreed;
  ExpectProcesses(3, [&](const ProcessPlace& place) {
    auto group = JoinOrDie(place);
    ASSERT_TRUE(group->Agree(absl::OkStatus()).ok());
    agreed.Add();
    if (place.rank == 2) {
      agreed.Await(3);
      group->Leave(absl::NotFoundError("there is no file a.json"));
      return;
    }
    const absl::Status status = group->Agree(absl::OkStatus());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("process 2 has ended: there is no file a.json"));
  });
}

TEST(ProcessGroupTest, WaitsForNoOneForEver) {
  SharedCount started;
  SharedCount gave_up;
  ExpectProcesses(2, [&](const ProcessPlace& place) {
    started.Add();
    started.Await(2);
    const auto group = ProcessGroup::Join(place, kShortTimeout);
    ASSERT_TRUE(group.ok()) << group.status();
    if (place.rank == 1) {
      gave_up.Await(1);  // alive, but never there
      return;
    }
    const absl::Status status = (*group)->Agree(absl::OkStatus());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("process 1 "));
    gave_up.Add();
  });
}

TEST(ProcessGroupTest, NamesWhoHasNotCome) {
  SharedCount started;
  ExpectProcesses(3, [&](const ProcessPlace& place) {
    if (place.rank == 2) {
      return;
    }
    started.Add();
    started.Await(2);
    const auto group = ProcessGroup::Join(place, kShortTimeout);
    EXPECT_EQ(group.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(group.status().message()),
                HasSubstr("process 2 has not come"));
  });
}

// Nobody waits for the others if one of those that have joined is gone.
TEST(ProcessGroupTest, NamesTheProcessThatWasKilledBeforeAllHadCome) {
  SharedCount victim;
  const std::vector<int> ends = RunProcesses(4, [&](const ProcessPlace& place) {
    if (place.rank == 3) {
      AwaitIntroductions(place, 3);
      kill(static_cast<pid_t>(victim.Get()), SIGKILL);
      return;
    }
    if (place.rank == 1) {
      victim.Set(getpid());
    }
    const auto group = ProcessGroup::Join(place, kTimeout);
    EXPECT_THAT(std::string(group.status().message()),
                HasSubstr("process 1 has ended"));
  });
  EXPECT_EQ(ends[0], 0);
  EXPECT_TRUE(WIFSIGNALED(ends[1]));
  EXPECT_EQ(ends[2], 0);
}

TEST(ProcessGroupTest, SaysWhereNobodyWas) {
  const int64_t port = FreePort();
  const auto group =
      ProcessGroup::Join(PlaceOf(1, 2, port), absl::Milliseconds(500));
  EXPECT_EQ(group.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(group.status().message()),
              HasSubstr(absl::StrCat("127.0.0.1:", port)));
  ProcessPlace nowhere = PlaceOf(1, 2, port);
  nowhere.master_address = "no.such.host.invalid";
  EXPECT_THAT(std::string(ProcessGroup::Join(nowhere, absl::Milliseconds(500))
                              .status()
                              .message()),
              HasSubstr("\"no.such.host.invalid\" (MASTER_ADDR)"));
}

TEST(ProcessGroupTest, RefusesAPortThatIsTaken) {
  int64_t port = 0;
  const int descriptor = BindToFreePort(&port);
  ASSERT_EQ(listen(descriptor, 1), 0);
  const auto group = ProcessGroup::Join(PlaceOf(0, 2, port), kTimeout);
  EXPECT_EQ(group.status().code(), absl::StatusCode::kInvalidArgument)
      << group.status();
  EXPECT_THAT(std::string(group.status().message()), HasSubstr("taken"));
  close(descriptor);
}

// Debian gives a machine's own name the address 127.0.1.1.
TEST(ProcessGroupTest, MeetsAtAnyAddressOfTheMachine) {
  for (const char* address : {"127.0.1.1", "localhost"}) {
    ExpectProcesses(2, [&](ProcessPlace place) {
      place.master_address = address;
      const auto group = JoinOrDie(place);
      EXPECT_TRUE(group->Agree(absl::OkStatus()).ok()) << address;
    });
  }
  ProcessPlace elsewhere = PlaceOf(0, 2, FreePort());
  elsewhere.master_address = "192.0.2.1";  // for documentation: nobody's
  EXPECT_THAT(
      std::string(ProcessGroup::Join(elsewhere, kTimeout).status().message()),
      AnyOf(HasSubstr("process 0 should be on the machine that has the "
                      "address 192.0.2.1 (MASTER_ADDR)"),
            HasSubstr("there is no way to process 0")));
}

TEST(ProcessGroupTest, RefusesTheLoopbackForSeveralMachines) {
  for (const char* address : {"127.0.0.1", "127.0.1.1", "localhost"}) {
    ProcessPlace place = PlaceOf(0, 4, FreePort());
    place.master_address = address;
    place.has_other_machines = true;
    const absl::Status status = ProcessGroup::Join(place, kTimeout).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("MASTER_ADDR should be an address that all "
                                "machines reach, for 4 processes on several"),
                      HasSubstr(address)));
  }
}

// 127.0.0.2 is an address of the loopback as well; what listens on all
// addresses answers there.
TEST(ProcessGroupTest, ListensOnTheAddressThatItIsTold) {
  ExpectProcesses(2, [](const ProcessPlace& place) {
    const auto group = JoinOrDie(place);
    const auto answers = [&](const char* text) {
      const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(place.master_port));
      inet_pton(AF_INET, text, &address.sin_addr);
      const bool connected =
          connect(descriptor, reinterpret_cast<sockaddr*>(&address),
                  sizeof(address)) == 0;
      close(descriptor);
      return connected;
    };
    EXPECT_TRUE(answers("127.0.0.1"));
    EXPECT_FALSE(answers("127.0.0.2"));
    EXPECT_TRUE(group->Agree(absl::OkStatus()).ok());
  });
}

}  // namespace
}  // namespace etc
