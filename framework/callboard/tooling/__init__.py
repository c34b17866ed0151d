"""Functions as tools: schema, arguments, execution, results."""
