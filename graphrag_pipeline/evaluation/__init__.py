"""How good an index is: recall on gold questions, generated questions, answers judged in pairs, a regression gate."""
