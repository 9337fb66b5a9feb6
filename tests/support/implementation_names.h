#ifndef ETC_TESTS_SUPPORT_IMPLEMENTATION_NAMES_H_
#define ETC_TESTS_SUPPORT_IMPLEMENTATION_NAMES_H_

#include <gtest/gtest.h>

#include <string>

#include "attention/sparse_attention.h"

namespace etc {

// The name of a test that is run for several backends.
inline std::string ImplementationName(
    const testing::TestParamInfo<AttentionImplementation>& info) {
  switch (info.param) {
    case AttentionImplementation::kReference:
      return "reference";
    case AttentionImplementation::kBlocked:
      return "blocked";
    case AttentionImplementation::kKernel:
      return "kernel";
    case AttentionImplementation::kAuto:
      break;
  }
  return "auto";
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_IMPLEMENTATION_NAMES_H_
