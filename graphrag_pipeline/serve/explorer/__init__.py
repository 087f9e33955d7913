"""The explorer's files over HTTP, with the headers that keep text of documents from becoming code."""
