#include "base/out_of_memory.h"

#include <new>
#include <stdexcept>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace etc {

bool IsOutOfMemory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr) {
    return true;
  }
  // This layer is without LibTorch. Its c10::Error has no type of its own for
  // the CPU's allocator, which says "DefaultCPUAllocator: can't allocate
  // memory"; that of a GPU says "CUDA out of memory".
  const absl::string_view message = error.what();
  return absl::StrContains(message, "can't allocate memory") ||
         absl::StrContains(message, "not enough memory") ||
         absl::StrContains(message, "out of memory") ||
         // cuBLAS and cuDNN report a lack of room for their own workspaces so.
         absl::StrContains(message, "_STATUS_ALLOC_FAILED");
}

bool IsOutOfMemory(const absl::Status& status) {
  return absl::IsResourceExhausted(status) &&
         absl::StrContains(status.message(), kOutOfMemory);
}

std::string MemoryAskedFor(const std::exception& error) {
  // "you tried to allocate 4000 bytes. Error code 12", "CUDA out of memory.
  // Tried to allocate 2.00 GiB (GPU 0; ..."
  constexpr absl::string_view kBefore = "ried to allocate ";
  const absl::string_view message = error.what();
  const size_t found = message.find(kBefore);
  if (found == absl::string_view::npos) {
    return "";
  }
  const absl::string_view text = message.substr(found + kBefore.size());
  const size_t number_end = text.find(' ');
  if (number_end == absl::string_view::npos) {
    return "";
  }
  const absl::string_view number = text.substr(0, number_end);
  const absl::string_view behind = text.substr(number_end + 1);
  size_t unit_length = 0;
  while (unit_length < behind.size() &&
         absl::ascii_isalpha(static_cast<unsigned char>(behind[unit_length]))) {
    ++unit_length;
  }
  const absl::string_view unit = behind.substr(0, unit_length);
  double bytes = 0;
  if (unit == "bytes" && absl::SimpleAtod(number, &bytes)) {
    constexpr double kLeastTold = 1e5;  // less would be "0.0 MB"
    return bytes < kLeastTold ? ""
           : bytes < 1e8      ? absl::StrFormat("%.1f MB", 1e-6 * bytes)
                              : absl::StrFormat("%.1f GB", 1e-9 * bytes);
  }
  return absl::StrCat(number, " ", unit);
}

}  // namespace etc
