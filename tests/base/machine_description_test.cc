#include "base/machine_description.h"

#include <gtest/gtest.h>

#include <string>

namespace etc {
namespace {

TEST(DescribeOpenBlasTest, SaysWhereItTakesACpuForOneWithoutAvx) {
  const std::string old =
      "OpenBLAS 0.3.21 DYNAMIC_ARCH USE_OPENMP Prescott MAX_THREADS=64";
  EXPECT_EQ(DescribeOpenBlas(old, CpuVectors::kAvx512),
            old +
                ": does not know this CPU and computes without AVX; set "
                "OPENBLAS_CORETYPE=SkylakeX");
  EXPECT_EQ(DescribeOpenBlas(old, CpuVectors::kAvx2),
            old +
                ": does not know this CPU and computes without AVX; set "
                "OPENBLAS_CORETYPE=Haswell");
  EXPECT_EQ(DescribeOpenBlas(old, CpuVectors::kNone), old);
}

TEST(DescribeOpenBlasTest, LeavesOtherCodeAsItIs) {
  const std::string known =
      "OpenBLAS 0.3.21 DYNAMIC_ARCH USE_OPENMP Cooperlake MAX_THREADS=64";
  EXPECT_EQ(DescribeOpenBlas(known, CpuVectors::kAvx512), known);
}

}  // namespace
}  // namespace etc
