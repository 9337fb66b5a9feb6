#include "tasks/distributed/process_group.h"

#include <signal.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tasks/distributed/listen_address.h"
#include "tasks/distributed/missing_process.h"
#include "tasks/distributed/nccl_sums.h"
#include "tasks/distributed/tensor_bytes.h"

#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif

namespace etc {

void IgnoreBrokenPipes() {
  struct sigaction action = {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 &&
      action.sa_handler == SIG_DFL) {
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, nullptr);
  }
}

namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds Milliseconds(absl::Duration duration) {
  return std::chrono::milliseconds(absl::ToInt64Milliseconds(duration));
}

// The first line, without LibTorch's internals.
std::string FirstLine(const std::string& text) {
  return std::vector<std::string>(absl::StrSplit(text, '\n')).front();
}

}  // namespace

struct ProcessGroup::Backend {
  struct Bucket {
    std::vector<torch::Tensor> parts;  // flat views of the tensors
    std::vector<torch::Tensor> sum;    // one tensor
    std::function<void()> wait;        // for the end of the sum
  };

  // Begins to sum `bucket->sum`, if it is where this can be done; else a copy.
  void Begin(Bucket* bucket);

  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
  std::unique_ptr<NcclSums> nccl;  // null: there is none
  std::deque<Bucket> underway;
};

void ProcessGroup::Backend::Begin(Bucket* bucket) {
  torch::Tensor& sum = bucket->sum.front();
  if (nccl != nullptr && sum.is_cuda()) {
    bucket->wait = nccl->Begin(sum);
    return;
  }
  sum = sum.cpu();
  bucket->wait = [work = gloo->allreduce(bucket->sum)] { work->wait(); };
}

// Adds the time that it lives to that in which the others were waited for.
class ProcessGroup::Waiting {
 public:
  explicit Waiting(ProcessGroup* group) : group_(group), begin_(Clock::now()) {}
  ~Waiting() {
    group_->seconds_waited_ +=
        std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  ProcessGroup* const group_;
  const Clock::time_point begin_;
};

ProcessGroup::ProcessGroup(const ProcessPlace& place, absl::Duration timeout)
    : place_(place), timeout_(timeout), backend_(std::make_unique<Backend>()) {}

ProcessGroup::~ProcessGroup() = default;

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Join(
    const ProcessPlace& place, absl::Duration timeout) {
  // The constructor is private: make_unique cannot see it.
  std::unique_ptr<ProcessGroup> group(new ProcessGroup(place, timeout));
  IgnoreBrokenPipes();
  const Waiting waiting(group.get());
  ETC_RETURN_IF_ERROR(group->Connect());
  return group;
}

absl::Status ProcessGroup::Connect() {
  const std::string meeting =
      absl::StrCat(place_.master_address, ":", place_.master_port);
  const std::string address = NumericAddress(place_.master_address);
  if (address.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "the address of process 0, \"", place_.master_address,
        "\" (MASTER_ADDR), is no address and no host that is known here"));
  }
  const std::string own = AddressTowards(address);
  if (own.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "process ", place_.rank, " of ", place_.world_size,
        ": there is no way to process 0 at ", meeting, " (MASTER_ADDR)"));
  }
  if (is_first() && own != address && !IsOwnAddress(address)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "process 0 should be on the machine that has the address ",
        place_.master_address, " (MASTER_ADDR), but this one has not"));
  }
  // Debian gives a machine's own name an address of the loopback.
  if (IsLoopback(address) && place_.has_other_machines) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MASTER_ADDR should be an address that all machines reach, for ",
        place_.world_size, " processes on several of them; but \"",
        place_.master_address, "\" is ", address, " here, the loopback"));
  }
  ETC_RETURN_IF_ERROR(OpenStore(address));
  return ConnectToAll(own);
}

// Leaves time to name the missing rank within the timeout.
std::chrono::milliseconds ProcessGroup::LongestWait() const {
  return Milliseconds(
      std::max(timeout_ - absl::FromChrono(3 * kPatience), 0.5 * timeout_));
}

absl::Status ProcessGroup::OpenStore(const std::string& address) {
  const std::string meeting =
      absl::StrCat(place_.master_address, ":", place_.master_port);
  try {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(place_.master_port);
    options.isServer = is_first();
    // AwaitAll does, and says who has not come.
    options.waitWorkers = false;
    options.timeout = LongestWait();
    const ListenAddress listen(address);
    auto store = c10::make_intrusive<c10d::TCPStore>(address, options);
    store->setTimeout(LongestWait());
    backend_->store = c10::make_intrusive<c10d::PrefixStore>(
        absl::StrCat("realetc/", place_.restart), std::move(store));
  } catch (const std::exception& error) {
    if (absl::StrContains(error.what(), "failed to listen")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "process 0 cannot listen at ", meeting,
          " (MASTER_ADDR, MASTER_PORT): is the port taken by another run? ",
          FirstLine(error.what())));
    }
    return absl::UnavailableError(
        absl::StrCat("process ", place_.rank, " of ", place_.world_size,
                     " waited for process 0 at ", meeting,
                     " (MASTER_ADDR, MASTER_PORT) for ",
                     absl::FormatDuration(absl::FromChrono(LongestWait())),
                     " in vain: ", FirstLine(error.what())));
  }
  return absl::OkStatus();
}

absl::Status ProcessGroup::ConnectToAll(const std::string& own) {
  try {
    Introduce(place_, *backend_->store);
    if (!AwaitAll(place_, Clock::now() + LongestWait(), *backend_->store)) {
      return ShutDown("all should come to the address of process 0");
    }
    auto options = c10d::ProcessGroupGloo::Options::create(LongestWait());
    options->devices.push_back(
        c10d::ProcessGroupGloo::createDeviceForHostname(own));
    backend_->gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>("gloo", backend_->store),
        static_cast<int>(place_.rank), static_cast<int>(place_.world_size),
        std::move(options));
  } catch (const std::exception& error) {
    return ShutDown(error.what());
  }
  return absl::OkStatus();
}

absl::Status ProcessGroup::UseNccl() {
  if (backend_->nccl != nullptr) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(backend_->nccl,
                       MakeNcclSums(place_,
                                    c10::make_intrusive<c10d::PrefixStore>(
                                        "nccl", backend_->store),
                                    LongestWait()));
  return absl::OkStatus();
}

void ProcessGroup::FinishBucket() {
  Backend::Bucket& bucket = backend_->underway.front();
  const Waiting waiting(this);
  bucket.wait();
  int64_t begin = 0;
  for (torch::Tensor& part : bucket.parts) {
    part.copy_(bucket.sum.front().narrow(0, begin, part.numel()));
    begin += part.numel();
  }
  backend_->underway.pop_front();
}

void ProcessGroup::BeginSum(const std::vector<torch::Tensor>& tensors) {
  constexpr size_t kUnderway = 4;
  const torch::NoGradGuard no_grad;
  if (!missing_.ok() || !sum_error_.empty() || tensors.empty()) {
    return;
  }
  try {
    while (backend_->underway.size() >= kUnderway) {
      FinishBucket();
    }
    Backend::Bucket bucket;
    for (const torch::Tensor& tensor : tensors) {
      TORCH_CHECK(tensor.is_contiguous(), "tensors to sum are contiguous");
      bucket.parts.push_back(tensor.detach().view({-1}));
    }
    bucket.sum = {torch::cat(bucket.parts)};
    bytes_summed_ += static_cast<int64_t>(bucket.sum.front().nbytes());
    backend_->Begin(&bucket);
    backend_->underway.push_back(std::move(bucket));
  } catch (const std::exception& error) {
    sum_error_ = error.what();
  }
}

absl::Status ProcessGroup::FinishSums() {
  ETC_RETURN_IF_ERROR(missing_);
  const torch::NoGradGuard no_grad;
  try {
    while (!backend_->underway.empty() && sum_error_.empty()) {
      FinishBucket();
    }
  } catch (const std::exception& error) {
    sum_error_ = error.what();
  }
  if (sum_error_.empty()) {
    return absl::OkStatus();
  }
  return ShutDown(sum_error_);
}

absl::Status ProcessGroup::Sum(const std::vector<torch::Tensor>& tensors) {
  for (const std::vector<torch::Tensor>& bucket : BucketsOf(tensors)) {
    BeginSum(bucket);
  }
  return FinishSums();
}

absl::Status ProcessGroup::Broadcast(const std::vector<torch::Tensor>& tensors,
                                     int64_t root) {
  ETC_RETURN_IF_ERROR(missing_);
  const torch::NoGradGuard no_grad;
  const Waiting waiting(this);
  c10d::BroadcastOptions options;
  options.rootRank = root;
  try {
    for (const torch::Tensor& tensor : tensors) {
      std::vector<torch::Tensor> sent = {
          tensor.detach().to(torch::kCPU).contiguous()};
      backend_->gloo->broadcast(sent, options)->wait();
      if (rank() != root) {
        tensor.detach().copy_(sent.front());
      }
    }
  } catch (const std::exception& error) {
    return ShutDown(error.what());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ProcessGroup::Gather(
    const std::string& bytes) {
  ETC_RETURN_IF_ERROR(missing_);
  const Waiting waiting(this);
  const auto count = static_cast<size_t>(size());
  // Padded to the longest: lengths are all-gathered first.
  const auto exchange = [&](const torch::Tensor& mine) {
    std::vector<std::vector<torch::Tensor>> all(1);
    for (size_t i = 0; i < count; ++i) {
      all.front().push_back(torch::empty_like(mine));
    }
    std::vector<torch::Tensor> own = {mine};
    backend_->gloo->allgather(all, own)->wait();
    return all.front();
  };
  try {
    std::vector<int64_t> lengths;
    for (const torch::Tensor& length : exchange(torch::full(
             {1}, static_cast<int64_t>(bytes.size()), torch::kInt64))) {
      lengths.push_back(length.item<int64_t>());
    }
    const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    std::vector<std::string> result(count);
    if (longest == 0) {
      return result;
    }
    torch::Tensor mine = torch::zeros({longest}, torch::kUInt8);
    std::memcpy(mine.data_ptr(), bytes.data(), bytes.size());
    const std::vector<torch::Tensor> all = exchange(mine);
    for (size_t i = 0; i < count; ++i) {
      result[i].assign(static_cast<const char*>(all[i].data_ptr()),
                       static_cast<size_t>(lengths[i]));
    }
    return result;
  } catch (const std::exception& error) {
    return ShutDown(error.what());
  }
}

absl::Status ProcessGroup::Agree(const absl::Status& mine) {
  return DataGroupOf(this).Agree(mine);
}

absl::StatusOr<bool> ProcessGroup::AgreeToGoOn(const absl::Status& mine,
                                               bool go_on) {
  return DataGroupOf(this).AgreeToGoOn(mine, go_on);
}

void ProcessGroup::Leave(const absl::Status& why) {
  if (why.ok() || backend_->store == nullptr) {
    return;
  }
  try {
    ReportLeaving(place_, std::string(why.message()), *backend_->store);
  } catch (const std::exception&) {
    // They will say that this one is missing.
    return;
  }
}

// A rank that notices closes its connections, so that those that wait for it
// notice, too. The store of rank 0 may not answer, and c10d would wait for it
// for ever: it is asked by another thread.
absl::Status ProcessGroup::ShutDown(const std::string& error) {
  backend_->underway.clear();
  backend_->nccl.reset();
  backend_->gloo.reset();
  auto answer = std::make_shared<std::promise<std::string>>();
  std::future<std::string> found = answer->get_future();
  std::thread([answer, place = place_, store = backend_->store,
               line = FirstLine(error)] {
    answer->set_value(NameMissing(place, *store, line));
  }).detach();
  const bool answered =
      found.wait_for(3 * kPatience) == std::future_status::ready;
  if (!answered) {
    // Leaked: the thread that asks still uses it.
    static_cast<void>(backend_->store.release());
  }
  missing_ = absl::UnavailableError(
      absl::StrCat("process ", place_.rank, " of ", size(), ": ",
                   answered ? found.get() : NoStore(place_)));
  return missing_;
}

DataGroup DataGroupOf(ProcessGroup* group) {
  if (group == nullptr) {
    return {};
  }
  return {.rank = group->rank(),
          .size = group->size(),
          .gather = [group](const std::string& bytes) {
            return group->Gather(bytes);
          }};
}

absl::Status OnRankZero(ProcessGroup* group,
                        const std::function<absl::Status()>& action) {
  if (group == nullptr) {
    return action();
  }
  return group->Agree(group->is_first() ? action() : absl::OkStatus());
}

absl::StatusOr<bool> GoesOn(ProcessGroup* group, const absl::Status& status) {
  const bool goes_on = !absl::IsCancelled(status);
  const absl::Status error = goes_on ? status : absl::OkStatus();
  if (group != nullptr) {
    return group->AgreeToGoOn(error, goes_on);
  }
  ETC_RETURN_IF_ERROR(error);
  return goes_on;
}

}  // namespace etc
