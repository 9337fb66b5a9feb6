#ifndef ETC_TESTS_SUPPORT_GZIP_MEMBER_H_
#define ETC_TESTS_SUPPORT_GZIP_MEMBER_H_

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace etc {

struct Packing {
  int level = 6;
  int strategy = Z_DEFAULT_STRATEGY;
  // 1: many small blocks.
  int memory_level = 8;
};

// One member of a gzip file. Several, one behind the other, are a file that
// holds the contents of all: a few kilobytes, repeated, unpack to any size.
inline std::string GzipMember(const std::string& contents,
                              const Packing& packing = {}) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, packing.level, Z_DEFLATED, 15 + 16,
                         packing.memory_level, packing.strategy),
            Z_OK);
  std::string packed(deflateBound(&stream, contents.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_GZIP_MEMBER_H_
