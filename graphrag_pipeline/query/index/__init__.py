"""An opened index that answers questions: preparing a question, running the steps of its method, explaining picks."""
