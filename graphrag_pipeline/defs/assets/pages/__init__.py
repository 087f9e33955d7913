"""Pages of stages in the UI: counts, previews and plots of what a partition holds."""
