//! What a command reads, writes, deletes, runs and reaches, foreseen from its parse tree.
