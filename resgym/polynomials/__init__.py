"""Input: polynomials and named singularities as exponents, and monomials as text."""
