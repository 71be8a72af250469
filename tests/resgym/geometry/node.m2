-- host all_coord: x² + y²
-- 1 move deep, 3 charts, 2 leaves
-- generic coefficients
needsPackage "NormalToricVarieties"
space = QQ[x, y]
germ = x^2 + 2*y^2
-- the rays of the cones where branches end, and for each its multiplicity and log discrepancy
fanRays = {{1, 1}, {0, 1}, {1, 0}}
fanCones = {{0, 1}, {2, 0}}
fanOrders = {{2, 2}, {0, 1}, {0, 1}}
toric = normalToricVariety(fanRays, fanCones)
-- every chart: its number, the chart before it (0: none), its rays
charts = {{1, 0, {{1, 0}, {0, 1}}}, {2, 1, {{1, 1}, {0, 1}}}, {3, 1, {{1, 0}, {1, 1}}}}
substitution = rows -> map(space, space,
  apply(transpose rows, powers -> product(gens space, powers, (v, e) -> v^e)))
transforms = apply(charts, chart -> (chart#0, (substitution chart#2) germ))
print netList transforms
