#include "tasks/pretrain/examples/joined_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace etc {
namespace {

// Records that say where they are from, and by which key.
class NamedSource : public ExampleSource {
 public:
  NamedSource(std::string name, int64_t size, bool depends_on_key)
      : name_(std::move(name)), size_(size), depends_on_key_(depends_on_key) {}

  int64_t size() const override { return size_; }
  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    if (request.record < 0 || request.record >= size_) {
      return absl::OutOfRangeError(name_);
    }
    auto example = std::make_shared<Example>();
    example->record_id =
        absl::StrCat(name_, " ", request.record, " ", request.key);
    return Examples{example};
  }
  bool depends_on_key() const override { return depends_on_key_; }

 private:
  const std::string name_;
  const int64_t size_;
  const bool depends_on_key_;
};

std::unique_ptr<ExampleSource> Named(const std::string& name, int64_t size,
                                     bool depends_on_key = false) {
  return std::make_unique<NamedSource>(name, size, depends_on_key);
}

TEST(JoinedSourceTest, HasTheRecordsOfAllInTheirOrder) {
  std::vector<std::unique_ptr<ExampleSource>> sources;
  sources.push_back(Named("a", 2));
  sources.push_back(Named("none", 0));
  sources.push_back(Named("b", 3));
  const JoinedSource joined(std::move(sources), {"first", "second", "third"});
  ASSERT_EQ(joined.size(), 5);
  EXPECT_FALSE(joined.depends_on_key());
  EXPECT_EQ(joined.descriptions().size(), 3u);
  const std::vector<std::string> expected = {"a 0 7", "a 1 7", "b 0 7", "b 1 7",
                                             "b 2 7"};
  for (int64_t record = 0; record < joined.size(); ++record) {
    const auto made = joined.Make({.record = record, .key = 7});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ((*made)[0]->record_id, expected[static_cast<size_t>(record)]);
  }
}

TEST(JoinedSourceTest, DependsOnTheKeyIfOneDoes) {
  std::vector<std::unique_ptr<ExampleSource>> sources;
  sources.push_back(Named("a", 1));
  sources.push_back(Named("b", 1, /*depends_on_key=*/true));
  EXPECT_TRUE(JoinedSource(std::move(sources), {}).depends_on_key());
  EXPECT_EQ(JoinedSource({}, {}).size(), 0);
}

}  // namespace
}  // namespace etc
