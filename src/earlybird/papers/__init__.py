"""The papers that the project implements: their plans, published values and pages."""
