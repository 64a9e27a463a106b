"""Where tables are: files, folders, object stores and lakes, by the names that users give them."""
