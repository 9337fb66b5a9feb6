// WriteDocumentPage on the demo of wikihop after one update: the numbers on the
// page are those of Inspection on the same model and record, the layers and
// heads are those asked for, and each mistake is one message, with nothing
// written. Tolerance: half a unit of a probability and rounding of float32.

#include "tasks/analysis/document_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tasks/analysis/document_attention.h"
#include "tasks/data/batch.h"
#include "tasks/runs/checkpoint_run.h"
#include "tasks/runs/task_setup.h"
#include "tasks/train/open_data.h"
#include "tests/support/demo_predictor.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class DocumentPageTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory();
    checkpoint_ = DemoCheckpoint("wikihop", directory_->File("run"));
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }

  DocumentPageOptions Options(const std::string& output) const {
    return {.checkpoint = checkpoint_,
            .data = SourcePath("tasks/wikihop/sample/dev.json"),
            .record = 3,
            .output = directory_->File(output),
            .device = "cpu"};
  }

  static json DataOfPage(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream html;
    html << stream.rdbuf();
    const std::string open = "id=\"data\">";
    const std::string text = html.str();
    const size_t begin = text.find(open) + open.size();
    return json::parse(
        text.substr(begin, text.find("</script>", begin) - begin), nullptr,
        /*allow_exceptions=*/false);
  }

  // The page must not be made, for this reason.
  static void ExpectError(const DocumentPageOptions& options,
                          absl::StatusCode code,
                          const std::vector<std::string>& parts) {
    const auto page = WriteDocumentPage(options);
    ASSERT_FALSE(page.ok());
    EXPECT_EQ(page.status().code(), code) << page.status();
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(page.status().message()), HasSubstr(part));
    }
  }

  static TemporaryDirectory* directory_;
  static std::string checkpoint_;
};

TemporaryDirectory* DocumentPageTest::directory_ = nullptr;
std::string DocumentPageTest::checkpoint_;

// All layers and heads of a record by another way: one pass that keeps all.
FourBlocks ProbabilitiesOf(const std::string& checkpoint,
                           const DocumentPageOptions& options, int64_t layer) {
  const auto opened =
      OpenCheckpoint({.checkpoint = checkpoint, .device = "cpu"});
  const auto records =
      OpenRecords(*opened->setup.task, {.patterns = {options.data}});
  const auto examples = (*records)->Make(RequestForEvaluation(options.record));
  auto model = LoadModelOfRun(*opened, RunContext());
  const EvaluationMode evaluation(&*model);
  Batch batch = MakeBatch({examples->front()});
  batch.input.inspect = {.probabilities_of = {layer}};
  EtcModel encoder = model->encoder();
  return encoder(batch.input).inspected.layers.at(layer).probabilities;
}

TEST_F(DocumentPageTest, HasTheProbabilitiesOfTheModel) {
  DocumentPageOptions options = Options("page.html");
  options.layers = {1};
  options.heads = {5, 2, 5};
  const auto page = WriteDocumentPage(options);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->layers, ElementsAre(1));
  EXPECT_THAT(page->heads, ElementsAre(2, 5));
  EXPECT_EQ(static_cast<uintmax_t>(page->bytes),
            std::filesystem::file_size(options.output));
  const json data = DataOfPage(options.output);
  ASSERT_TRUE(data.is_object());
  const DocumentSize size = {.globals = data["globals"].get<int64_t>(),
                             .longs = data["longs"].get<int64_t>(),
                             .local_radius = 8};
  EXPECT_EQ(data["tokens"].size(), static_cast<size_t>(size.tokens()));
  EXPECT_GT(size.globals, 10);
  EXPECT_GT(size.longs, 40);
  const FourBlocks expected = ProbabilitiesOf(checkpoint_, options, 1);
  const int64_t most = data["most"].get<int64_t>();
  EXPECT_EQ(most, 16);
  for (const size_t head : {0, 1}) {
    std::string packed;
    ASSERT_TRUE(absl::Base64Unescape(data["rows"][0][head].get<std::string>(),
                                     &packed));
    EXPECT_EQ(packed,
              Pack(FindLargest(expected, head == 0 ? 2 : 5, size, most), size));
  }
}

TEST_F(DocumentPageTest, SaysHowManyLayersHaveRunAndStopsAtOne) {
  DocumentPageOptions options = Options("stopped.html");
  std::atomic<bool> stop = false;
  options.callbacks.stop = &stop;
  std::vector<int64_t> heard;
  options.progress = [&](int64_t done, int64_t all) {
    EXPECT_EQ(all, 2);  // the layers of the model, in one pass
    heard.push_back(done);
  };
  EXPECT_TRUE(WriteDocumentPage(options).ok());
  EXPECT_THAT(heard, ElementsAre(0, 1, 2));
  options.output = directory_->File("none.html");
  heard.clear();
  options.progress = [&](int64_t done, int64_t /*all*/) {
    heard.push_back(done);
    stop = true;
  };
  ExpectError(options, absl::StatusCode::kCancelled,
              {"stopped; no file was written"});
  EXPECT_THAT(heard, ElementsAre(0));
  heard.clear();
  ExpectError(options, absl::StatusCode::kCancelled,
              {"the reading of the data was stopped"});
  EXPECT_THAT(heard, ElementsAre());
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

TEST_F(DocumentPageTest, HasAllLayersAndHeadsOfAShortRecord) {
  DocumentPageOptions options = Options("all.html");
  std::string message;
  options.callbacks.message = [&](const std::string& text) {
    EXPECT_FALSE(std::filesystem::exists(options.output));
    message = text;
  };
  const auto page = WriteDocumentPage(options);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(message,
              HasSubstr(absl::StrFormat(
                  " tokens: 2 layers and 8 heads, about %.1f MB; --layers",
                  1e-6 * static_cast<double>(page->bytes))));
  EXPECT_THAT(page->layers, ElementsAre(0, 1));
  EXPECT_THAT(page->heads, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_LT(page->bytes, 500'000);
}

TEST_F(DocumentPageTest, SaysWhichCheckpointOfARunAndWhichDevice) {
  DocumentPageOptions options = Options("run.html");
  options.checkpoint = directory_->File("run");
  options.heads = {0};
  std::vector<std::string> messages;
  options.callbacks.message = [&](const std::string& text) {
    messages.push_back(text);
  };
  const auto page = WriteDocumentPage(options);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(messages,
              ElementsAre(HasSubstr("checkpoint: " + directory_->File("run") +
                                    "/seed-1/checkpoints/"),
                          "device: cpu (--device is \"cpu\")",
                          HasSubstr(" tokens: 2 layers and 1 head")));
}

TEST_F(DocumentPageTest, RefusesWhatIsNotThere) {
  const auto with = [&](auto change) {
    DocumentPageOptions options = Options("mistake.html");
    change(&options);
    return options;
  };
  ExpectError(with([](auto* o) { o->record = 100000; }),
              absl::StatusCode::kOutOfRange,
              {"dev.json", "record 100000 should be in [0, "});
  ExpectError(with([](auto* o) { o->record = -1; }),
              absl::StatusCode::kOutOfRange, {"record -1"});
  ExpectError(with([](auto* o) { o->example = 1; }),
              absl::StatusCode::kOutOfRange,
              {"dev.json: record 3: example 1 should be in [0, 1)"});
  ExpectError(with([](auto* o) {
                o->layers = {0, 2};
              }),
              absl::StatusCode::kOutOfRange,
              {checkpoint_, "layer 2 should be in [0, 2)"});
  ExpectError(with([](auto* o) { o->heads = {8}; }),
              absl::StatusCode::kOutOfRange,
              {checkpoint_, "head 8 should be in [0, 8)"});
  ExpectError(with([](auto* o) { o->data = "/nowhere.json"; }),
              absl::StatusCode::kNotFound, {"/nowhere.json"});
  ExpectError(with([](auto* o) { o->checkpoint = "/nowhere"; }),
              absl::StatusCode::kNotFound, {"/nowhere"});
  const std::string empty = directory_->Write("empty.json", "[]");
  ExpectError(with([&](auto* o) { o->data = empty; }),
              absl::StatusCode::kInvalidArgument, {empty, "record"});
  EXPECT_FALSE(std::filesystem::exists(directory_->File("mistake.html")));
}

TEST_F(DocumentPageTest, ReplacesAFileOnlyIfAsked) {
  DocumentPageOptions options = Options("dear.html");
  options.heads = {0};
  directory_->Write("dear.html", "dear");
  ExpectError(options, absl::StatusCode::kAlreadyExists,
              {options.output, "--overwrite"});
  EXPECT_EQ(std::filesystem::file_size(options.output), 4u);
  options.overwrite = true;
  const auto page = WriteDocumentPage(options);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_GT(std::filesystem::file_size(options.output), 1000u);
}

}  // namespace
}  // namespace etc
