"""`python -m graphrag_pipeline` is the command line."""

from graphrag_pipeline.cli import main

main()
