"""What all subjects share: tables, figures, axes and texts."""
