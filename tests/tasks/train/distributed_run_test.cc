// Runs of several processes, forked from this one, against a run of one: the
// same updates but for the order of sums, the same predictions; the same bits
// if they are stopped, killed and resumed with as many processes; and what is
// refused. The toy task has dropout here, whose random numbers belong to a
// micro-batch, wherever it is computed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/utils.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/stop_guard.h"
#include "etc/model.h"
#include "tasks/data/batch.h"
#include "tasks/data/record_source.h"
#include "tasks/distributed/process_group.h"
#include "tasks/task/task.h"
#include "tasks/train/shared_start.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/train_runs.h"
#include "tests/tasks/data/fake_source.h"
#include "tests/tasks/distributed/forked_processes.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/train/toy_run_fixture.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A second run of the encoder over each micro-batch, whose gradient is added
// after those of all.
class SecondRuns final : public UpdateContext {
 public:
  explicit SecondRuns(EtcModel encoder) : encoder_(std::move(encoder)) {}
  void Add(const Examples& examples, const torch::Device& /*device*/) override {
    micro_batches_.push_back(examples);
  }
  void Skip() override { micro_batches_.emplace_back(); }
  absl::Status Exchange(ProcessGroup* /*group*/) override {
    return absl::OkStatus();
  }
  absl::Status SumGradients(ProcessGroup* /*group*/) override {
    return absl::OkStatus();
  }
  void AddGradient(size_t micro_batch) override {
    encoder_->forward(MakeBatch(micro_batches_[micro_batch]).input)
        .global_output.slice(/*dim=*/2, 0, 3)
        .mean()
        .backward();
  }

 private:
  EtcModel encoder_;
  std::vector<Examples> micro_batches_;
};

// Sets `*stop` in one of its training passes, and stops in it.
class SharingHead final : public ToyHead {
 public:
  SharingHead(int64_t hidden_size, std::atomic<bool>* stop,
              int64_t stopped_in_pass)
      : ToyHead(hidden_size), stop_(stop), left_(stopped_in_pass) {}
  std::unique_ptr<UpdateContext> BeginUpdate(EtcModel encoder) override {
    return std::make_unique<SecondRuns>(std::move(encoder));
  }
  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) override {
    if (is_training() && --left_ == 0) {
      *stop_ = true;
      ThrowIfStopped();
    }
    return ToyHead::forward(encoded, batch);
  }

 private:
  std::atomic<bool>* const stop_;
  int64_t left_;
};

// Counts the records that are made, and kills its process after some.
class CountingTask final : public ToyTask {
 public:
  explicit CountingTask(const EtcConfig& model)
      : ToyTask(model), hidden_size_(model.hidden_size) {}
  absl::StatusOr<Examples> MakeExamples(
      const std::string& record, const std::string& where) const override {
    if (++made == killed_after) {
      raise(SIGKILL);
    }
    return ToyTask::MakeExamples(record, where);
  }

  std::shared_ptr<TaskHead> MakeHead() const override {
    return shares ? std::make_shared<SharingHead>(hidden_size_, stop,
                                                  stopped_in_pass)
                  : ToyTask::MakeHead();
  }

  FileReader Reader() const override {
    if (!has_own_files) {
      return nullptr;
    }
    return [this](const std::string& path, const RecordLimits& limits)
               -> absl::StatusOr<std::vector<FileRecord>> {
      if (stops_in_file) {
        *stop = true;  // as SIGTERM does
      }
      if (!unreadable.ok()) {
        return unreadable;
      }
      std::vector<FileRecord> records;
      const auto add = [&records](const std::string& json,
                                  const std::string& where) {
        records.push_back({.json = json, .where = where});
        return absl::OkStatus();
      };
      ETC_RETURN_IF_ERROR(ForEachRecord(path, add, limits));
      return records;
    };
  }

  Notices DescribeRecords(
      const std::vector<FileRecord>& /*train*/,
      const std::vector<FileRecord>& /*dev*/) const override {
    ++described;
    return {};
  }

  mutable std::atomic<int64_t> made = 0;
  mutable int64_t described = 0;
  int64_t killed_after = -1;
  // Its records are those of Reader.
  bool has_own_files = false;
  // Sets `*stop` when a file is read.
  bool stops_in_file = false;
  // The error of reading a file.
  absl::Status unreadable;
  // Of SharingHead.
  bool shares = false;
  std::atomic<bool>* stop = nullptr;
  int64_t stopped_in_pass = -1;

 private:
  const int64_t hidden_size_;
};

// Reporter of rank 0 that kills another process, or its own, in the middle of a
// run.
class KillingReporter final : public FakeReporter {
 public:
  // After the update `after` of this start.
  KillingReporter(const SharedCount* victim, int64_t after)
      : victim_(victim), left_(after) {}
  void Update(const Progress& progress) override {
    FakeReporter::Update(progress);
    if (--left_ == 0) {
      kill(static_cast<pid_t>(victim_->Get()), SIGKILL);
    }
  }

 private:
  const SharedCount* const victim_;
  int64_t left_;
};

class DistributedRunTest : public ToyRunTest {
 protected:
  DistributedRunTest() {
    at::set_num_threads(1);  // before a fork
    json_["train"]["batch_size"] = 8;
    json_["train"]["micro_batch_size"] = 2;
    json_["train"]["threads"] = 1;
    json_["train"]["steps"] = 12;
    json_["train"].erase("epochs");
    json_["train"]["evaluate_every"] = 6;
    json_["train"]["checkpoint_every"] = 3;
    json_["train"]["evaluation_batch_size"] = 3;
    json_["model"]["hidden_dropout_prob"] = 0.1;
  }

  // Runs one of the ranks of a run.
  absl::Status RunRank(const nlohmann::json& json, const ProcessPlace& place,
                       FakeReporter* reporter, bool resume) {
    std::unique_ptr<ProcessGroup> group;
    if (place.world_size > 1) {
      auto joined = ProcessGroup::Join(place, absl::Seconds(kSecondsToHang));
      if (!joined.ok()) {
        return joined.status();
      }
      group = *std::move(joined);
    }
    const auto config = RunConfigFromJson(json, "toy");
    if (!config.ok()) {
      return config.status();
    }
    CountingTask task(config->model);
    task.killed_after = place.rank == victim_ ? killed_after_ : -1;
    task.shares = shares_;
    task.has_own_files = has_own_files_;
    task.stops_in_file = place.rank == stops_in_file_of_;
    if (place.rank == unreadable_to_) {
      task.unreadable = absl::InvalidArgumentError("this disk is broken");
    }
    task.stop = &reporter->stop;
    task.stopped_in_pass = place.rank == 0 ? stopped_in_pass_ : -1;
    const auto result = TrainRuns(
        *config, task,
        {.earlier = resume ? EarlierRun::kResume : EarlierRun::kRefuse,
         .context = {.reporter = reporter,
                     .stop = &reporter->stop,
                     .group = group.get()}});
    made_ = task.made;
    described_ = task.described;
    if (group != nullptr) {
      group->Leave(result.status());
    }
    return result.status();
  }

  // A run of so many processes into the directory `name`, which ends well.
  void RunWith(int64_t processes, const std::string& name, bool resume = false,
               int64_t stop_after = -1) {
    json_["output"] = Output(name);
    ExpectProcesses(processes, [&](const ProcessPlace& place) {
      FakeReporter reporter;
      // Stops one of them: all stop.
      reporter.stop_after = place.rank == 0 ? stop_after : -1;
      const absl::Status status = RunRank(json_, place, &reporter, resume);
      EXPECT_TRUE(status.ok()) << status;
    });
  }

  // Begins a new run of three ranks, each of which checks its own outcome.
  void CheckThree(const std::function<
                  void(const ProcessPlace& place, const FakeReporter& reporter,
                       const absl::Status& status)>& check) {
    ExpectProcesses(3, [&](const ProcessPlace& place) {
      FakeReporter reporter;
      const absl::Status status =
          RunRank(json_, place, &reporter, /*resume=*/false);
      check(place, reporter, status);
    });
  }

  // Records made in the last RunRank, and how often the data were described.
  int64_t made_ = 0;
  int64_t described_ = 0;
  bool has_own_files_ = false;
  // The ranks that are stopped while they read, and that cannot read.
  int64_t stops_in_file_of_ = -1;
  int64_t unreadable_to_ = -1;
  // The process that is killed after it made so many records.
  int64_t victim_ = -1;
  int64_t killed_after_ = -1;
  // The head is a SharingHead; on rank 0 it stops in so many passes.
  bool shares_ = false;
  int64_t stopped_in_pass_ = -1;

  std::string Seed(const std::string& name) const {
    return Output(name) + "/seed-1";
  }

  void ExpectSameUpdates(const std::string& name, const std::string& expected) {
    const auto lines = MetricsLines(Seed(name));
    const auto others = MetricsLines(Seed(expected));
    ASSERT_EQ(lines.size(), others.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      for (const char* number :
           {"loss", "gradient_norm", "update_norm", "weight_norm"}) {
        if (others[i].contains(number)) {
          EXPECT_NEAR(lines[i][number].get<double>(),
                      others[i][number].get<double>(),
                      1e-5 * (1 + others[i][number].get<double>()))
              << number << " of line " << i;
        }
      }
      EXPECT_EQ(lines[i].value("tokens", 0), others[i].value("tokens", 0));
      EXPECT_EQ(lines[i].contains("evaluation"),
                others[i].contains("evaluation"));
    }
    const std::string last = "/checkpoints/last/";
    const NamedTensors left = ReadAll(Seed(name) + last + "model.safetensors");
    const NamedTensors right =
        ReadAll(Seed(expected) + last + "model.safetensors");
    ASSERT_EQ(left.size(), right.size());
    // Compares all as one vector: biases of keys, whose gradient is but
    // rounding, are a millionth of it.
    double difference = 0;
    double length = 0;
    for (const auto& [tensor_name, tensor] : left) {
      difference +=
          (tensor - right.at(tensor_name)).square().sum().item<double>();
      length += tensor.square().sum().item<double>();
    }
    EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(length));
    EXPECT_EQ(*ReadFile(Seed(name) + last + "predictions.json"),
              *ReadFile(Seed(expected) + last + "predictions.json"));
  }
};

TEST_F(DistributedRunTest, MakesTheUpdatesOfOneProcess) {
  RunWith(1, "one");
  for (const int64_t processes : {2, 3, 4}) {
    const std::string name = absl::StrCat("of-", processes);
    RunWith(processes, name);
    ExpectSameUpdates(name, "one");
  }
}

// Also where the optimizer's state, that of gates too, is sharded.
TEST_F(DistributedRunTest, TrainsGatesAsOneProcessDoes) {
  json_["residual_attention"] = "gate";
  json_["train"]["gate_learning_rate_factor"] = 2;
  RunWith(1, "one");
  for (const bool shards : {false, true}) {
    json_["train"]["shard_optimizer"] = shards;
    const std::string name = absl::StrCat("gates-", shards);
    RunWith(3, name);
    ExpectSameUpdates(name, "one");
    const auto lines = MetricsLines(Seed(name));
    const auto expected = MetricsLines(Seed("one"));
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i].contains("gate_max"), lines[i].contains("loss"));
      EXPECT_NEAR(lines[i].value("gate_mean", 0.0),
                  expected[i].value("gate_mean", 0.0), 1e-4);
      EXPECT_NEAR(lines[i].value("gate_max", 0.0),
                  expected[i].value("gate_max", 0.0), 1e-4);
    }
    RunWith(3, name + "-stopped", /*resume=*/false, /*stop_after=*/7);
    RunWith(3, name + "-stopped", /*resume=*/true);
    ExpectSameRun(Seed(name + "-stopped"), Seed(name));
  }
}

// The first micro-batch sets the omegas of all, wherever it is computed.
TEST_F(DistributedRunTest, SetsOmegasAsOneProcessDoes) {
  json_["model"]["sublayer"] = "admin";
  RunWith(1, "one");
  RunWith(3, "of-3");
  ExpectSameUpdates("of-3", "one");
}

// Two epochs of the cheapest records, of which nothing is kept.
TEST_F(DistributedRunTest, MakesItsShareOfTheRecords) {
  json_["output"] = Output("shares");
  train_ = temporary_.Write("many.jsonl", ToyRecords(400, 1));
  json_["data"] = {{"train", {train_}},
                   {"dev", nlohmann::json::array()},
                   {"workers", 1},
                   {"cache_megabytes", 0},
                   {"bucket_batches", 5}};
  json_["train"]["micro_batch_size"] = 1;
  json_["train"]["steps"] = 100;
  json_["train"].erase("evaluate_every");
  CheckThree([&](const ProcessPlace& place, const FakeReporter& /*reporter*/,
                 const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_GE(made_, 2 * 400 / 3);
    EXPECT_LE(made_, 2 * 400 * 0.55) << "process " << place.rank;
  });
}

// Some tasks parse all records for that.
TEST_F(DistributedRunTest, DescribesTheDataInOneProcess) {
  json_["output"] = Output("described");
  has_own_files_ = true;
  CheckThree([&](const ProcessPlace& place, const FakeReporter& /*reporter*/,
                 const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(described_, place.rank == 0 ? 1 : 0) << "process " << place.rank;
  });
}

TEST_F(DistributedRunTest, MeetsABadRecordInAllProcesses) {
  temporary_.Write("train.jsonl",
                   ToyRecords(20, 1) + "{\"id\": 5}\n" + ToyRecords(17, 3));
  json_["output"] = Output("error");
  CheckThree([&](const ProcessPlace& /*place*/,
                 const FakeReporter& /*reporter*/, const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("train.jsonl: record 20"));
  });
  json_["data"]["on_bad_record"] = "skip";
  RunWith(1, "one");
  json_["output"] = Output("skip");
  CheckThree([&](const ProcessPlace& place, const FakeReporter& reporter,
                 const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(std::count_if(reporter.messages.begin(), reporter.messages.end(),
                            [](const std::string& message) {
                              return absl::StrContains(
                                  message, "training: skipped 1 bad record");
                            }),
              place.rank == 0 ? 1 : 0);
  });
  ExpectSameUpdates("skip", "one");
}

TEST_F(DistributedRunTest, MeetsABadRecordOfAnEvaluationInAllProcesses) {
  temporary_.Write("dev.jsonl", ToyRecords(8, 2) + "{\"id\": 5}\n");
  json_["output"] = Output("dev-error");
  CheckThree([&](const ProcessPlace& /*place*/,
                 const FakeReporter& /*reporter*/, const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("dev.jsonl: record 8"));
  });
}

// Each rank reads such files for itself; the others have read theirs then.
TEST_F(DistributedRunTest, StopsTheReadingOfFilesInAllProcesses) {
  has_own_files_ = true;
  stops_in_file_of_ = 2;
  json_["output"] = Output("stopped");
  CheckThree([&](const ProcessPlace& /*place*/,
                 const FakeReporter& /*reporter*/, const absl::Status& status) {
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  });
}

TEST_F(DistributedRunTest, EndsInAllProcessesWhereOneCannotReadAFile) {
  has_own_files_ = true;
  unreadable_to_ = 2;
  json_["output"] = Output("unreadable");
  CheckThree([&](const ProcessPlace& /*place*/,
                 const FakeReporter& /*reporter*/, const absl::Status& status) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("this disk is broken"));
  });
}

TEST_F(DistributedRunTest, EndsInAllProcessesWhereOneFindsNoFile) {
  json_["output"] = Output("absent");
  ExpectProcesses(3, [&](const ProcessPlace& place) {
    nlohmann::json json = json_;
    if (place.rank == 2) {
      json["data"]["train"] =
          nlohmann::json::array({temporary_.File("absent-*.jsonl")});
    }
    FakeReporter reporter;
    const absl::Status status =
        RunRank(json, place, &reporter, /*resume=*/false);
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("there is no file that matches"));
  });
}

// Stops when only one of them was told to.
TEST_F(DistributedRunTest, StopsAnEvaluationInAllProcesses) {
  RunWith(3, "straight");
  json_["output"] = Output("evaluation");
  ExpectProcesses(3, [&](const ProcessPlace& place) {
    FakeReporter reporter;
    reporter.stop_after_evaluation_batch = place.rank == 2 ? 1 : -1;
    const absl::Status status =
        RunRank(json_, place, &reporter, /*resume=*/false);
    EXPECT_TRUE(status.ok()) << status;
  });
  EXPECT_LT(MetricsLines(Seed("evaluation")).size(),
            MetricsLines(Seed("straight")).size());
  RunWith(3, "evaluation", /*resume=*/true);
  ExpectSameRun(Seed("evaluation"), Seed("straight"));
}

TEST_F(DistributedRunTest, GoesOnWithFewerProcesses) {
  RunWith(1, "one");
  RunWith(4, "fewer", /*resume=*/false, /*stop_after=*/4);
  RunWith(2, "fewer", /*resume=*/true, /*stop_after=*/8);
  RunWith(1, "fewer", /*resume=*/true);
  ExpectSameUpdates("fewer", "one");
}

// Each process updates a share of the parameters: the same to the bit (but for
// the norm of an update, a sum in another order), from and to checkpoints
// without shares.
TEST_F(DistributedRunTest, SharesTheOptimizer) {
  const auto expect_same = [this](const std::string& name) {
    for (const char* file :
         {"/model.safetensors", "/training_state.safetensors"}) {
      ExpectSameTensors(Seed(name) + "/checkpoints/last" + file,
                        Seed("whole") + "/checkpoints/last" + file);
    }
  };
  RunWith(3, "whole");
  json_["train"]["shard_optimizer"] = true;
  RunWith(3, "shared");
  expect_same("shared");
  RunWith(3, "resumed", /*resume=*/false, /*stop_after=*/3);
  RunWith(3, "resumed", /*resume=*/true, /*stop_after=*/7);
  json_["train"]["shard_optimizer"] = false;
  RunWith(3, "resumed", /*resume=*/true);
  expect_same("resumed");
}

TEST_F(DistributedRunTest, GoesOnBitForBit) {
  RunWith(2, "straight");
  RunWith(2, "stopped", /*resume=*/false, /*stop_after=*/7);
  RunWith(2, "stopped", /*resume=*/true);
  ExpectSameRun(Seed("stopped"), Seed("straight"));
}

// Gradients of an UpdateContext complete the sums, which begin in no pass
// before: one rank may be stopped there when the others are not.
TEST_F(DistributedRunTest, SharesAnUpdateBitForBit) {
  shares_ = true;
  RunWith(1, "one");
  RunWith(2, "straight");
  ExpectSameUpdates("straight", "one");
  // In the first micro-batch of an update.
  stopped_in_pass_ = 15;
  RunWith(2, "stopped");
  EXPECT_LT(MetricsLines(Seed("stopped")).size(),
            MetricsLines(Seed("straight")).size());
  stopped_in_pass_ = -1;
  RunWith(2, "stopped", /*resume=*/true);
  ExpectSameRun(Seed("stopped"), Seed("straight"));
}

// With the clock of rank 0 for checkpoints: after each update.
TEST_F(DistributedRunTest, EndsEarlyWithFrozenParametersInAllProcesses) {
  json_["train"]["frozen"] = {"encoder.embedding.*", "encoder.layers.0.*"};
  json_["train"]["early_stopping"] = 1;
  json_["train"]["early_stopping_improvement"] = 100;
  json_["train"]["evaluate_every"] = 4;
  json_["train"]["checkpoint_minutes"] = 1e-9;
  RunWith(1, "one");
  EXPECT_EQ(MetricsLines(Seed("one")).back()["step"], 8);
  RunWith(2, "two");
  ExpectSameUpdates("two", "one");
  RunWith(2, "stopped", /*resume=*/false, /*stop_after=*/3);
  RunWith(2, "stopped", /*resume=*/true);
  ExpectSameRun(Seed("stopped"), Seed("two"));
  json_["train"]["shard_optimizer"] = true;
  RunWith(2, "shards");
  ExpectSameUpdates("shards", "one");
}

TEST_F(DistributedRunTest, IsResumedAfterOneWasKilled) {
  RunWith(3, "straight");
  json_["output"] = Output("killed");
  // Kills at several places: before the first checkpoint, after it and, by the
  // third, at update 9.
  int64_t updates = 2;
  for (const int64_t victim : {2, 0, 1}) {
    SharedCount pid;
    const std::vector<int> ends =
        RunProcesses(3, [&](const ProcessPlace& place) {
          if (place.rank == victim) {
            pid.Set(getpid());
          }
          KillingReporter reporter(&pid, updates);
          const absl::Status status =
              RunRank(json_, place, &reporter, /*resume=*/true);
          EXPECT_FALSE(status.ok()) << "the run ended before";
          EXPECT_THAT(std::string(status.message()),
                      HasSubstr(absl::StrCat("process ", victim)));
        });
    for (int64_t rank = 0; rank < 3; ++rank) {
      const int end = ends[static_cast<size_t>(rank)];
      EXPECT_TRUE(rank == victim ? WIFSIGNALED(end) : end == 0) << rank;
    }
    updates += 2;
  }
  RunWith(3, "killed", /*resume=*/true);
  ExpectSameRun(Seed("killed"), Seed("straight"));
}

// Rank 0 alone saves; the others may wait for the one that is missing.
TEST_F(DistributedRunTest, SavesWhatWasTrainedWhenAProcessIsLost) {
  json_["train"]["evaluate_every"] = 0;
  json_["train"]["checkpoint_every"] = 0;
  json_["data"]["cache_megabytes"] = 0;
  json_["data"]["bucket_batches"] = 1;
  json_["train"]["steps"] = 20;  // of which the victim makes enough records
  RunWith(3, "straight");
  victim_ = 1;
  killed_after_ = 40;
  for (const bool is_sharded : {false, true}) {
    json_["train"]["shard_optimizer"] = is_sharded;
    const std::string name = is_sharded ? "sharded" : "lost";
    json_["output"] = Output(name);
    const std::vector<int> ends =
        RunProcesses(3, [&](const ProcessPlace& place) {
          FakeReporter reporter;
          const absl::Status status =
              RunRank(json_, place, &reporter, /*resume=*/false);
          EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
          const std::string message(status.message());
          EXPECT_THAT(message, HasSubstr("process 1"));
          if (place.rank > 0) {
            return;
          }
          const auto made = static_cast<int64_t>(reporter.updates.size());
          EXPECT_GT(made, 0);
          EXPECT_THAT(
              message,
              HasSubstr(
                  is_sharded
                      ? "; the updates made so far could not be saved: each "
                        "process has a share of the optimizer's state"
                      : absl::StrCat("; ", made, " update",
                                     made == 1 ? " is" : "s are", " saved in ",
                                     Seed(name), "/checkpoints/step-",
                                     absl::Dec(made, absl::kZeroPad8))));
        });
    EXPECT_TRUE(WIFSIGNALED(ends[1])) << ends[1];
    EXPECT_EQ(ends[0], 0);
    EXPECT_EQ(ends[2], 0);
  }
  victim_ = -1;
  json_["train"]["shard_optimizer"] = false;
  RunWith(3, "lost", /*resume=*/true);
  ExpectSameRun(Seed("lost"), Seed("straight"));
}

// All ranks then still gather their shards of the optimizer's state.
TEST_F(DistributedRunTest, SavesSharesBeforeABadRecord) {
  json_["train"]["evaluate_every"] = 0;
  json_["train"]["checkpoint_every"] = 0;
  json_["train"]["shard_optimizer"] = true;
  json_["data"]["bucket_batches"] = 1;
  RunWith(3, "straight", /*resume=*/false, /*stop_after=*/1);
  // A record that the first update does not need.
  bool is_late = false;
  for (int record = 0; record < 37 && !is_late; ++record) {
    SpoilRecord(record);
    const std::string name = absl::StrCat("bad-", record);
    json_["output"] = Output(name);
    CheckThree([&](const ProcessPlace& place, const FakeReporter& reporter,
                   const absl::Status& status) {
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      if (place.rank == 0 && !reporter.updates.empty()) {
        EXPECT_THAT(std::string(status.message()), HasSubstr(" saved in "));
      }
    });
    is_late = std::filesystem::exists(Seed(name) + "/checkpoints/last/");
    if (is_late) {
      const std::string state = "/checkpoints/last/training_state.safetensors";
      EXPECT_EQ(ReadAll(Seed(name) + state).size(),
                ReadAll(Seed("straight") + state).size());
    }
  }
  EXPECT_TRUE(is_late);
}

TEST_F(DistributedRunTest, RefusesProcessesWithOtherSettings) {
  json_["output"] = Output("other");
  ExpectProcesses(2, [&](const ProcessPlace& place) {
    if (place.rank == 1) {
      json_["train"]["learning_rate"] = 0.125;
    }
    FakeReporter reporter;
    const absl::Status status =
        RunRank(json_, place, &reporter, /*resume=*/false);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("train.learning_rate"));
  });
  EXPECT_FALSE(std::filesystem::exists(Seed("other") + "/metrics.jsonl"));
}

// Settings that decide which collective operations the ranks make: ranks that
// differ in them would wait for one another, so they are refused, also where a
// resumed run may change the setting.
TEST_F(DistributedRunTest, RefusesProcessesThatWouldDoSomethingElse) {
  using Json = nlohmann::json;
  const std::vector<std::pair<std::string, Json>> fields = {
      {"train.evaluate_every", 7},
      {"train.checkpoint_every", 5},
      {"train.evaluation_batch_size", 4},
      {"train.shard_optimizer", true},
      {"train.seeds", {1, 2}},
      {"train.backend", "nccl"},
      {"data.dev", Json::array()},
      {"model.hidden_size", 32},
      {"--resume", true}};
  for (const auto& [name, value] : fields) {
    SCOPED_TRACE(name);
    json_["output"] = Output("differ");
    ExpectProcesses(2, [&, &name = name,
                        &value = value](const ProcessPlace& place) {
      Json json = json_;
      const bool is_option = name.front() == '-';
      if (place.rank == 1 && !is_option) {
        const size_t dot = name.find('.');
        json[name.substr(0, dot)][name.substr(dot + 1)] = value;
      }
      FakeReporter reporter;
      const absl::Status status =
          RunRank(json, place, &reporter, is_option && place.rank == 1);
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      const std::string field = name == "model.hidden_size" ? "model" : name;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("but differ: " + field + " is "),
                        HasSubstr(" here and "), Not(HasSubstr("; "))));
    });
    EXPECT_FALSE(std::filesystem::exists(Output("differ")));
  }
}

// No run has begun that could go on with --allow-changes.
TEST_F(DistributedRunTest, RefusesProcessesWithOtherData) {
  const FakeSource source(1, {1});
  ExpectProcesses(2, [&](const ProcessPlace& place) {
    auto group = ProcessGroup::Join(place, absl::Seconds(kSecondsToHang));
    ASSERT_TRUE(group.ok()) << group.status();
    const nlohmann::json file = {{"path", absl::StrCat("at/", place.rank)},
                                 {"bytes", 120},
                                 {"digest", absl::StrCat("x:", place.rank)}};
    nlohmann::json moved = file;
    moved["digest"] = "x:0";
    RunPlan plan;
    plan.loader.batch_size = 2;
    plan.loader.micro_batch_size = 1;
    plan.settings["data"] = {{"train", nlohmann::json::array({file})},
                             {"dev", nlohmann::json::array({moved})}};
    const absl::Status status =
        CheckSameRun({.plan = plan,
                      .train = source,
                      .make_model = nullptr,
                      .directory = "",
                      .runs = {.context = {.group = group->get()}}});
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("but differ: data.train is at/1 (120 bytes, "
                        "x:1...) here and at/0 (120 bytes, x:0...) "
                        "there"),
              Not(HasSubstr("data.dev")), Not(HasSubstr("--allow-changes"))));
    EXPECT_TRUE((*group)->Agree(absl::OkStatus()).ok());
  });
}

TEST_F(DistributedRunTest, LetsProcessesDifferInWhatIsTheirOwn) {
  json_["output"] = Output("own");
  ExpectProcesses(2, [&](const ProcessPlace& place) {
    nlohmann::json json = json_;
    if (place.rank == 1) {
      json["train"]["threads"] = 2;
      json["train"]["timeout_s"] = 500;
      json["train"]["device"] = "cpu";
      json["data"]["workers"] = 2;
      json["data"]["cache_megabytes"] = 3;
      json["data"]["max_record_megabytes"] = 5;
      json["data"]["train"] = {
          temporary_.Write("elsewhere", ToyRecords(37, 1))};
      json["output"] = Output("nothing");
    }
    FakeReporter reporter;
    const absl::Status status =
        RunRank(json, place, &reporter, /*resume=*/false);
    EXPECT_TRUE(status.ok()) << status;
  });
  EXPECT_FALSE(std::filesystem::exists(Output("nothing")));
}

TEST_F(DistributedRunTest, LimitsPoolsByTheLeastMemoryOfAll) {
  const FakeSource source(1, {1});
  ExpectProcesses(3, [&](const ProcessPlace& place) {
    auto group = ProcessGroup::Join(place, absl::Seconds(kSecondsToHang));
    ASSERT_TRUE(group.ok()) << group.status();
    RunPlan plan;
    plan.loader.max_pool_bytes = place.rank == 1 ? 1000 : 5000 + place.rank;
    const auto options =
        RankLoaderOptions({.plan = plan,
                           .train = source,
                           .make_model = nullptr,
                           .directory = "",
                           .runs = {.context = {.group = group->get()}}});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->max_pool_bytes, 1000);
    EXPECT_TRUE((*group)->Agree(absl::OkStatus()).ok());
  });
}

TEST_F(DistributedRunTest, RefusesMoreProcessesThanMicroBatches) {
  json_["output"] = Output("many");
  json_["train"]["batch_size"] = 4;
  json_["train"]["micro_batch_size"] = 2;
  CheckThree([&](const ProcessPlace& /*place*/,
                 const FakeReporter& /*reporter*/, const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("fewer micro-batches (2) than there are processes "
                          "(3): train.micro_batch_size should be at most 1"));
  });
}

}  // namespace
}  // namespace etc
