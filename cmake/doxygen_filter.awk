# Turns a header of this project into one that Doxygen reads: comments before
# declarations and behind members become its own (`/**`, `///<`).
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
  gsub(/et al\. /, "et al.\\ ", out)  # does not end the brief description
  return out
}

# Tells whether line i of the comment keeps its layout: it is indented, or blank
# between two that are.
function is_layout(i,    above, below) {
  if (lines[i] != "") return lines[i] ~ /^   /
  for (above = i; above > 1 && lines[above] == "";) --above
  for (below = i; below < count && lines[below] == "";) ++below
  return lines[above] ~ /^   / && lines[below] ~ /^   /
}

# Prints the comment in lines[1..count] in Doxygen's form, on as many lines: as a
# block, since verbatim lines would show the marks of the others.
function document(start,    i, text) {
  in_code = 0
  for (i = 1; i <= count; ++i) {
    text = lines[i]
    sub(/^ /, "", text)
    gsub(/\*\//, "* /", text)
    if (is_layout(i)) {
      if (i == 1) text = "@verbatim" text
      if (i == count || !is_layout(i + 1)) text = text " @endverbatim"
    } else {
      text = escaped(text)
      if (i < count && is_layout(i + 1)) text = text (text == "" ? "" : " ") "@verbatim"
    }
    print (i == 1 ? start " " : "") text (i == count ? " */" : "")
  }
  count = 0
}

# Prints it as it is.
function keep(    i) {
  for (i = 1; i <= count; ++i) print "//" lines[i]
  count = 0
}

# Marks for clang-tidy are not for readers.
{ sub(/ *\/\/ NOLINT.*$/, "") }

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
  printf "%s", "/** Holds a " name "Impl by a shared pointer, as LibTorch does. */ "
  print "class " name " : public torch::nn::ModuleHolder<" name "Impl> {};"
  next
}

/^$/ && count && FILENAME ~ /(^|\/)realetc\.h$/ {
  document("/** @mainpage RealETC\n\n")
}

/^[ \t]*$|^#|^[ \t]*(public|private|protected):|^[ \t]*}|^[ \t]*namespace/ {
  keep()
  print
  next
}

# A declaration, or a line of one.
{
  document("/**")
  line = $0
  if (match(line, /[;,{(] +\/\/ /)) {
    in_code = 0
    column = RSTART + RLENGTH - 3
    text = escaped(substr(line, RSTART + RLENGTH - 1))
    line = substr(line, 1, column - 1) "///<" text
  }
  print line
}
