"""What a teacher takes out of the course: slides, and pools of questions."""
