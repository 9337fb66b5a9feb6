// One OpenMP in the process, and one oneDNN in the scope of the other:
// LibTorch, its BLAS, oneDNN and our loops may each bring a library of OpenMP,
// and two of them would have two sets of threads, of which one does not know
// what the other was told. Counts what is mapped once all of them have
// computed.
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <torch/types.h>

#include <filesystem>
#include <set>
#include <string>

#include "base/matrix_product.h"
#include "base/onednn_loader.h"
#include "base/parallel_tasks.h"

namespace etc {
namespace {

// The files mapped whose name begins with one of `beginnings`.
std::set<std::string> Mapped(const std::set<std::string>& beginnings) {
  struct Search {
    const std::set<std::string>& names;
    std::set<std::string> found;
  } search = {.names = beginnings, .found = {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& [names, found] = *static_cast<Search*>(data);
        const std::filesystem::path file(info->dlpi_name);
        for (const std::string& name : names) {
          if (file.filename().string().starts_with(name)) {
            found.insert(std::filesystem::canonical(file).string());
          }
        }
        return 0;
      },
      &search);
  return search.found;
}

class OneRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(2);
    ForEachTask(4, 0, [](int64_t, float*) {});
    const torch::Tensor a = torch::ones({64, 64});
    ASSERT_TRUE(MatrixProduct(a, a).equal(torch::matmul(a, a)));
  }
};

TEST_F(OneRuntimeTest, HasOneOpenMp) {
#ifdef __clang__
  GTEST_SKIP() << "clang's code calls its own libomp beside LibTorch's libgomp";
#endif
  EXPECT_THAT(Mapped({"libgomp", "libomp", "libiomp"}), testing::SizeIs(1));
}

// Our products are those of the library that the module names, whatever else
// LibTorch has inside.
TEST_F(OneRuntimeTest, HasOneLibraryOfOnednn) {
  const std::string file =
      std::filesystem::canonical((*LoadedOnednn())->library_file()).string();
  EXPECT_THAT(Mapped({"libdnnl.so", "libmkldnn"}), testing::ElementsAre(file));
}

}  // namespace
}  // namespace etc
