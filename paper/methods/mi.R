# mi pools analyses, not tables: the mean of its four chains'. Serial, as in the paper.
suppressMessages(library(mi))

fill <- function(X) {
  result <- mi(missing_data.frame(as.data.frame(X)), verbose = FALSE, parallel = FALSE)
  pool(mi::complete(result), X)
}
