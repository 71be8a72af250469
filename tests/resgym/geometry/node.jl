# host all_coord: x² + y²
# 1 move deep, 3 charts, 2 leaves
# generic coefficients
using Oscar
space, (x, y) = polynomial_ring(QQ, ["x", "y"])
germ = x^2 + 2*y^2
# the rays of the cones where branches end, and for each its multiplicity and log discrepancy
fan_rays = [[1, 1], [0, 1], [1, 0]]
fan_cones = [cone .+ 1 for cone in [[0, 1], [2, 0]]]
fan_orders = [[2, 2], [0, 1], [0, 1]]
variety = normal_toric_variety(incidence_matrix(fan_cones), fan_rays; non_redundant=true)
