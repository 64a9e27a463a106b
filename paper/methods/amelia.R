# Amelia has no function that pools tables: the mean of its five.
suppressMessages(library(Amelia))

fill <- function(X) {
  result <- amelia(X, p2s = 0)
  if (!(result$code %in% 1)) stop("Amelia: ", result$message)
  pool(result$imputations, X)
}
