"""The parts that all subjects share: tables, figures, axes and texts."""
