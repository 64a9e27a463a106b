# Fill in a table with the method of the given file, then R's k-means with one start and with ten.
# Rscript _r.R <file that defines fill(X)> <folder> <columns> <clusters> <seed>
arguments <- commandArgs(TRUE)
folder <- arguments[2]
n_clusters <- as.integer(arguments[4])

at <- function(name) file.path(folder, name)
path <- at("table")
values <- readBin(path, "double", file.size(path) / 8, endian = "little")
X <- matrix(values, ncol = as.integer(arguments[3]), byrow = TRUE)
X[is.nan(X)] <- NA
colnames(X) <- paste0("V", seq_len(ncol(X)))

# The mean of several filled-in tables, entry by entry; what was observed stays as it is.
pool <- function(tables, X) {
  filled <- Reduce(`+`, lapply(tables, function(table) as.matrix(table)[, seq_len(ncol(X))])) / length(tables)
  filled[!is.na(X)] <- X[!is.na(X)]
  filled
}

# Seconds by the clock; beyond one, of the processor, so that other load does not count.
timed <- function(expression) {
  began <- proc.time()
  value <- force(expression)
  spent <- proc.time() - began
  elapsed <- spent[["elapsed"]]
  processor <- spent[["user.self"]] + spent[["sys.self"]]
  list(value = value, seconds = if (elapsed < 1) elapsed else min(elapsed, processor))
}

source(arguments[1])  # packages are loaded here, outside of what is timed
set.seed(as.integer(arguments[5]))
filling <- timed(fill(X))
filled <- filling$value
writeBin(as.vector(t(filled)), at("filled"), endian = "little")
if (anyNA(filled)) stop(sum(is.na(filled)), " gaps were left")

fits <- lapply(c(1, 10), function(n) timed(kmeans(filled, n_clusters, nstart = n)))
writeBin(unlist(lapply(fits, function(fit) as.integer(fit$value$cluster))), at("labels"), endian = "little")
writeBin(sapply(fits, function(fit) filling$seconds + fit$seconds), at("seconds"), endian = "little")
