// A run of two processes, forked from this one, which has no threads, against a
// run of one: the same updates but for the order in which gradients are summed,
// hence the tolerance of 1e-4 on losses of about 3.

#include <gtest/gtest.h>

#include "absl/time/time.h"
#include "tests/tasks/distributed/forked_processes.h"
#include "tests/tasks/translation/training_fixture.h"

namespace etc {
namespace {

using TranslationProcessesTest = TranslationTrainingTest;

// Two processes: micro-batches are dealt, and their gradients summed.
TEST_F(TranslationProcessesTest, TrainsAsOneProcessDoes) {
  json_["translation"]["admin_omegas"] = "closed_form";
  RunProcesses(1, [&](const ProcessPlace&) { Train("one"); });
  RunProcesses(2, [&](const ProcessPlace& place) {
    const auto group = ProcessGroup::Join(place, absl::Seconds(60));
    ASSERT_TRUE(group.ok()) << group.status();
    Train("two", -1, false, group->get());
  });
  const auto one = MetricsLines(Seed("one"));
  const auto two = MetricsLines(Seed("two"));
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) {
    if (one[i].contains("loss")) {
      EXPECT_NEAR(two[i]["loss"].get<double>(), one[i]["loss"].get<double>(),
                  1e-4);
      EXPECT_EQ(two[i]["tokens"], one[i]["tokens"]);
    }
  }
}

}  // namespace
}  // namespace etc
