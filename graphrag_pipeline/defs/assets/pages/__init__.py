"""Pages of stages in the UI: counts, previews, plots and pictures of what a partition holds."""
