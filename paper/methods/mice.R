# mice pools analyses, not tables: the mean of its five.
suppressMessages(library(mice))

fill <- function(X) {
  result <- mice(as.data.frame(X), printFlag = FALSE)
  pool(lapply(seq_len(result$m), function(i) mice::complete(result, i)), X)
}
