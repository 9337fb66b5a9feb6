// `realetc fields`: fields of all configurations and of tasks, in each format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FieldsCommandTest : public RealetcTest {};

TEST_F(FieldsCommandTest, PrintsFieldsOfAllAndOfTasks) {
  const Result all = Run("fields");
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(
      all.out,
      AllOf(HasSubstr("train.shard_optimizer  (true or false; default "
                      "false)\n"),
            HasSubstr("model.num_hidden_layers  (whole number; default 12; "
                      "at least 1, at most 4096)\n"),
            HasSubstr("pretrain.mask_rate  ("),
            HasSubstr("squad.doc_stride  (whole number; default 128; "
                      "at least 1, at most 2147483647)\n"),
            HasSubstr("\"parent_leaf\" or \"parent_bold\", each once)\n")));
  const Result some = Run("fields 'wikihop.*hard*' --format markdown");
  ASSERT_EQ(some.code, 0) << some.err;
  EXPECT_EQ(Lines(some.out), 2);
  const Result paths = Run("fields cross_residual");
  EXPECT_EQ(paths.out,
            "model.cross_residual_attention of translation  (text; default "
            "residual_attention; \"off\" or \"sum\" or \"mean\" or \"decay\" "
            "or \"gate\")\n"
            "    residual scores of cross attention\n");
  const Result json = Run("fields train --format json");
  ASSERT_EQ(json.code, 0) << json.err;
  EXPECT_GT(nlohmann::json::parse(json.out).size(), 20u);

  const Result unknown = Run("fields train.shard_optimzer");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(
      unknown.err,
      HasSubstr("there is no field \"train.shard_optimzer\"; did you mean "
                "\"train.shard_optimizer\"?"));
  EXPECT_EQ(Run("fields --format yaml").code, 2);
}

}  // namespace
}  // namespace etc
