"""Names, numbers and places that a question asks for, and sentences that say who a person is."""
