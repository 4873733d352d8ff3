"""Material for teachers: slides, and pools of questions."""
