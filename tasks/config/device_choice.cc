#include "tasks/config/device_choice.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/counted.h"

namespace etc {
namespace {

// Describes the number of devices, and the reason if there are none.
std::string CountText(const CudaDevices& found) {
  if (!found.built) {
    return "this LibTorch was built without CUDA";
  }
  if (found.count == 0) {
    return "LibTorch finds no CUDA device";
  }
  return found.count == 1
             ? "there is one CUDA device"
             : absl::StrCat("there are ", Counted(found.count, "CUDA device"));
}

// Names all devices: "cpu, cuda:0".
std::string Names(const CudaDevices& found) {
  std::string names = "cpu";
  for (int64_t i = 0; i < found.count; ++i) {
    absl::StrAppend(&names, ", cuda:", i);
  }
  return names;
}

}  // namespace

absl::StatusOr<DeviceChoice> ParseDevice(const std::string& text) {
  using Kind = DeviceChoice::Kind;
  if (text == "auto") {
    return DeviceChoice{.kind = Kind::kAuto};
  }
  if (text == "cpu") {
    return DeviceChoice{.kind = Kind::kCpu};
  }
  if (text == "cuda") {
    return DeviceChoice{.kind = Kind::kCuda};
  }
  absl::string_view digits = text;
  int64_t index = 0;
  // SimpleAtoi skips white space and signs; LibTorch counts devices in 8 bits.
  if (absl::ConsumePrefix(&digits, "cuda:") &&
      std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
      absl::SimpleAtoi(digits, &index) &&
      index <= std::numeric_limits<int8_t>::max()) {
    return DeviceChoice{.kind = Kind::kCuda, .index = index};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("should be \"auto\", \"cpu\", \"cuda\" or, for the second "
                   "CUDA device, \"cuda:1\", but is \"",
                   text, "\""));
}

std::string ChosenDevice::name() const {
  return cuda.has_value() ? absl::StrCat("cuda:", *cuda) : "cpu";
}

absl::StatusOr<ChosenDevice> ChooseDevice(const std::string& field,
                                          const std::string& text,
                                          const CudaDevices& found) {
  const absl::StatusOr<DeviceChoice> choice = ParseDevice(text);
  if (!choice.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " ", choice.status().message()));
  }
  ChosenDevice chosen = {.reason = absl::StrCat(field, " is \"", text, "\"")};
  if (choice->kind == DeviceChoice::Kind::kCpu) {
    return chosen;
  }
  if (choice->kind == DeviceChoice::Kind::kAuto) {
    absl::StrAppend(&chosen.reason, ", and ", CountText(found));
    if (found.count == 0) {
      return chosen;
    }
  }
  chosen.cuda = choice->index.value_or(found.count == 1 ? 0 : found.local_rank);
  if (*chosen.cuda < found.count) {
    return chosen;
  }
  if (choice->index.has_value() || found.count == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(chosen.reason, ", but ", CountText(found),
                     "; what can be used here: ", Names(found)));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      field, " is \"", text, "\", which gives each process of this machine a ",
      "CUDA device of its own, but ", CountText(found),
      ", and this is process ", found.local_rank + 1,
      ": start as many as there are devices, or name one for all, \"cuda:0\""));
}

}  // namespace etc
