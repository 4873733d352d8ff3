"""What a teacher takes out of the course: slides, figures, a plan of the weeks, pools of questions."""
