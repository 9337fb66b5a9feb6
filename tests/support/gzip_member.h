#ifndef ETC_TESTS_SUPPORT_GZIP_MEMBER_H_
#define ETC_TESTS_SUPPORT_GZIP_MEMBER_H_

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace etc {

// One member of a gzip file. Several, one behind the other, are a file that
// holds the contents of all: a few kilobytes, repeated, unpack to any size.
inline std::string GzipMember(const std::string& contents) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, /*level=*/6, Z_DEFLATED, 15 + 16,
                         /*memLevel=*/8, Z_DEFAULT_STRATEGY),
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
