# Turns a header of this project into one that Doxygen reads: comments before
# declarations and behind members become its own (`///`, `///<`).
#
#   awk -f doxygen_filter.awk HEADER
#
# Lines that are indented inside a comment (formulas, tables of shapes) keep their
# layout. TORCH_MODULE(Name) becomes the class that it declares. The comment that
# realetc.h begins with is the main page. All that stands before blank lines or `}`
# stays as it is.

# The text of a comment, with Doxygen's marks escaped outside of `code`.
function escaped(text,    out, i, c) {
  out = ""
  for (i = 1; i <= length(text); ++i) {
    c = substr(text, i, 1)
    if (c == "`") in_code = !in_code
    if (!in_code && index("\\@<>&#%*", c)) out = out "\\"
    out = out c
  }
  return out
}

# Prints the comment in lines[1..count] in Doxygen's form.
function document(    i, text, is_layout) {
  in_code = 0
  is_layout = 0
  for (i = 1; i <= count; ++i) {
    text = lines[i]
    if (!is_layout && text ~ /^   /) { print "/// @verbatim"; is_layout = 1 }
    if (is_layout && text !~ /^   / && text != "") {
      print "/// @endverbatim"
      is_layout = 0
    }
    print "///" (is_layout ? text : escaped(text))
  }
  if (is_layout) print "/// @endverbatim"
  count = 0
}

# Prints it as it is.
function keep(    i) {
  for (i = 1; i <= count; ++i) print "//" lines[i]
  count = 0
}

# A line that is a comment alone; below one behind a member it goes on.
/^[ \t]*\/\// {
  text = $0
  sub(/^[ \t]*\/\//, "", text)
  if (match($0, /\/\//) == column) {
    print "///<" escaped(text)
  } else {
    lines[++count] = text
  }
  next
}

{ column = 0 }

/^TORCH_MODULE\(/ {
  name = $0
  gsub(/^TORCH_MODULE\(|\).*$/, "", name)
  print "/// Holds a " name "Impl by a shared pointer, as LibTorch's modules are."
  print "class " name " : public torch::nn::ModuleHolder<" name "Impl> {};"
  next
}

/^$/ && count && FILENAME ~ /(^|\/)realetc\.h$/ {
  print "/// @mainpage"
  document()
}

/^[ \t]*$|^#|^[ \t]*(public|private|protected):|^[ \t]*}|^[ \t]*namespace/ {
  keep()
  print
  next
}

# A declaration, or a line of one.
{
  document()
  line = $0
  if (match(line, /[;,{(] +\/\/ /)) {
    in_code = 0
    column = RSTART + RLENGTH - 3
    text = escaped(substr(line, RSTART + RLENGTH - 1))
    line = substr(line, 1, column - 1) "///<" text
  }
  print line
}
