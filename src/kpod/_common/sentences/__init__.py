"""The wording of messages: notes, findings and numbers."""
